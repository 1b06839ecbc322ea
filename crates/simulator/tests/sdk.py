"""The official SDK against a running simulator.

    cairn simulate --script crates/simulator/tests/sdk.toml --port 8123
    python crates/simulator/tests/sdk.py http://127.0.0.1:8123

Needs the packages `anthropic` and `pydantic`. Prints "N passed, 0 failed"; exits with 1 when a check fails.
"""

import sys
import traceback

import anthropic
import pydantic
from anthropic import Anthropic, beta_tool

MODEL = "claude-opus-5"
URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8123"
client = Anthropic(base_url=URL, api_key="test", max_retries=0)

WEATHER = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
}


def plain_message():
    message = client.messages.create(model=MODEL, max_tokens=100, messages=[{"role": "user", "content": "hello"}])
    assert message.content[0].text.startswith("Hello to you"), message
    assert message.stop_reason == "end_turn"
    assert message.usage.input_tokens > 0 and message.usage.output_tokens > 0
    assert message._request_id.startswith("req_")


def streamed_text():
    with client.messages.stream(
        model=MODEL, max_tokens=100, messages=[{"role": "user", "content": "hello"}]
    ) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    assert len(pieces) > 1, pieces
    assert "".join(pieces) == final.content[0].text
    assert final.usage.output_tokens > 1


def streamed_thinking_comes_back_unchanged():
    ask = {"role": "user", "content": "what is the weather in Oslo?"}
    common = dict(
        model=MODEL, max_tokens=4000, tools=[WEATHER], thinking={"type": "enabled", "budget_tokens": 1024}
    )
    with client.messages.stream(messages=[ask], **common) as stream:
        first = stream.get_final_message()
    assert [block.type for block in first.content] == ["thinking", "text", "tool_use"], first.content
    thinking, _, call = first.content
    assert thinking.thinking == "A short thought." and thinking.signature
    assert call.input == {"city": "Oslo", "days": 2}, call.input
    answer = {"type": "tool_result", "tool_use_id": call.id, "content": "12 degrees in Oslo"}
    history = [ask, {"role": "assistant", "content": first.content}, {"role": "user", "content": [answer]}]
    second = client.messages.create(messages=history, **common)
    assert second.content[-1].text == "It is 12 degrees in Oslo.", second
    thinking.thinking = "Another thought."
    try:
        client.messages.create(messages=history, **common)
    except anthropic.BadRequestError as error:
        assert "messages.1.content.0: Invalid `signature` in `thinking` block" in str(error), error
    else:
        raise AssertionError("a changed thought was accepted")


def tool_loop_by_hand():
    messages = [{"role": "user", "content": "weather in Rome, please"}]
    rounds = 0
    while True:
        rounds += 1
        reply = client.messages.create(model=MODEL, max_tokens=500, tools=[WEATHER], messages=messages)
        messages.append({"role": "assistant", "content": reply.content})
        if reply.stop_reason != "tool_use":
            break
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": f"30 degrees in {block.input['city']}"}
            for block in reply.content
            if block.type == "tool_use"
        ]
        messages.append({"role": "user", "content": results})
    assert rounds == 2
    assert reply.content[0].text == "It is 30 degrees in Rome."


@beta_tool
def get_weather(city: str, days: int = 1) -> str:
    """The weather in a city.

    Args:
        city: The city.
        days: How many days.
    """
    return f"{20 + days} degrees in {city}"


def tool_runner():
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=500,
        tools=[get_weather],
        messages=[{"role": "user", "content": "weather in Bergen?"}],
    )
    messages = list(runner)
    assert messages[-1].content[0].text == "It is 22 degrees in Bergen.", messages[-1]


def streamed_tool_runner():
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=500,
        tools=[get_weather],
        messages=[{"role": "user", "content": "weather in Paris?"}],
        stream=True,
    )
    final = [stream.get_final_message() for stream in runner][-1]
    assert final.content[0].text == "It is 22 degrees in Paris.", final


def token_counting():
    messages = [{"role": "user", "content": "hello " * 100}]
    count = client.messages.count_tokens(model=MODEL, messages=messages)
    message = client.messages.create(model=MODEL, max_tokens=100, messages=messages)
    assert count.input_tokens == message.usage.input_tokens > 100


def caching():
    def ask(tail):
        marked = {"type": "text", "text": "hello " * 1000, "cache_control": {"type": "ephemeral"}}
        messages = [{"role": "user", "content": [marked, {"type": "text", "text": tail}]}]
        return client.messages.create(model=MODEL, max_tokens=50, messages=messages).usage

    first, second = ask("one"), ask("two")
    prefix = first.cache_creation_input_tokens + first.cache_read_input_tokens
    assert second.cache_read_input_tokens == prefix > 1000, (first, second)
    assert first.cache_creation.ephemeral_5m_input_tokens == first.cache_creation_input_tokens


class Person(pydantic.BaseModel):
    name: str
    age: int


def structured_output():
    message = client.messages.parse(
        model=MODEL,
        max_tokens=100,
        messages=[{"role": "user", "content": "Ada is 36"}],
        output_format=Person,
    )
    assert message.parsed_output == Person(name="Ada", age=36), message


def models():
    names = [model.id for model in client.models.list()]
    assert MODEL in names, names
    assert client.models.retrieve(MODEL).id == MODEL


def raises(kind, call, words):
    try:
        call()
    except kind as error:
        assert words in str(error), error
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def errors_are_mapped():
    hello = dict(model=MODEL, max_tokens=100, messages=[{"role": "user", "content": "hello"}])
    stranger = Anthropic(base_url=URL, api_key="invalid", max_retries=0)
    raises(anthropic.AuthenticationError, lambda: stranger.messages.create(**hello), "invalid x-api-key")
    long = dict(hello, messages=[{"role": "user", "content": "overflow"}])
    error = raises(
        anthropic.BadRequestError,
        lambda: client.messages.create(**long),
        "prompt is too long: 214000 tokens > 200000 maximum",
    )
    assert error.body["error"]["type"] == "invalid_request_error" and error.body["request_id"]
    raises(anthropic.NotFoundError, lambda: client.messages.create(**dict(hello, model="gpt")), "model: gpt")
    empty = dict(hello, messages=[])
    raises(anthropic.BadRequestError, lambda: client.messages.create(**empty), "at least one message is required")


def overload_is_retried():
    patient = Anthropic(base_url=URL, api_key="test", max_retries=2)
    message = patient.messages.create(
        model=MODEL, max_tokens=100, messages=[{"role": "user", "content": "overloaded once"}]
    )
    assert message.stop_reason == "end_turn"


CHECKS = [
    plain_message,
    streamed_text,
    streamed_thinking_comes_back_unchanged,
    tool_loop_by_hand,
    tool_runner,
    streamed_tool_runner,
    token_counting,
    caching,
    structured_output,
    models,
    errors_are_mapped,
    overload_is_retried,
]

failed = 0
for check in CHECKS:
    try:
        check()
    except Exception:
        failed += 1
        print(f"FAILED {check.__name__}", file=sys.stderr)
        traceback.print_exc()
print(f"{len(CHECKS) - failed} passed, {failed} failed")
sys.exit(1 if failed else 0)
