import { FunctionTool, LlmAgent } from '@google/adk'
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
    const result = await opening.then(
      async ({ bridge, agents }) => {
        await bridge.close({ drainMs: 0 })
        return agents.map(({ name }) => name).join(' ')
      },
      (error: Error) => error.message,
    )
    expect(result).toMatch(typeof expected === 'string' ? new RegExp(`^${expected}$`) : expected)
  },
)
