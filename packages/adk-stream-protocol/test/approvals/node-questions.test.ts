import type { NodeContext } from '@google/adk'
import { FunctionNode, RequestInput, Workflow } from '@google/adk'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import type { ChatMessage } from '../support/chat-probe.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { approvingClients, clientsWith } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { GO } from './support/named-agents.ts'
import { TestBridge } from './support/test-bridge.ts'

const TOOL = 'adk_request_input'

/** What the nodes have done, in order. */
type Log = string[]

/** A node that repeats its input. */
const tell = (log: Log): FunctionNode =>
  new FunctionNode('tell', (_context, input) => {
    log.push(`tell ${JSON.stringify(input)}`)
    return `Heard ${JSON.stringify(input)}.`
  })

/** A node that asks once, and whose result is the answer. */
const askOnce = (log: Log, responseSchema?: z.ZodObject): FunctionNode =>
  new FunctionNode('ask', async function* ask() {
    log.push('ask')
    yield new RequestInput({
      message: 'How many nights?',
      ...(responseSchema && { responseSchema }),
    })
  })

/** A node that runs again with the answer, under the same id in every turn. */
const askAgain = (log: Log): FunctionNode =>
  new FunctionNode(
    'ask',
    async function* ask({ resumeInputs }: NodeContext) {
      log.push('ask')
      const answer = resumeInputs['nights']
      if (answer === undefined)
        yield new RequestInput({ message: 'Nights?', interruptId: 'nights' })
      else yield { nights: answer }
    },
    { rerunOnResume: true },
  )

const flow = (log: Log, ask: FunctionNode): Workflow =>
  new Workflow({
    name: 'flow',
    edges: [
      [
        'START',
        new FunctionNode('begin', () => {
          log.push('begin')
        }),
        ask,
        tell(log),
      ],
    ],
  })

const Nights = z.object({ nights: z.number().int() })

const open = (log: Log, ask: FunctionNode, options = {}): Promise<TestBridge> =>
  TestBridge.open({ isLive: false, tools: () => [], agent: () => flow(log, ask), ...options })

function questionOf(message: ChatMessage | undefined): string {
  const part = toolParts(message).findLast(({ type }) => type === `tool-${TOOL}`)
  return part?.toolCallId ?? ''
}

const anyClient = approvingClients.slice(0, 1)

describe.each(clientsWith('7'))('$name', (client) => {
  test('[AP484] a node asks, a wrong answer changes nothing, and the answer reaches the workflow once', async () => {
    const log: Log = []
    await using testBridge = await open(log, askOnce(log, Nights))
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    await chat.send('Go.')
    expect(toolParts(chat.lastMessage)).toMatchObject([{ state: 'input-available' }])
    const [asked] = await page.inbox()
    expect(asked).toMatchObject({ kind: 'input', hint: 'How many nights?' })
    expect(asked).toHaveProperty('schema.properties.nights')
    const wrong = await page.decide(String(asked?.id), {
      approved: true,
      payload: { nights: 'two' },
    })
    expect(wrong).toMatchObject({ status: 422, body: { error: { code: 'invalid-answer' } } })
    expect(log).toEqual(['begin', 'ask'])
    const toolCallId = questionOf(chat.lastMessage)
    await chat.give({ tool: TOOL, toolCallId, output: { nights: 2 } })
    await chat.rest()
    expect(log).toEqual(['begin', 'ask', 'tell {"nights":2}'])
    expect(textOf(chat.lastMessage)).toBe('Heard {"nights":2}.')
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-available', output: { nights: 2 } },
    ])
    await expectRecord(page, chat)
    expect(await page.inbox()).toEqual([])
    expect(testBridge.errors).toEqual([])
  })
})

describe.each(anyClient)('$name', (client) => {
  const it = takeTurns({ group: anyClient.indexOf(client), groups: anyClient.length })
  it('[AP484] a node that runs again asks in every turn under the same id, also after a restart', async () => {
    const log: Log = []
    await using testBridge = await open(log, askAgain(log))
    const page = testBridge.page()
    const first = await page.open(client, { autoSend: 'both' })
    await first.send('Go.')
    await testBridge.restart()
    const [asked] = await page.inbox()
    expect(await page.decide(String(asked?.id), { approved: true, payload: 'two' })).toMatchObject({
      status: 200,
    })
    await page.untilMessages((messages) => textOf(messages.at(-1)).includes('Heard'))
    expect(log).toEqual(['begin', 'ask', 'ask', 'tell {"nights":"two"}'])
    const chat = await page.open(client, { autoSend: 'both' })
    await chat.send('Again.')
    expect(log.slice(4)).toEqual(['begin', 'ask'])
    await chat.give({ tool: TOOL, toolCallId: questionOf(chat.lastMessage), output: ['a', 'b'] })
    await chat.rest()
    expect(log.slice(6)).toEqual(['ask', 'tell {"nights":["a","b"]}'])
    await expectRecord(page, chat)
  })

  it('[AP482] a message is not an answer, and the question stays open', async () => {
    const log: Log = []
    await using testBridge = await open(log, askAgain(log), { whilePending: 'keep' })
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    await chat.send('Go.')
    await chat.send('Seven.')
    expect(log).toEqual(['begin', 'ask', 'begin', 'ask'])
    const asked = await page.inbox()
    expect(asked).toHaveLength(2)
    await page.decide(String(asked[0]?.id), { approved: true, payload: 1 })
    await page.untilMessages((messages) => textOf(messages[1]).includes('Heard'))
    expect(log.slice(4)).toEqual(['ask', 'tell {"nights":1}'])
    expect(await page.inbox()).toHaveLength(1)
  })

  it('[AP486] a node learns that its question was declined', async () => {
    const log: Log = []
    await using testBridge = await open(log, askOnce(log, Nights))
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    await chat.send('Go.')
    const [asked] = await page.inbox()
    await page.decide(String(asked?.id), { approved: false, reason: 'Not now' })
    await page.untilMessages((messages) => textOf(messages.at(-1)).includes('Heard'))
    expect(log).toHaveLength(3)
    expect(log[2]).toMatch(/^tell \{"status":"denied","error":".*"reason":"Not now"\}/)
    expect(toolParts((await page.messages()).at(-1))).toMatchObject([{ state: 'output-error' }])
    expect(testBridge.errors).toEqual([])
  })
})

const mayCompleteCalls = ({ id }: { id: string }) => id === 'mari'
const CHAT = { principalId: 'hanako', chatId: 'chat-1' }

test.each([
  ['that runs again with the answer', askAgain, /^tell \{"nights":\{"status":"expired","error":/],
  ['whose result is the answer', askOnce, /^tell \{"status":"expired","error":/],
] as const)(
  '[AP486] a node %s learns that its question has expired, and a late answer changes nothing',
  async (_name, ask, told) => {
    const log: Log = []
    await using testBridge = await open(log, ask(log), { approvalDeadlineMs: 50 })
    const page = testBridge.page()
    await page.post(GO)
    await page.untilMessages((messages) => textOf(messages.at(-1)).includes('Heard'))
    expect(log.filter((it) => it.startsWith('tell'))).toEqual([expect.stringMatching(told)])
    const [part] = toolParts((await page.messages()).at(-1))
    expect(part).toMatchObject({
      state: 'output-error',
      errorText: 'The deadline passed without an answer.',
    })
    const [expired] = (await page.list('state=expired')).approvals ?? []
    const late = await page.decide(String(expired?.id), { approved: true, payload: 2 })
    expect(late).toMatchObject({ body: { error: { code: 'approval-expired' } } })
    const { toolCallId = '' } = part ?? {}
    const again = testBridge.bridge.completeCall({ ...CHAT, toolCallId, output: 2 })
    await expect(again).rejects.toMatchObject({ code: 'call-completed' })
    expect(log.filter((it) => it.startsWith('tell'))).toHaveLength(1)
    expect(testBridge.errors).toEqual([])
  },
)

test('[AP610] the application answers the question of a node, in its process and over HTTP', async () => {
  const log: Log = []
  await using testBridge = await open(log, askOnce(log, Nights), { mayCompleteCalls })
  const page = testBridge.page()
  await page.post(GO)
  const toolCallId = questionOf((await page.messages()).at(-1))
  const wrong = testBridge.bridge.completeCall({ ...CHAT, toolCallId, output: 'two' })
  await expect(wrong).rejects.toMatchObject({ code: 'invalid-answer' })
  await testBridge.bridge.completeCall({ ...CHAT, toolCallId, output: { nights: 2 } })
  await page.untilMessages((messages) => textOf(messages.at(-1)).includes('Heard'))
  expect(log).toEqual(['begin', 'ask', 'tell {"nights":2}'])
  const twice = testBridge.bridge.completeCall({ ...CHAT, toolCallId, output: { nights: 3 } })
  await expect(twice).rejects.toMatchObject({ code: 'call-completed' })

  const message = { id: 'm2', role: 'user', parts: [{ type: 'text', text: 'Again.' }] }
  await page.post({ id: 'chat-1', messages: [message] })
  const path = `/chats/chat-1/calls/${questionOf((await page.messages()).at(-1))}`
  const post = (by: 'hanako' | 'mari', body: object) =>
    testBridge.page(by).fetch(`${testBridge.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ principalId: 'hanako', ...body }),
    })
  expect((await post('hanako', { output: { nights: 4 } })).status).toBe(404)
  expect((await post('mari', { error: 'No rooms.' })).status).toBe(204)
  await page.untilMessages((messages) => textOf(messages.at(-1)).includes('Heard'))
  expect(log.slice(3)).toEqual(['begin', 'ask', expect.stringContaining('No rooms.')])
  expect((await post('mari', { output: { nights: 4 } })).status).toBe(409)
  expect(testBridge.errors).toEqual([])
})

/** Asks under an id of its own. With `again`, it runs again with the answer. */
const asking = (log: Log, name: string, again: boolean): FunctionNode =>
  new FunctionNode(
    name,
    async function* ask({ resumeInputs }: NodeContext, input: unknown) {
      log.push(`${name} ${String(input)}`)
      const answer = resumeInputs[name]
      if (again && answer !== undefined) yield { [name]: answer }
      else yield new RequestInput({ message: `${name}?`, interruptId: name })
    },
    { rerunOnResume: again },
  )

/** Runs two nodes that ask, one after the other, and returns both answers. */
const askBoth =
  (log: Log, again: boolean) =>
  async (context: NodeContext, input: unknown): Promise<unknown> => {
    log.push(`both ${String(input)}`)
    const first = await context.runNode(asking(log, 'nights', again), 'a')
    const second = await context.runNode(asking(log, 'city', again), 'b')
    return [first.output, second.output]
  }

/** The places from which a function may run nodes. */
const DYNAMIC = {
  'an entry function': (log: Log, again: boolean) =>
    new Workflow({ name: 'flow', dynamicEntry: askBoth(log, again) }),
  'a node': (log: Log, again: boolean) =>
    flow(log, new FunctionNode('both', askBoth(log, again), { rerunOnResume: true })),
  'a workflow that is a node': (log: Log, again: boolean) =>
    new Workflow({
      name: 'outer',
      edges: [
        ['START', new Workflow({ name: 'inner', dynamicEntry: askBoth(log, again) }), tell(log)],
      ],
    }),
}

test.each(
  Object.entries(DYNAMIC).flatMap(([name, make]) => [
    [name, false, make] as const,
    [name, true, make] as const,
  ]),
)(
  '[AP611] functions that %s runs with runNode ask, one after the other, also after a restart, rerunOnResume %s',
  async (_name, again, make) => {
    const log: Log = []
    const agent = () => make(log, again)
    await using testBridge = await TestBridge.open({ isLive: false, tools: () => [], agent })
    const page = testBridge.page()
    await page.post(GO)
    const answers = [2, 'Nara']
    for (const answer of answers) {
      const asked = await page.inbox()
      expect(asked).toHaveLength(1)
      await page.decide(String(asked[0]?.id), { approved: true, payload: answer })
      await page.untilState(String(asked[0]?.id), 'succeeded')
      if (answer === 2)
        await page.untilMessages((messages) => toolParts(messages.at(-1)).length === 2)
      if (answer === 2) await testBridge.restart()
    }
    const both = again ? [{ nights: 2 }, { city: 'Nara' }] : answers
    await page.untilMessages((messages) => textOf(messages.at(-1)).includes('Nara'))
    const message = (await page.messages()).at(-1)
    expect(textOf(message)).toContain(JSON.stringify(both))
    expect(toolParts(message).map(({ output }) => output)).toEqual(answers)
    // The function runs again with its own input. A node that has ended does not.
    const runs = log.filter((it) => !/begin|tell/.test(it))
    const input = runs[0]
    expect(runs).toEqual(
      again
        ? [input, 'nights a', input, 'nights a', 'city b', input, 'city b']
        : [input, 'nights a', input, 'city b', input],
    )
    expect(testBridge.errors).toEqual([])
  },
)

test('[AP484] a question of a node is answered at another server, and the workflow continues once', async () => {
  const log: Log = []
  await using folder = await temporaryDirectory()
  const openStore = () => openSqliteStore({ path: folder.file('shared.db') })
  await using first = await open(log, askAgain(log), { openStore })
  await using second = await open(log, askAgain(log), { openStore })
  const page = first.page()
  await page.post(GO)
  const elsewhere = second.page()
  const [asked] = await elsewhere.inbox()
  const answers = [elsewhere, page].map((it, nights) =>
    it.decide(String(asked?.id), { approved: true, payload: nights }),
  )
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set([200, 409]))
  await page.untilMessages((messages) => textOf(messages.at(-1)).includes('Heard'))
  expect(log).toEqual(['begin', 'ask', 'ask', `tell {"nights":${statuses.indexOf(200)}}`])
  expect([...first.errors, ...second.errors]).toEqual([])
})
