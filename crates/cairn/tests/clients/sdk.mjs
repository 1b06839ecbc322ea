// The official TypeScript SDK against a running simulator.
//
//     cairn simulate --script crates/simulator/tests/sdk.toml --port 8123
//     node sdk.mjs http://127.0.0.1:8123
//
// Run it from where the package @anthropic-ai/sdk is installed (./test full: target/clients). Prints
// "N passed, 0 failed"; exits with 1 when a check fails.

import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { jsonSchemaOutputFormat } from '@anthropic-ai/sdk/helpers/json-schema';

const MODEL = 'claude-opus-5';
const baseURL = process.argv[2] ?? 'http://127.0.0.1:8123';
const client = new Anthropic({ baseURL, apiKey: 'test', maxRetries: 0 });

const CITY = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city'],
};
const WEATHER = { name: 'get_weather', description: 'The weather in a city.', input_schema: CITY };
const said = (content) => [{ role: 'user', content }];
const hello = { model: MODEL, max_tokens: 100, messages: said('hello') };
const runnable = betaTool({
  name: 'get_weather',
  description: 'The weather in a city.',
  inputSchema: CITY,
  run: ({ city, days = 1 }) => `${20 + days} degrees in ${city}`,
});

async function plainMessage() {
  const { data, response } = await client.messages.create(hello).withResponse();
  assert.match(data.content[0].text, /^Hello to you/);
  assert.equal(data.stop_reason, 'end_turn');
  assert.ok(data.usage.input_tokens > 0 && data.usage.output_tokens > 0);
  assert.match(response.headers.get('request-id'), /^req_/);
}

async function streamedEvents() {
  const kinds = [];
  for await (const event of await client.messages.create({ ...hello, stream: true })) kinds.push(event.type);
  assert.equal(kinds[0], 'message_start');
  assert.deepEqual(kinds.slice(-3), ['content_block_stop', 'message_delta', 'message_stop']);
}

async function streamedText() {
  const pieces = [];
  const stream = client.messages.stream(hello).on('text', (text) => pieces.push(text));
  const final = await stream.finalMessage();
  assert.ok(pieces.length > 1);
  assert.equal(pieces.join(''), final.content[0].text);
}

async function streamedThinkingComesBackUnchanged() {
  const ask = { role: 'user', content: 'what is the weather in Oslo?' };
  const common = { model: MODEL, max_tokens: 4000, tools: [WEATHER], thinking: { type: 'enabled', budget_tokens: 1024 } };
  const first = await client.messages.stream({ ...common, messages: [ask] }).finalMessage();
  assert.deepEqual(first.content.map((block) => block.type), ['thinking', 'text', 'tool_use']);
  const [thinking, , call] = first.content;
  assert.equal(thinking.thinking, 'A short thought.');
  assert.deepEqual(call.input, { city: 'Oslo', days: 2 });
  const answer = { type: 'tool_result', tool_use_id: call.id, content: '12 degrees in Oslo' };
  const messages = [ask, { role: 'assistant', content: first.content }, { role: 'user', content: [answer] }];
  const second = await client.messages.create({ ...common, messages });
  assert.equal(second.content.at(-1).text, 'It is 12 degrees in Oslo.');
  thinking.thinking = 'Another thought.';
  await assert.rejects(client.messages.create({ ...common, messages }), /Invalid `signature` in `thinking` block/);
}

async function toolLoopByHand() {
  const messages = said('weather in Rome, please');
  let reply;
  let rounds = 0;
  do {
    rounds += 1;
    reply = await client.messages.create({ model: MODEL, max_tokens: 500, tools: [WEATHER], messages });
    messages.push({ role: 'assistant', content: reply.content });
    const calls = reply.content.filter((block) => block.type === 'tool_use');
    const content = calls.map(({ id, input }) => ({
      type: 'tool_result',
      tool_use_id: id,
      content: `30 degrees in ${input.city}`,
    }));
    if (content.length) messages.push({ role: 'user', content });
  } while (reply.stop_reason === 'tool_use');
  assert.equal(rounds, 2);
  assert.equal(reply.content[0].text, 'It is 30 degrees in Rome.');
}

// The runner begins with a thread held by the server, is refused, and sends the whole history instead.
async function toolRunner() {
  const settings = { model: MODEL, max_tokens: 500, tools: [runnable], messages: said('weather in Bergen?') };
  const final = await client.beta.messages.toolRunner(settings);
  assert.equal(final.content[0].text, 'It is 22 degrees in Bergen.');
}

async function streamedToolRunner() {
  const messages = said('weather in Paris?');
  const runner = client.beta.messages.toolRunner({ model: MODEL, max_tokens: 500, tools: [runnable], messages, stream: true });
  let final;
  for await (const stream of runner) final = await stream.finalMessage();
  assert.equal(final.content[0].text, 'It is 22 degrees in Paris.');
}

// Instructions added amid the conversation, which newer models take and older ones refuse.
async function systemMessages() {
  const messages = [...said('hello'), { role: 'system', content: 'Be brief.' }];
  const message = await client.beta.messages.create({ ...hello, messages });
  assert.match(message.content[0].text, /^Hello to you/);
  const old = client.beta.messages.create({ ...hello, messages, model: 'claude-opus-4-7' });
  await assert.rejects(old, /role 'system' is not supported on this model/);
}

async function tokenCounting() {
  const messages = said('hello '.repeat(100));
  const count = await client.messages.countTokens({ model: MODEL, messages });
  const message = await client.messages.create({ model: MODEL, max_tokens: 100, messages });
  assert.ok(count.input_tokens > 100);
  assert.equal(count.input_tokens, message.usage.input_tokens);
}

async function caching() {
  const ask = async (tail) => {
    const marked = { type: 'text', text: 'hello '.repeat(1000), cache_control: { type: 'ephemeral' } };
    const messages = said([marked, { type: 'text', text: tail }]);
    return (await client.messages.create({ model: MODEL, max_tokens: 50, messages })).usage;
  };
  const [first, second] = [await ask('one'), await ask('two')];
  assert.ok(second.cache_read_input_tokens > 1000);
  assert.equal(second.cache_read_input_tokens, first.cache_creation_input_tokens + first.cache_read_input_tokens);
}

async function structuredOutput() {
  const schema = {
    type: 'object',
    properties: { name: { type: 'string' }, age: { type: 'integer' } },
    required: ['name', 'age'],
    additionalProperties: false,
  };
  const message = await client.messages.parse({
    model: MODEL,
    max_tokens: 100,
    messages: said('Ada is 36'),
    output_config: { format: jsonSchemaOutputFormat(schema) },
  });
  assert.deepEqual(message.parsed_output, { name: 'Ada', age: 36 });
}

async function models() {
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert.ok(names.includes(MODEL), names.join());
  assert.equal((await client.models.retrieve(MODEL)).id, MODEL);
}

async function errorsAreMapped() {
  const stranger = new Anthropic({ baseURL, apiKey: 'invalid', maxRetries: 0 });
  await assert.rejects(stranger.messages.create(hello), Anthropic.AuthenticationError);
  await assert.rejects(client.messages.create({ ...hello, messages: said('overflow') }), (error) => {
    assert.ok(error instanceof Anthropic.BadRequestError);
    assert.match(error.message, /prompt is too long: 214000 tokens > 200000 maximum/);
    assert.equal(error.error.error.type, 'invalid_request_error');
    assert.match(error.requestID, /^req_/);
    return true;
  });
  await assert.rejects(client.messages.create({ ...hello, model: 'gpt' }), Anthropic.NotFoundError);
  await assert.rejects(client.messages.create({ ...hello, messages: [] }), /at least one message is required/);
}

async function overloadIsRetried() {
  const patient = new Anthropic({ baseURL, apiKey: 'test', maxRetries: 2 });
  const message = await patient.messages.create({ ...hello, messages: said('overloaded once') });
  assert.equal(message.stop_reason, 'end_turn');
}

const CHECKS = [
  plainMessage,
  streamedEvents,
  streamedText,
  streamedThinkingComesBackUnchanged,
  toolLoopByHand,
  toolRunner,
  streamedToolRunner,
  systemMessages,
  tokenCounting,
  caching,
  structuredOutput,
  models,
  errorsAreMapped,
  overloadIsRetried,
];

let failed = 0;
for (const check of CHECKS) {
  try {
    await check();
  } catch (error) {
    failed += 1;
    console.error(`FAILED ${check.name}`, error);
  }
}
console.log(`${CHECKS.length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
