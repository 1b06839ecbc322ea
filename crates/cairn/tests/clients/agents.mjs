// The TypeScript Agent SDK drives this program: agents, their hooks, their questions, what they cost, and letting them go on
// in the background.
import { writeFileSync } from 'node:fs'
import { query } from '@anthropic-ai/claude-agent-sdk'

const [url, cairn, project, config] = process.argv.slice(2)
let [passed, failed] = [0, 0]
const check = (what, holds, seen) => {
  if (holds) passed += 1
  else {
    failed += 1
    console.log(`failed: ${what}: ${JSON.stringify(seen)}`)
  }
}

// Words that are said when the turn before has ended.
const waiting = []
let wake = () => {}
const say = (words) => {
  waiting.push(words)
  wake()
}
async function* words() {
  for (;;) {
    while (waiting.length === 0) await new Promise((resolve) => (wake = resolve))
    const content = waiting.shift()
    if (content === null) return
    yield { type: 'user', message: { role: 'user', content }, parent_tool_use_id: null, session_id: '' }
  }
}

const hooks = []
const heard = async (input) => {
  hooks.push(input)
  return {}
}
const broken = async () => {
  throw new Error('it broke')
}
const questions = []
const stderr = []
const talk = query({
  prompt: words(),
  options: {
    pathToClaudeCodeExecutable: cairn,
    cwd: project,
    env: { ...process.env, ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'sk-test-key', CLAUDE_CONFIG_DIR: config },
    agents: { painter: { description: 'Paints.', prompt: 'You paint.', tools: ['Write'], model: 'opus' } },
    canUseTool: async (tool, input, asked) => {
      questions.push([tool, asked])
      return { behavior: 'allow', updatedInput: input }
    },
    hooks: {
      SubagentStart: [{ hooks: [heard] }],
      SubagentStop: [{ hooks: [heard] }],
      PreToolUse: [{ matcher: 'Bash', hooks: [broken], onFailure: 'block' }],
    },
    allowDangerouslySkipPermissions: true,
    permissionMode: 'default',
    stderr: (line) => stderr.push(line),
  },
})
const turn = async (words, meanwhile = async () => {}) => {
  say(words)
  const messages = []
  for (;;) {
    const { value: message, done } = await talk.next()
    if (done) return messages
    messages.push(message)
    await meanwhile(message)
    if (message.type === 'result') return messages
  }
}
const system = (messages, subtype) => messages.filter((message) => message.subtype === subtype)

const agents = (await talk.supportedAgents()).map((agent) => agent.name)
check('it is listed', agents.includes('painter'), agents)

const messages = await turn('let painter write')
const [started] = system(messages, 'task_started')
const [ended] = system(messages, 'task_notification')
check('it begins and ends', ended.task_id === started.task_id && ended.status === 'completed', [started, ended])
const inside = messages.filter((message) => message.parent_tool_use_id)
const calls = new Set(inside.map((message) => message.parent_tool_use_id))
check('its words carry the call', inside.length === 3 && calls.size === 1 && calls.has(started.tool_use_id), inside)
const named = hooks.map((hook) => [hook.hook_event_name, hook.agent_id, hook.agent_type].join(' '))
const expected = ['SubagentStart', 'SubagentStop'].map((moment) => `${moment} ${started.task_id} painter`)
check('hooks are called back', JSON.stringify(named) === JSON.stringify(expected), named)
check('its question is asked under its id', questions.length === 1 && questions[0][1].agentID === started.task_id, questions)
const result = messages.at(-1)
const costs = Object.values(result.modelUsage).map((used) => used.costUSD)
const sum = costs.reduce((all, cost) => all + cost, 0)
check('the cost is that of both', costs.length === 2 && Math.abs(result.total_cost_usd - sum) < 1e-9, result)

await talk.setPermissionMode('bypassPermissions')
const refused = await turn('let general-purpose wait')
check('a hook that has to agree denies by failing', refused.at(-1).permission_denials.length === 1, refused.at(-1))
check('and says so', JSON.stringify(refused).includes('it broke'), refused)

const mode = await talk.setPermissionMode('dontAsk').catch((error) => error.message)
check('a mode that there is not is named', String(mode).includes('there is no mode'), mode)
check('there are no servers', (await talk.mcpServerStatus()).length === 0)

const started_later = await turn('let general-purpose look')
check('a second agent works', started_later.at(-1).result.includes('quartz'), started_later.at(-1))
check('one that nobody waits for is not there', (await talk.backgroundTasks('nothing')) === false)
say(null)
for await (const _ of talk);
check('it complains of nothing', stderr.length === 0, stderr)

// Without hooks an agent can wait: it is sent to the background while it works, and its report still comes.
const sent = query({
  prompt: 'let general-purpose wait',
  options: {
    pathToClaudeCodeExecutable: cairn,
    cwd: project,
    env: { ...process.env, ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'sk-test-key', CLAUDE_CONFIG_DIR: config },
    canUseTool: async (_, input) => ({ behavior: 'allow', updatedInput: input }),
  },
})
const all = []
for await (const message of sent) {
  all.push(message)
  if (message.subtype === 'task_progress') check('it goes to the background', await sent.backgroundTasks())
  // Its report comes only after the turn went on without it.
  if (message.type === 'assistant' && JSON.stringify(message).includes('It is out.')) writeFileSync(`${project}/go`, '')
}
check('its report comes later', all.at(-1).result === 'It came back later.', all.at(-1))

console.log(`${passed} passed, ${failed} failed`)
process.exit(0)
