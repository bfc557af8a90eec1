import type { Event } from '@google/adk'
import {
  createEvent,
  InMemorySessionService,
  LongRunningFunctionTool,
  requestInputTool,
  SequentialAgent,
  Workflow,
} from '@google/adk'
import type { Part } from '@google/genai'
import type { Action } from 'gemini-emulator'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { isLong } from '../../../../test/support/long-run.ts'
import { browserTool } from '../../src/server/index.ts'
import { weather } from '../support/agents.ts'
import { partTypes, toolParts } from '../support/chat-probe.ts'
import { locationTool, TOKYO } from '../support/locating.ts'
import type { ApprovingChat } from './support/approving-chat.ts'
import { liveClient, stockClient } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { ask, nest, pay, play, say } from './support/nested-agents.ts'
import { callPayment, paymentTool, type Wallet } from './support/payments.ts'
import { TestBridge, type TestBridgeOptions } from './support/test-bridge.ts'

const NEXT = '[[say Next.]]'

/** The call, in a chunk of its own. */
function separately(call: string): string {
  return call.replace('[[call ', '[[call-separate ')
}

const A = callPayment(10, 'A')
const B = separately(callPayment(20, 'B'))
const C = separately(callPayment(30, 'C'))
const LOOK = '[[call get_weather {"place":"Kyoto"}]]'
const LATER_LOOK = separately(LOOK)
const STREAMED = [
  { name: 'in two chunks', calls: [A, B], names: ['A', 'B'] },
  { name: 'in three chunks', calls: [A, B, C], names: ['A', 'B', 'C'] },
  { name: 'with text between', calls: [A, '[[say And]]', B], names: ['A', 'B'] },
  { name: 'with a thought between', calls: [A, '[[think And]]', B], names: ['A', 'B'] },
  { name: 'after one without approval', calls: [LOOK, B, C], names: ['Kyoto', 'B', 'C'] },
  { name: 'in one chunk', calls: [A, callPayment(20, 'B')], names: ['A', 'B'] },
  { name: 'around one without approval', calls: [A, LATER_LOOK, B], names: ['A', 'Kyoto', 'B'] },
]
const DECIDED = [
  { how: 'together', approved: [true, true, true] },
  { how: 'together', approved: [false, true, true] },
  { how: 'in order', approved: [true, false, true] },
  { how: 'in reverse', approved: [true, true, true] },
] as const
const CASES = STREAMED.flatMap((streamed) =>
  DECIDED.map((decided, at) => ({
    ...streamed,
    ...decided,
    textModel: at < 2 ? 'gemini-2.5-flash' : 'gemini-3-pro-preview',
  })),
)

/** The tools of all calls. */
function tools(wallet: Wallet) {
  return [paymentTool(wallet), weather]
}

/** Returns the recipients, or why a call has none, in the order in which the model reads the results. */
function read(results: readonly unknown[]): string[] {
  return results.map((result) => {
    const { recipient, place, status } = result as Record<string, string>
    return recipient ?? place ?? status ?? ''
  })
}

const stock = stockClient('7')

async function openChat(testBridge: TestBridge, client = stock) {
  const page = testBridge.page()
  return { page, chat: await page.open(client, { autoSend: 'both' }) }
}

// `npm test` runs two cases of each way to stream, one with each model.
test.each(CASES.filter((_, index) => isLong || (index + Math.floor(index / 4)) % 2 === 0))(
  '[AP1000] calls $name, decided $how: $approved, by $textModel',
  async ({ calls, names, how, approved, textModel }) => {
    await using testBridge = await TestBridge.open({ tools, textModel })
    const { page, chat } = await openChat(testBridge)
    await chat.send(`${calls.join('')}[[then]][[say Done.]]`)
    const decisions = chat.asked.map((id, index) => ({ id, approved: approved[index] ?? true }))
    if (how === 'together') await chat.decide(...decisions.map(({ approved: yes }) => yes))
    else {
      for (const { id, approved: yes } of how === 'in order' ? decisions : decisions.toReversed()) {
        await page.decide(id, { approved: yes })
        await page.untilState(id, yes ? 'succeeded' : 'denied')
      }
      await page.untilMessages((messages) => JSON.stringify(messages).includes('Done.'))
    }
    const gated = names.filter((name) => name !== 'Kyoto')
    const told = names.map((name) => {
      const isDenied = gated.includes(name) && !(approved[gated.indexOf(name)] ?? true)
      return isDenied ? 'denied' : name
    })
    expect(read(testBridge.results)).toEqual(told)
    expect(testBridge.asked).toBe(2)
    const reloaded = (await openChat(testBridge)).chat
    await reloaded.send(NEXT)
    expect(reloaded.text).toBe('Next.')
    // The calls of an earlier message, in a new request.
    expect(read(testBridge.results)).toEqual(told)
    expect(testBridge.errors).toEqual([])
    await expectRecord(page, reloaded)
  },
)

/** The parts of a payment, as ADK stores them. */
const PAID = ['adk-A', 'adk-B'].map((id) => {
  const of = { id, name: 'process_payment' }
  return {
    call: { functionCall: { ...of, args: { amount: 10, recipient: id } } },
    response: { functionResponse: { ...of, response: { recipient: id } } },
  }
})

function by(author: string, role: string, parts: Part[]): Event {
  return createEvent({ author, invocationId: 'e-1', content: { role, parts } })
}

/** The events of a chat whose model request has failed, as ADK writes them: one response event for two events with calls. */
function brokenEvents(): Event[] {
  const [callA, callB] = PAID.map(({ call }) => by('assistant', 'model', [call]))
  if (!callA || !callB) throw new Error('Two calls are needed.')
  return [
    by('user', 'user', [{ text: 'Pay A and B.' }]),
    callA,
    by('assistant', 'model', [{ text: 'And' }]),
    callB,
    by(
      'assistant',
      'user',
      PAID.toReversed().map(({ response }) => response),
    ),
  ]
}

test.each([
  ['after the failure', stock, [NEXT], ['adk-A', 'adk-B']],
  ['after a further message', stock, ['[[say Yes.]]', NEXT], ['adk-A', 'adk-B']],
  // ADK sends a live model no calls of earlier messages.
  ['in a live session', liveClient, [NEXT], []],
] as const)(
  '[AP1000] a chat that ADK cannot read is continued %s',
  async (_when, client, texts, told) => {
    const sessionService = new InMemorySessionService()
    await using testBridge = await TestBridge.open({ tools, sessionService })
    await (await openChat(testBridge)).chat.send('[[say Hello.]]')
    const key = { appName: 'adk-stream-protocol', userId: 'hanako', sessionId: 'chat-1' }
    const session = await sessionService.getSession(key)
    if (!session) throw new Error('The chat has no session.')
    for (const event of brokenEvents()) await sessionService.appendEvent({ session, event })
    const { chat } = await openChat(testBridge, client)
    for (const text of texts) await chat.send(text)
    expect(chat.text).toBe('Next.')
    expect(read(testBridge.results)).toEqual(told)
    expect(testBridge.errors).toEqual([])
  },
)

const SPLIT: Action[] = [
  pay(10, 'A'),
  { type: 'call', name: 'process_payment', args: { amount: 20, recipient: 'B' }, separate: true },
]
const PLACES: readonly [string, Pick<TestBridgeOptions, 'agent' | 'respond'>][] = [
  [
    'an agent used as a tool',
    {
      agent: (model, given) => nest(model, given),
      respond: play({
        planner: [[ask('travel')], [say('Done.')]],
        travel: [SPLIT, [say('Paid.')]],
      }),
    },
  ],
  [
    'a step of a sequence',
    {
      agent: (model, given) =>
        // oxlint-disable-next-line typescript/no-deprecated -- It is in use.
        new SequentialAgent({
          name: 'steps',
          subAgents: [
            nest(model, given, { names: ['first'] }),
            nest(model, [], { names: ['last'] }),
          ],
        }),
      respond: play({ first: [SPLIT, [say('Paid.')]], last: [[say('Done.')]] }),
    },
  ],
  [
    'a node of a workflow',
    {
      agent: (model, given) => {
        const [first, last] = [
          nest(model, given, { names: ['first'] }),
          nest(model, [], { names: ['last'] }),
        ]
        return new Workflow({ name: 'flow', edges: [['START', first, last]] })
      },
      respond: play({ first: [SPLIT, [say('Paid.')]], last: [[say('Done.')]] }),
    },
  ],
]

test.each(PLACES)(
  '[AP1000] calls in two chunks of %s, decided after a restart',
  async (_place, options) => {
    await using testBridge = await TestBridge.open({ ...options, isLive: false })
    await (await openChat(testBridge)).chat.send('Pay A and B.')
    await testBridge.restart()
    const { page, chat } = await openChat(testBridge)
    await chat.decide(true, false)
    expect(chat.text).toContain('Done.')
    expect(testBridge.wallet.payments).toEqual([{ amount: 10, recipient: 'A' }])
    await chat.send('Pay A and B.')
    expect(chat.asked).toHaveLength(2)
    expect(testBridge.errors).toEqual([])
    await expectRecord(page, chat)
  },
)

const LOCATE = '[[call get_location {}]]'
const PICK = '[[call pick_file {}]]'
const FILE = { name: 'a.txt' }
const pickFile = browserTool({
  name: 'pick_file',
  description: 'Lets the person pick a file.',
  parameters: z.object({}),
  requireConfirmation: true,
})
const started: string[] = []
const startJob = new LongRunningFunctionTool({
  name: 'start_job',
  description: 'Starts a job.',
  parameters: z.object({ job: z.string() }),
  requireConfirmation: true,
  execute: ({ job }) => {
    started.push(job)
    return job === 'silent' ? undefined : { ticket: job }
  },
})
const OUTPUTS: Readonly<Record<string, unknown>> = { get_location: TOKYO, pick_file: FILE }

test.each([
  ['after a payment', [A, LOCATE], [true]],
  ['before a payment', [LOCATE, A], [true]],
  ['after a payment that is denied', [A, LOCATE], [false, true]],
  ['before a payment that is denied', [LOCATE, A], [true, false]],
  ['beside another one and a payment', [LOCATE, A, PICK], [true]],
  ['beside a payment, in a chunk of its own', [A, separately(LOCATE)], [true]],
  ['beside a job', ['[[call start_job {"job":"loud"}]]', LOCATE], [true]],
  ['beside a browser tool that is denied', [LOCATE, PICK], [true, false]],
])('[BT6] an approved browser tool runs %s', async (_where, calls, approved) => {
  await using testBridge = await TestBridge.open({
    tools: (wallet) => [paymentTool(wallet), locationTool({ gated: true }), pickFile, startJob],
  })
  const { page, chat } = await openChat(testBridge)
  await chat.send(`${calls.join('')}[[then]][[say Done.]]`)
  await chat.decide(...approved)
  const open = toolParts(chat.lastMessage).filter(({ state }) => state === 'input-available')
  expect(open.length).toBeGreaterThan(0)
  for (const { type, toolCallId = '' } of open) {
    const tool = type.replace('tool-', '')
    await chat.give({ tool, toolCallId, output: OUTPUTS[tool] })
  }
  await chat.rest()
  // The helpers of the AI SDK send nothing by themselves while the step has a denied call.
  if (approved.includes(false)) await chat.sendAsItIs()
  expect(chat.text).toBe('Done.')
  const outputs = toolParts(chat.lastMessage).map(({ output }) => output)
  const expected = open.map(({ type }) => OUTPUTS[type.replace('tool-', '')])
  expect(outputs).toEqual(expect.arrayContaining(expected))
  expect(testBridge.results).toEqual(expect.arrayContaining(expected))
  expect(testBridge.results).toHaveLength(calls.length)
  await expectRecord(page, chat)
})

const QUESTION = '[[call adk_request_input {"message":"Which?"}]]'

/** Gives the results of all calls that the page has to complete. */
async function giveAll(chat: ApprovingChat): Promise<void> {
  for (const { type, toolCallId = '', state } of toolParts(chat.lastMessage))
    if (state === 'input-available')
      await chat.give({ tool: type.replace('tool-', ''), toolCallId, output: TOKYO })
  await chat.rest()
}

test('[AP1000] a payment in a chunk after a question, decided before the question is answered', async () => {
  await using testBridge = await TestBridge.open({
    tools: (wallet) => [paymentTool(wallet), requestInputTool],
  })
  const { page } = await openChat(testBridge)
  await (await openChat(testBridge)).chat.send(`${QUESTION}${B}[[then]][[say Done.]]`)
  const [payment] = (await page.inbox()).filter(({ kind }) => kind === undefined)
  await page.decide(payment?.id ?? '', { approved: true })
  await page.untilState(payment?.id ?? '', 'succeeded')
  await page.untilMessages(() => true)
  const { chat } = await openChat(testBridge)
  await giveAll(chat)
  expect(chat.text).toBe('Done.')
  expect(testBridge.results).toMatchObject([TOKYO, { recipient: 'B' }])
  await expectRecord(page, chat)
})

test.each([
  ['an approval', A, [false]],
  ['a browser', LOCATE, []],
])(
  '[CH4] a call after a result stays in the step in which an earlier one waits for %s',
  async (_what, first, approved) => {
    await using testBridge = await TestBridge.open({
      tools: (wallet) => [...tools(wallet), locationTool()],
    })
    const { page, chat } = await openChat(testBridge)
    await chat.send(`${first}${LOOK}[[think Now]]${B}[[then]][[say Done.]]`)
    expect(partTypes(chat.lastMessage).filter((type) => type === 'step-start')).toHaveLength(1)
    const last = chat.asked.at(-1) ?? ''
    await chat.click({ id: last, approved: true })
    await chat.rest()
    // The client waits for the other call before it sends.
    expect(page.sent).toHaveLength(1)
    await chat.decide(...approved)
    await giveAll(chat)
    expect(chat.text).toBe('Done.')
    expect(testBridge.wallet.payments).toEqual([{ amount: 20, recipient: 'B' }])
    await expectRecord(page, chat)
  },
)

test.each([
  ['before it', [LOOK, LOCATE]],
  ['after it', [LOCATE, LOOK]],
  ['in a later chunk', [LOCATE, separately(LOOK)]],
])(
  '[BT1] the model waits for a browser tool, also with the result of a call %s',
  async (_where, calls) => {
    await using testBridge = await TestBridge.open({ tools: () => [weather, locationTool()] })
    const { page, chat } = await openChat(testBridge)
    await chat.send(`${calls.join('')}[[then]][[say Done.]]`)
    expect(testBridge.asked).toBe(1)
    await giveAll(chat)
    expect(chat.text).toBe('Done.')
    expect(testBridge.asked).toBe(2)
    expect(testBridge.errors).toEqual([])
    await expectRecord(page, chat)
  },
)
