import { createEvent, type Event, FunctionTool } from '@google/adk'
import { afterEach, expect, test, vi } from 'vitest'
import { z } from 'zod'

import { writeNotes } from '../../src/agent/events/event-notes.ts'
import { createFailureEvent } from '../../src/agent/translate/failure-event.ts'
import { Turn } from '../../src/turns/turn.ts'
import { expectPositionsOf, mergeChanged } from '../approvals/support/expect-positions.ts'
import { assistant } from '../support/agents.ts'
import { type Browser, codeOf } from '../support/browser.ts'
import type { ChatMessage } from '../support/chat-probe.ts'
import { type ServeOptions, serve } from '../support/serve.ts'

afterEach(() => vi.restoreAllMocks())

const pay = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({}),
  requireConfirmation: true,
  execute: () => ({ paid: true }),
})

const OPTIONS: ServeOptions = {
  agent: (model) => assistant(model, { tools: [pay] }),
  recorded: false,
}

interface Loaded {
  readonly messages: ChatMessage[]
  readonly running: boolean
  readonly position: string
  readonly after?: string
}

async function load(browser: Browser, after?: string): Promise<Loaded> {
  const query = after === undefined ? '' : `?${new URLSearchParams({ after })}`
  const response = await browser.get(`/chats/chat-1/messages${query}`)
  expect(response.status).toBe(200)
  // PROTOCOL.md defines the response of this endpoint.
  return (await response.json()) as Loaded
}

async function say(browser: Browser, text: string): Promise<void> {
  await (await browser.say(text)).text()
}

test('[PO1] after a position, only the messages are loaded that have changed since or wait for a decision', async () => {
  await using server = await serve(OPTIONS)
  const browser = server.browser()
  expect(await load(browser)).toMatchObject({ messages: [], position: '0.' })
  await say(browser, '[[call pay {}]][[then]][[say Paid.]]')
  const asked = await load(browser)
  await say(browser, '[[say One.]]')
  const first = await load(browser)
  await say(browser, '[[say Two.]]')
  const whole = await load(browser)
  expect(whole.messages).toHaveLength(6)
  // The approval may be decided without an event.
  const [question] = asked.messages.slice(1)
  const rest = await load(browser, first.position)
  expect(rest).toMatchObject({ after: first.position, position: whole.position, running: false })
  expect(rest.messages).toEqual([whole.messages[0], question, ...whole.messages.slice(4)])
  expect(mergeChanged(first.messages, rest.messages)).toEqual(whole.messages)
  const unchanged = await load(browser, whole.position)
  expect(unchanged.messages).toEqual(whole.messages.slice(0, 2))
  expect(await load(browser, '0.')).toEqual({ ...whole, after: '0.' })
})

function askedIn(messageId: string): Event {
  const customMetadata = writeNotes({ messageId, userMessageId: `u-${messageId}` })
  const content = { role: 'user', parts: [{ text: `${messageId}?` }] }
  return createEvent({ author: 'user', invocationId: messageId, content, customMetadata })
}

function repliedIn(messageId: string): Event {
  const content = { role: 'model', parts: [{ text: `${messageId}.` }] }
  return createEvent({ author: 'assistant', invocationId: messageId, content })
}

test('[PO1] a reply that is stored after later messages is loaded in its place', () => {
  const failure = createFailureEvent('one', 'assistant', { code: 'unavailable', message: '' })
  const events = [askedIn('one'), askedIn('two'), repliedIn('two'), failure]
  expect(expectPositionsOf(events)).toBeGreaterThan(0)
})

test('[PO1] while a turn runs, the position is before its message', async () => {
  await using server = await serve({ ...OPTIONS, disconnectGraceMs: 60_000 })
  const browser = server.browser()
  await say(browser, '[[say One.]]')
  const { position } = await load(browser)
  const reader = (await browser.say('[[say Two.]][[wait never]]')).body?.getReader()
  await reader?.read()
  const during = await load(browser, position)
  expect(during).toMatchObject({ running: true, position, after: position })
  expect(during.messages.map(({ role }) => role)).toEqual(['user'])
  await browser.stop()
  const ended = await load(browser, position)
  expect(ended.messages).toMatchObject([{ role: 'user' }, { role: 'assistant' }])
  expect(ended.position).not.toBe(position)
})

test('[PO2] a position that the conversation does not contain loads everything', async () => {
  await using server = await serve(OPTIONS)
  const browser = server.browser()
  await say(browser, '[[say One.]]')
  const whole = await load(browser)
  const [count = '', id = ''] = whole.position.split('.')
  const unknown = ['', '.', '0', '1.', `${Number(count) - 1}.${id}`, `0${count}.${id}`]
  const hostile = ['-1.', 'NaN.', '1e3.', '9007199254740993.x', '__proto__', '\u0000.\u0000']
  for (const after of [...unknown, ...hostile]) expect(await load(browser, after)).toEqual(whole)
  const long = await browser.get(`/chats/chat-1/messages?after=${'9'.repeat(1_025)}`)
  expect([long.status, await codeOf(long)]).toEqual([400, 'bad-request'])
})

test('[PO2] a position is unknown after the conversation was rewound', async () => {
  await using server = await serve(OPTIONS)
  const browser = server.browser()
  const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: '[[say One.]]' }] }
  const send = async (more: object) =>
    (await browser.post('/stream', { id: 'chat-1', messages: [message], ...more })).text()
  await send({})
  const { position, messages } = await load(browser)
  await send({ trigger: 'regenerate-message' })
  const again = await load(browser, position)
  expect(again.after).toBeUndefined()
  expect(again.messages).toHaveLength(2)
  expect(again.messages[1]?.id).not.toBe(messages[1]?.id)
})

/** Makes every reader of a turn ask for positions. Returns the turns that were read, in order. */
function askForPositions(): Turn[] {
  const turns: Turn[] = []
  const attach = Reflect.get(Turn.prototype, 'attach')
  vi.spyOn(Turn.prototype, 'attach').mockImplementation(function (this: Turn, ...given) {
    turns.push(this)
    this.wantsPosition = true
    return attach.apply(this, given)
  })
  return turns
}

test('[PO4] a turn that a client has read takes it from the position before to the position after', async () => {
  const turns = askForPositions()
  await using server = await serve(OPTIONS)
  const browser = server.browser()
  await say(browser, '[[say One.]]')
  const one = await load(browser)
  await say(browser, '[[call pay {}]][[then]][[say Paid.]]')
  const asked = await load(browser)
  await decide(browser, asked.messages.at(-1))
  const paid = await load(browser)
  expect(turns.map(({ positions }) => positions)).toEqual([
    { before: '0.', after: one.position },
    { before: one.position, after: asked.position },
    { before: asked.position, after: paid.position },
  ])
})

test('[PO4] a turn that was stopped, has failed or has replaced a message has no positions', async () => {
  const turns = askForPositions()
  await using server = await serve({ ...OPTIONS, onError: () => undefined })
  const browser = server.browser()
  await say(browser, '[[error 400 INVALID_ARGUMENT no]]')
  await (await browser.say('[[say One.]][[wait never]]')).body?.getReader().read()
  await browser.stop()
  const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: '[[say One.]]' }] }
  for (const trigger of ['submit-message', 'regenerate-message'])
    await (await browser.post('/stream', { id: 'chat-1', messages: [message], trigger })).text()
  const known = turns.map(({ positions }) => positions !== undefined)
  expect(known).toEqual([false, false, true, false])
})

/** Approves the call of a message as a stock client does. */
async function decide(browser: Browser, message: ChatMessage | undefined): Promise<void> {
  const parts = message?.parts.map((part) =>
    'approval' in part ? { ...part, state: 'approval-responded', approval: approve(part) } : part,
  )
  await (await browser.post('/stream', { id: 'chat-1', messages: [{ ...message, parts }] })).text()
}

function approve({ approval }: { readonly approval?: unknown }): object {
  return { ...(approval as { readonly id: string }), approved: true }
}
