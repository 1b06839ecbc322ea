"""The Python Agent SDK drives this program: agents, their hooks, their questions, what they cost, and stopping them."""

import asyncio
import logging
import sys
from pathlib import Path

from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    TaskNotificationMessage,
    TaskProgressMessage,
    TaskStartedMessage,
    ToolUseBlock,
    UserMessage,
    get_session_messages,
    get_subagent_messages,
    list_sessions,
    list_subagents,
)

url, cairn, project, config = sys.argv[1:5]
passed, failed, told = 0, 0, []


class Told(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())


logging.getLogger("claude_agent_sdk").addHandler(Told())


def check(what, holds, seen=None):
    global passed, failed
    if holds:
        passed += 1
    else:
        failed += 1
        print(f"failed: {what}: {seen!r}")


async def turn(client, words, meanwhile=None):
    await client.query(words)
    messages = []
    async for message in client.receive_response():
        messages.append(message)
        if meanwhile:
            await meanwhile(message)
    return messages


def of(kind, messages):
    return [message for message in messages if isinstance(message, kind)]


async def main():
    hooks, questions = [], []

    async def heard(input, tool_use_id, _):
        hooks.append(input)
        if input["hook_event_name"] == "SubagentStart":
            output = {"hookEventName": "SubagentStart", "additionalContext": "the paint is wet"}
            return {"hookSpecificOutput": output}
        return {}

    async def may(tool, input, context):
        questions.append((tool, context))
        if len(questions) == 1:
            return PermissionResultDeny(message="not that file")
        return PermissionResultAllow(updated_input={**input, "content": "blue\n"})

    moments = ["SubagentStart", "SubagentStop", "PreToolUse"]
    painter = AgentDefinition(description="Paints.", prompt="You paint.", tools=["Write"], model="opus")
    options = ClaudeAgentOptions(
        cli_path=cairn,
        cwd=project,
        env={"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-test-key", "CLAUDE_CONFIG_DIR": config},
        agents={"painter": painter},
        can_use_tool=may,
        hooks={moment: [HookMatcher(hooks=[heard])] for moment in moments},
    )
    async with ClaudeSDKClient(options=options) as client:
        info = await client.get_server_info()
        check("it is listed", "painter" in [agent["name"] for agent in info["agents"]], info)

        messages = await turn(client, "let painter write")
        (call,) = [block for m in of(AssistantMessage, messages) for block in m.content if isinstance(block, ToolUseBlock) and block.name == "Agent"]
        (started,), (ended,) = of(TaskStartedMessage, messages), of(TaskNotificationMessage, messages)
        check("it begins", (started.tool_use_id, started.task_type) == (call.id, "local_agent"), started)
        check("it ends", (ended.task_id, ended.status) == (started.task_id, "completed"), ended)
        inside = [m for m in of((AssistantMessage, UserMessage), messages) if m.parent_tool_use_id]
        check("its words carry the call", {m.parent_tool_use_id for m in inside} == {call.id} and len(inside) == 3, inside)
        names = [(hook["hook_event_name"], hook.get("agent_type")) for hook in hooks]
        expected = [("PreToolUse", None), ("SubagentStart", "painter"), ("PreToolUse", "painter"), ("SubagentStop", "painter")]
        check("hooks are called back in order", names == expected, names)
        check("under its id", {hook["agent_id"] for hook in hooks[1:]} == {started.task_id}, hooks)
        check("its last words are told", hooks[3]["last_assistant_message"].startswith("I was told"), hooks[3])
        ((tool, context),) = questions
        check("its question is asked under its id", (tool, context.agent_id) == ("Write", started.task_id), context)
        result = of(ResultMessage, messages)[0]
        check("the no reaches it", "not that file" in result.result, result.result)
        check("nothing was written", not Path(project, "note.txt").exists())
        models = {model: used["costUSD"] for model, used in result.model_usage.items()}
        check("the cost is that of both", abs(result.total_cost_usd - sum(models.values())) < 1e-9, result)
        check("each model is named", set(models) == {"claude-sonnet-5", "claude-opus-5"} and all(models.values()), models)

        messages = await turn(client, "let painter write")
        check("progress is told", of(TaskProgressMessage, messages)[0].last_tool_name == "Write", messages)
        check("what was changed is written", Path(project, "note.txt").read_text() == "blue\n")

        async def interrupt(message):
            if isinstance(message, TaskProgressMessage):
                await client.interrupt()

        await client.set_permission_mode("acceptEdits")
        stopped = await turn(client, "let general-purpose wait", interrupt)
        check("an interrupt reaches the agent", of(TaskNotificationMessage, stopped)[0].status == "stopped", stopped)
        check("and ends the turn", of(ResultMessage, stopped)[0].subtype == "error_during_execution", stopped)

        async def stop(message):
            if isinstance(message, TaskProgressMessage):
                await client.stop_task(message.task_id)

        check("the session goes on", of(ResultMessage, await turn(client, "hello"))[0].subtype == "success")
        stopped = await turn(client, "let general-purpose wait", stop)
        check("an agent alone is stopped", of(TaskNotificationMessage, stopped)[0].status == "stopped", stopped)
        result = of(ResultMessage, stopped)[0]
        check("and the turn goes on", result.subtype == "success" and "was stopped" in result.result, result)
        try:
            await client.stop_task("nobody")
            check("nobody cannot be stopped", False)
        except Exception as error:
            check("nobody cannot be stopped", "nobody" in str(error), error)
        try:
            await client.set_permission_mode("bypassPermissions")
            check("the mode needs leave", False)
        except Exception as error:
            check("the mode needs leave", "--allow-dangerously-skip-permissions" in str(error), error)

    (session,) = list_sessions(directory=project)
    agents = list_subagents(session.session_id, directory=project)
    check("the SDK finds them in the files", len(agents) == 4 and started.task_id in agents, agents)
    said = get_subagent_messages(session.session_id, started.task_id, directory=project)
    check("and what one said", [m.type for m in said] == ["user", "assistant", "user", "assistant"], said)
    texts = str(get_session_messages(session.session_id, directory=project))
    check("which is no part of the session", "let painter write" in texts and "Write it down." not in str(texts).replace("'prompt': 'Write it down.'", ""), texts)
    check("it complains of nothing", told == [], told)


asyncio.run(asyncio.wait_for(main(), 100))
print(f"{passed} passed, {failed} failed")
