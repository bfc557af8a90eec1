// oxlint-disable typescript/no-deprecated -- Some of these agents are deprecated in favour of Workflow, and in use.
import {
  AgentTool,
  App,
  BaseAgent,
  BuiltInCodeExecutor,
  EXIT_LOOP,
  FunctionTool,
  Gemini,
  GOOGLE_SEARCH,
  LlmAgent,
  LoadArtifactsTool,
  LongRunningFunctionTool,
  LoopAgent,
  MCPToolset,
  ParallelAgent,
  RemoteA2AAgent,
  requestInputTool,
  SequentialAgent,
  URL_CONTEXT,
  Workflow,
} from '@google/adk'
import type { BaseTool, BaseToolset } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { openAgents } from '../../src/dev/agents/open-agents.ts'
import { checkProduction, readAuthenticate } from '../../src/dev/agents/production.ts'
import { openSqliteStore } from '../../src/store/index.ts'

const authenticate = () => ({ id: 'a' })
const allowedOrigins = ['https://app.example']

test('[DV1326] a server in production does not start without what it needs, or with what it must not have', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const enough = { authenticate, store, allowedOrigins }
  expect(() => checkProduction(enough)).not.toThrow()
  expect(() => checkProduction({})).toThrow(
    /^serve needs --auth <file>, .+; --data <folder>, --database <url> or DATABASE_URL, .+; --origin <url>, the origin of the page\.$/,
  )
  expect(() => checkProduction({ authenticate, store })).toThrow(/^serve needs --origin <url>/)
  expect(() => checkProduction({ ...enough, recordModelCalls: 'with-authentication' })).toThrow(
    /^serve refuses the option recordModelCalls/,
  )
  expect(() => checkProduction({ ...enough, developer: true })).toThrow(
    /^serve refuses the option developer/,
  )
  expect(readAuthenticate({ file: 'auth.ts', exports: { authenticate } })).toBe(authenticate)
  expect(() => readAuthenticate({ file: 'auth.ts', exports: { authenticate: 1 } })).toThrow(
    /^auth\.ts: exports no authenticate\./,
  )
})

const pay = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({}),
  execute: () => ({}),
})
const agent = (name: string, model = 'gemini-2.5-flash') =>
  new LlmAgent({ name, model, tools: [pay] })

/** The exports of the files of agents and of the policy, and what is served or why it is not. */
test.each<
  [string, Record<string, unknown>[], Record<string, unknown> | undefined, string | RegExp]
>([
  ['an agent', [{ rootAgent: agent('one') }], undefined, 'one'],
  [
    'several agents',
    [{ rootAgent: agent('one') }, { rootAgent: agent('two') }],
    undefined,
    'one two',
  ],
  [
    'several agents of one name',
    [{ rootAgent: agent('one') }, { rootAgent: agent('one') }],
    undefined,
    'folder0 folder1',
  ],
  ['options', [{ options: { agents: { a: agent('one'), b: agent('two') } } }], undefined, 'a b'],
  [
    'options with others',
    [{ options: { agent: agent('one') } }, { rootAgent: agent('two') }],
    undefined,
    /^folder0.agent\.ts: exports options, .+ Start it alone\.$/,
  ],
  [
    'an unknown model',
    [{ rootAgent: agent('one', 'gpt-9') }],
    undefined,
    /^folder0.agent\.ts: The agent one has the model gpt-9, which ADK does not know\.$/,
  ],
  ['a policy', [{ rootAgent: agent('one') }], { approvals: { pay: true } }, 'one'],
  [
    'a policy for another tool',
    [{ rootAgent: agent('one') }],
    { approvals: { payy: true } },
    /^folder0.agent\.ts: .*payy/,
  ],
  [
    'no policy',
    [{ rootAgent: agent('one') }],
    { policy: true },
    /^policy\.ts: exports no policy\./,
  ],
  ['no agent', [{ agents: 1 }], undefined, /^folder0.agent\.ts: exports no agent/],
  [
    'two agents in a file',
    [{ a: agent('one'), b: agent('two') }],
    undefined,
    /^folder0.agent\.ts: exports 2 agents/,
  ],
])(
  '[DV1320] [DV1325] the exports of %s are served, or one sentence says why not',
  async (_name, files, policy, expected) => {
    const opening = openAgents(
      {
        agents: files.map((exports, index) => ({ file: `folder${index}/agent.ts`, exports })),
        policy: policy && { file: 'policy.ts', exports: policy },
        exportName: undefined,
      },
      async () => ({ liveModel: undefined }),
    )
    const result = await describeOpened(opening)
    expect(result).toMatch(typeof expected === 'string' ? new RegExp(`^${expected}$`) : expected)
  },
)

const withTools = (...tools: (BaseTool | BaseToolset)[]) =>
  new LlmAgent({ name: 'one', model: 'gemini-2.5-flash', tools })

/** Yields nothing. */
async function* runNothing(): AsyncGenerator<never> {}

class OwnAgent extends BaseAgent {
  protected override runAsyncImpl = runNothing
  protected override runLiveImpl = runNothing
}

const gated = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({}),
  requireConfirmation: true,
  execute: () => ({}),
})
const job = new LongRunningFunctionTool({
  name: 'job',
  description: 'Runs long.',
  execute: () => ({ ticket: 1 }),
})

/** The shapes of ADK's own examples that need no cloud, and what is served or why it is not. */
test.each<[string, () => unknown, string | RegExp]>([
  ['a tool', () => withTools(pay), 'one'],
  ['a tool that needs approval', () => withTools(gated), 'one'],
  ['a long-running tool', () => withTools(job), 'one'],
  ["a question of ADK's own", () => withTools(requestInputTool), 'one'],
  ['a tool of the model', () => withTools(GOOGLE_SEARCH), 'one'],
  ['another tool of the model', () => withTools(URL_CONTEXT), 'one'],
  ['a tool for artifacts', () => withTools(new LoadArtifactsTool()), 'one'],
  ['an agent as a tool', () => withTools(new AgentTool({ agent: agent('two') })), 'one'],
  [
    'an MCP server',
    () =>
      withTools(
        new MCPToolset({
          type: 'StreamableHTTPConnectionParams',
          url: 'http://127.0.0.1:1/mcp',
        }),
      ),
    'one',
  ],
  [
    'code that the model runs',
    () =>
      new LlmAgent({
        name: 'one',
        model: 'gemini-2.5-flash',
        codeExecutor: new BuiltInCodeExecutor(),
      }),
    'one',
  ],
  [
    'a model object',
    () =>
      new LlmAgent({ name: 'one', model: new Gemini({ model: 'gemini-2.5-flash', apiKey: 'x' }) }),
    'one',
  ],
  [
    'an output schema',
    () =>
      new LlmAgent({
        name: 'one',
        model: 'gemini-2.5-flash',
        outputSchema: z.object({ city: z.string() }),
        outputKey: 'city',
      }),
    'one',
  ],
  [
    'callbacks',
    () =>
      new LlmAgent({
        name: 'one',
        model: 'gemini-2.5-flash',
        beforeModelCallback: () => undefined,
        afterToolCallback: () => undefined,
      }),
    'one',
  ],
  [
    'sub-agents',
    () =>
      new LlmAgent({
        name: 'one',
        model: 'gemini-2.5-flash',
        subAgents: [agent('two'), agent('three')],
      }),
    'one',
  ],
  [
    'a sequence',
    () => new SequentialAgent({ name: 'one', subAgents: [agent('two'), agent('three')] }),
    'one',
  ],
  [
    'a loop',
    () =>
      new LoopAgent({
        name: 'one',
        maxIterations: 2,
        subAgents: [new LlmAgent({ name: 'two', model: 'gemini-2.5-flash', tools: [EXIT_LOOP] })],
      }),
    'one',
  ],
  [
    'parallel agents',
    () => new ParallelAgent({ name: 'one', subAgents: [agent('two'), agent('three')] }),
    'one',
  ],
  ['a workflow', () => new Workflow({ name: 'one', edges: [['START', agent('two')]] }), 'one'],
  ['an app', () => new App({ name: 'own', rootAgent: agent('one') }), 'one'],
  [
    'a remote agent',
    () => new RemoteA2AAgent({ name: 'one', agentCard: 'http://127.0.0.1:1/' }),
    'one',
  ],
  [
    'a remote agent whose card ADK would not find',
    () => new RemoteA2AAgent({ name: 'one', agentCard: 'http://127.0.0.1:1/card.json' }),
    /^agent\.ts: `agentCard` of the remote agent one is .+: pass that URL,/,
  ],
  ['an agent class of its own', () => new OwnAgent({ name: 'one' }), 'one'],
  [
    'no model',
    () => new LlmAgent({ name: 'one' }),
    /^agent\.ts: The agent one has no model\. Set `model` of it or of its parent\.$/,
  ],
])(
  '[DV1320] [DV1325] an agent with %s is served, or one sentence says why not',
  async (_name, create, expected) => {
    const opening = openAgents(
      {
        agents: [{ file: 'agent.ts', exports: { rootAgent: create() } }],
        policy: undefined,
        exportName: undefined,
      },
      async () => ({ liveModel: undefined }),
    )
    expect(await describeOpened(opening)).toMatch(
      typeof expected === 'string' ? new RegExp(`^${expected}$`) : expected,
    )
  },
)

/** Returns the names of the agents that are served, or the error. */
async function describeOpened(opening: ReturnType<typeof openAgents>): Promise<string> {
  try {
    const { bridge, agents } = await opening
    await bridge.close({ drainMs: 0 })
    return agents.map(({ name }) => name).join(' ')
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
