import type { NodeContext } from '@google/adk'
import { FunctionNode, RequestInput, Workflow } from '@google/adk'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import type { ChatMessage } from '../support/chat-probe.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { approvingClients, clientsWith } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { TestBridge } from './support/test-bridge.ts'

const TOOL = 'adk_request_input'

/** What the nodes have done, in order. */
type Log = string[]

/** A node that hears something and repeats it. */
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
  test('[AP484] a node that runs again asks in every turn under the same id, also after a restart', async () => {
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

  test('[AP485] a message is not an answer, and the question stays open', async () => {
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

  test('[AP486] a node learns that its question was declined', async () => {
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
