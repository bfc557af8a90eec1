// oxlint-disable typescript/no-deprecated -- SequentialAgent is deprecated in favour of Workflow, and in use.
import type { AuthConfig } from '@google/adk'
import {
  AgentTool,
  FunctionTool,
  LlmAgent,
  MCPToolset,
  requestInputTool,
  SequentialAgent,
  Workflow,
} from '@google/adk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { shareOf } from '../../../../test/support/long-run.ts'
import type { ApprovalPolicy } from '../../src/server/index.ts'
import type { RootAgent } from '../../src/server/chats/chat-agents.ts'
import type { ApprovingChat } from '../approvals/support/approving-chat.ts'
import { play, say } from '../approvals/support/nested-agents.ts'
import { stockClient } from '../approvals/support/approving-chat.ts'
import type { Page } from '../approvals/support/page.ts'
import type { Person } from '../approvals/support/test-bridge.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { toolParts } from '../support/chat-probe.ts'
import { locationTool, musicTool, TOKYO } from '../support/locating.ts'
import type { McpFixture } from '../support/mcp-servers.ts'
import { serveHttp } from '../support/mcp-servers.ts'
import { AG_UI_VERSIONS, AgUiClient } from './support/ag-ui-client.ts'

/** What a person answers, in the words of both protocols. */
interface Answer {
  /** The state of the interrupt in AG-UI. */
  readonly reason: string
  /** For an approval. */
  readonly decision?: {
    readonly approved: boolean
    readonly reason?: string
    readonly editedArgs?: Readonly<Record<string, unknown>>
  }
  /** For a question, or a tool of the page. */
  readonly output?: unknown
  /** For a sign-in. */
  readonly apiKey?: string
}

/** The agents of the scenarios: one with tools, or steps of which the first one pays. */
type Root = 'assistant' | 'sequence' | 'workflow'

interface Scenario {
  readonly name: string
  /** Default: `assistant`. */
  readonly root?: Root
  /** Whether nobody answers, so that the approval expires. */
  readonly expires?: boolean
  readonly text: string
  /** The answers to what is asked, one round after the other. */
  readonly rounds: readonly (readonly Answer[])[]
}

const call = (tool: string, args: object = {}): string => `[[call ${tool} ${JSON.stringify(args)}]]`
const END = '[[then]][[say Done.]]'
const approve: Answer = { reason: 'tool_call', decision: { approved: true } }
/** A call with this amount expires soon. */
const SOON = 13
const SCHEMA = {
  type: 'object',
  properties: { nights: { type: 'integer' } },
  required: ['nights'],
}

const SCENARIOS: readonly Scenario[] = [
  { name: 'an approval', text: call('pay', { amount: 5 }) + END, rounds: [[approve]] },
  {
    name: 'a denial with a reason',
    text: call('pay', { amount: 5 }) + END,
    rounds: [[{ reason: 'tool_call', decision: { approved: false, reason: 'Too much.' } }]],
  },
  {
    name: 'edited arguments',
    text: call('pay', { amount: 500 }) + END,
    rounds: [[{ reason: 'tool_call', decision: { approved: true, editedArgs: { amount: 7 } } }]],
  },
  {
    name: 'two calls at once',
    text: call('pay', { amount: 1 }) + call('pay', { amount: 2 }) + END,
    rounds: [[approve, { reason: 'tool_call', decision: { approved: false } }]],
  },
  {
    name: 'one call after the other',
    text: `${call('pay', { amount: 1 })}[[then]]${call('pay', { amount: 2 })}${END}`,
    rounds: [[approve], [approve]],
  },
  {
    name: 'a call inside an agent that is used as a tool',
    text: call('travel', { request: call('pay', { amount: 3 }) + END }) + END,
    rounds: [[approve]],
  },
  {
    name: 'a question with a schema',
    text: call('adk_request_input', { message: 'How many?', response_schema: SCHEMA }) + END,
    rounds: [[{ reason: 'input_required', output: { nights: 2 } }]],
  },
  {
    name: 'a question of an MCP server',
    text: call('files_ask') + END,
    rounds: [[{ reason: 'input_required', output: { city: 'Kyoto' } }]],
  },
  {
    name: 'a sign-in',
    text: call('find_way') + END,
    rounds: [[{ reason: 'adk:sign-in', apiKey: 'a key' }]],
  },
  {
    name: 'a tool of the page that needs approval',
    text: call('get_location') + END,
    rounds: [
      [{ reason: 'adk:page_tool', decision: { approved: true } }],
      [{ reason: 'page', output: TOKYO }],
    ],
  },
  {
    name: 'a call that needs approval beside a tool of the page',
    text: call('pay', { amount: 1 }) + call('change_bgm', { track: 3 }) + END,
    rounds: [[approve], [{ reason: 'page', output: { success: true, track: 3 } }]],
  },
  {
    name: 'an approval that expires',
    text: call('pay', { amount: SOON }) + END,
    rounds: [],
    expires: true,
  },
  { name: 'an approval in a sequence', root: 'sequence', text: 'Go.', rounds: [[approve]] },
  {
    name: 'a denial in a sequence',
    root: 'sequence',
    text: 'Go.',
    rounds: [[{ reason: 'tool_call', decision: { approved: false } }]],
  },
  { name: 'an approval in a workflow', root: 'workflow', text: 'Go.', rounds: [[approve]] },
  {
    name: 'edited arguments in a workflow',
    root: 'workflow',
    text: 'Go.',
    rounds: [[{ reason: 'tool_call', decision: { approved: true, editedArgs: { amount: 7 } } }]],
  },
]

/** The amounts that were paid, by person. */
const paid: { readonly person: string; readonly amount: number }[] = []

const pay = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  requireConfirmation: true,
  parameters: z.object({ amount: z.number() }),
  execute: ({ amount }, context) => {
    paid.push({ person: context?.invocationContext.session.userId ?? '', amount })
    return { paid: amount }
  },
})

const MAPS: AuthConfig = {
  credentialKey: 'maps',
  authScheme: { type: 'apiKey', in: 'header', name: 'x-key' },
}

const findWay = new FunctionTool({
  name: 'find_way',
  description: 'Finds the way.',
  execute: (_input, context) => {
    if (context?.getAuthResponse(MAPS)) return { way: 'Left.' }
    context?.requestCredential(MAPS)
    return { status: 'needs a sign-in' }
  },
})

let files: McpFixture
let bridges: Readonly<Record<Root, TestBridge>>
/** The bridge of the scenario. */
let testBridge: TestBridge

const approvals: ApprovalPolicy = {
  pay: ({ args: { amount } }) => (amount === SOON ? { deadlineMs: 300 } : true),
}

/** Opens a bridge with two steps. */
function openSteps(
  toRoot: (steps: readonly [LlmAgent, LlmAgent]) => RootAgent,
): Promise<TestBridge> {
  return TestBridge.open({
    isLive: false,
    approvals,
    respond: play({
      payer: [[{ type: 'call', name: 'pay', args: { amount: 9 } }], [say('Paid.')]],
      last: [[say('Done.')]],
    }),
    agent: (model) => {
      const step = (name: string, tools: FunctionTool[] = []): LlmAgent =>
        new LlmAgent({ name, model, tools, instruction: `I am the ${name}.` })
      return toRoot([step('payer', [pay]), step('last')])
    },
  })
}

beforeAll(async () => {
  const requestedSchema = { type: 'object', properties: { city: { type: 'string' } } }
  const elicit = [{ message: 'Which city?', requestedSchema }]
  files = await serveHttp([{ name: 'ask', _meta: { elicit } }])
  const assistant = TestBridge.open({
    isLive: false,
    approvals,
    elicitation: true,
    signIn: {
      baseUrl: 'http://localhost:4',
      providers: { maps: { type: 'apiKey', label: 'Maps', check: () => true } },
    },
    agent: (model) => {
      const travel = new LlmAgent({ name: 'travel', model, description: 'Books.', tools: [pay] })
      const toolset = new MCPToolset(files.connection, [], 'files')
      const own = [pay, findWay, requestInputTool, locationTool({ gated: true }), musicTool()]
      return new LlmAgent({
        name: 'root',
        model,
        tools: [...own, new AgentTool({ agent: travel }), toolset],
      })
    },
  })
  bridges = {
    assistant: await assistant,
    sequence: await openSteps((subAgents) => {
      return new SequentialAgent({ name: 'steps', subAgents: [...subAgents] })
    }),
    workflow: await openSteps(([payer, last]) => {
      return new Workflow({ name: 'steps', edges: [['START', payer, last]] })
    }),
  }
})

afterAll(async () => {
  for (const bridge of Object.values(bridges)) await bridge[Symbol.asyncDispose]()
  await files[Symbol.asyncDispose]()
})

/** The people of the three clients. Each has a wallet and credentials of its own. */
const PEOPLE = { ui: 'hanako', '1.0.0': 'taro', '0.0.59': 'mike' } as const

test.each(SCENARIOS.map((scenario, group) => ({ ...scenario, group })))(
  '[AG1383] $name has the same record, and the same contents for the model, as over `ui`',
  async ({ root = 'assistant', text, rounds, expires = false, group }) => {
    testBridge = bridges[root]
    paid.length = 0
    const expected = await overUi(text, rounds)
    for (const version of shareOf(AG_UI_VERSIONS, { group, groups: 2 })) {
      const person = version.name.endsWith('1.0.0') ? PEOPLE['1.0.0'] : PEOPLE['0.0.59']
      const client = new AgUiClient(version, { url: testBridge.url, person })
      await client.say(text)
      for (const answers of rounds) await answerRun(client, person, answers)
      await untilDone(testBridge.page(person), client.threadId)
      // Nobody has read what followed the expiry.
      const shown = expires ? await client.reload() : client
      expect([shown.pending, shown.text.at(-1)]).toEqual([[], 'Done.'])
      expect(await readRecord(person, client.threadId)).toEqual(expected)
      // A turn that runs on while the client is away is streamed after the activities that the client has kept.
      expect((await client.reload()).byId).toEqual(shown.byId)
    }
  },
)

async function answerRun(
  client: AgUiClient,
  person: Person,
  answers: readonly Answer[],
): Promise<void> {
  const [first] = answers
  if (first?.reason === 'page') {
    const shown = client.messages.flatMap(({ toolCalls = [] }) => toolCalls).at(-1)
    const content = JSON.stringify(first.output)
    const toolCallId = shown?.id ?? ''
    const result = { id: crypto.randomUUID(), role: 'tool', toolCallId, content }
    client.agent.setMessages([...client.messages, result])
    await client.run()
    return
  }
  expect(client.pending.map(({ reason }) => reason)).toEqual(answers.map(({ reason }) => reason))
  const payloads = await Promise.all(
    client.pending.map(async ({ id }, index) => {
      const { decision, output, apiKey } = answers[index] ?? {}
      if (apiKey !== undefined) await signIn(person, id, apiKey)
      return [id, decision ?? output] as const
    }),
  )
  await client.answer(Object.fromEntries(payloads))
}

/** Plays a scenario with a stock client of the AI SDK. Returns its record. */
async function overUi(text: string, rounds: Scenario['rounds']): Promise<unknown> {
  const person = PEOPLE.ui
  const page = testBridge.page(person)
  const id = crypto.randomUUID()
  const chat = await page.open(stockClient('7'), { id, autoSend: 'both' })
  await chat.send(text)
  for (const answers of rounds) {
    await chat.rest()
    await answerChat(chat, page, answers)
  }
  await untilDone(page, id)
  return readRecord(person, id)
}

async function untilDone(page: Page, id: string): Promise<void> {
  await page.untilMessages((messages) => JSON.stringify(messages.at(-1)).includes('"Done."'), id)
}

async function answerChat(
  chat: ApprovingChat,
  page: Page,
  answers: readonly Answer[],
): Promise<void> {
  const open = toolParts(chat.lastMessage).filter(({ state }) => state === 'input-available')
  const inbox = await page.inbox()
  const { asked } = chat
  for (const [index, { decision, output, apiKey }] of answers.entries()) {
    const { type = '', toolCallId = '' } = open.at(-1) ?? {}
    const approvalId = asked[index] ?? ''
    if (apiKey !== undefined) await signIn(PEOPLE.ui, inbox[0]?.id ?? '', apiKey)
    else if (decision) {
      const { editedArgs, ...given } = decision
      if (editedArgs) chat.edit(approvalId, editedArgs)
      await chat.click({ id: approvalId, ...given })
    } else await chat.give({ tool: type.slice('tool-'.length), toolCallId, output })
  }
  await chat.rest()
}

async function signIn(person: Person, id: string, apiKey: string): Promise<void> {
  const response = await fetch(`${testBridge.url}/sign-ins/${id}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': person },
    body: JSON.stringify({ apiKey }),
  })
  expect(response.status).toBeLessThan(300)
}

/** The audit record of a chat, what the model has received last, and what was paid, without what differs between two chats. */
async function readRecord(person: Person, chatId: string): Promise<unknown> {
  const page = testBridge.page(person)
  await page.untilMessages((messages) => messages.length === 2, chatId)
  const { entries } = await testBridge.bridge.audit({ chat: { principalId: person, chatId } })
  const amounts = paid.flatMap((payment) => (payment.person === person ? payment.amount : []))
  const contents = testBridge.lastContents
  return normalise([entries.map(({ event }) => event), contents, amounts], person)
}

const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

/** Replaces ids by their order, and times, digests of ids and the person by their kind. */
function normalise(value: unknown, person: string): unknown {
  const ids = new Map<string, string>()
  const text = JSON.stringify(value)
    .replaceAll(ID, (id) => {
      const name = ids.get(id) ?? `id ${ids.size}`
      ids.set(id, name)
      return name
    })
    .replaceAll(/\b1[0-9]{12}\b/g, '0')
    .replaceAll(/"digest":"[^"]+"/g, '"digest":""')
    .replaceAll(`"${person}"`, '"person"')
  return JSON.parse(text)
}
