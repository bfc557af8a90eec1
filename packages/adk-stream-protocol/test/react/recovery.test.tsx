import { Chat } from '@ai-sdk/react'
import { act, screen, waitFor } from '@testing-library/react'
import type { ChatTransport } from 'ai'
import { describe, expect, test } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { type AdkUIMessage, attachChat, sseTransport } from '../../src/client/index.ts'
import { recoverChat } from '../../src/react/hooks/chat-actions.ts'
import { planRecovery, planLocalRecovery } from '../../src/react/reading/problem.ts'
import { type Deferred, defer } from '../../src/shared/async.ts'
import { apiKey } from '../../src/server/auth/authenticate.ts'
import { PEOPLE, TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { textOf } from '../support/chat-probe.ts'
import { TestBrowser, type TestPage, WAYS } from './support/chat-page.tsx'
import { answer, payment, approvalPart } from './support/messages.ts'

const FAIL_AFTER = `${callPayment(50)}[[then]][[fail 429 retry=0]]`

describe.each(WAYS)('over %s', (way) => {
  const it = takeTurns({ group: WAYS.indexOf(way), groups: WAYS.length })
  it.each(['with', 'without'])(
    '[RE20] a payment that ran before the reply failed is kept and not repeated, %s an api',
    async (how) => {
      await using testBridge = await TestBridge.open()
      await using browser = new TestBrowser(testBridge, way)
      const page = browser.show(how === 'with' ? { api: browser.api } : {})
      page.say(FAIL_AFTER)
      await page.click('Approve')
      await screen.findByText('The reply is unfinished')
      expect(page.chat.problem).toEqual({ kind: 'unfinished' })
      expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull()
      const asked = testBridge.asked
      await page.chat.recover()
      await page.untilReady()
      expect(testBridge.asked).toBe(asked)
      expect(testBridge.wallet.payments).toHaveLength(1)
      expect(page.text).toContain('Approved.')
      expect(screen.queryByRole('button', { name: 'Approve' })).toBeNull()
      expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull()
      page.say('[[say All is paid.]]')
      await page.until('All is paid.')
      expect(testBridge.wallet.payments).toHaveLength(1)
    },
  )

  it('[RE10] a failed reply without calls is regenerated, without an api', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show()
    page.say('[[fail 429 retry=0]]')
    await screen.findByText('The model is busy')
    const asked = testBridge.asked
    await page.click('Try again')
    await waitFor(() => expect(testBridge.asked).toBeGreaterThan(asked))
  })
})

test('[RE162] [RE6] of two tabs that decide differently, the later one claims no success, shows the outcome and is ready for the next message', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'sse')
  // Without an api, the page does not learn of the other decision before its own.
  const page = browser.show()
  page.say(`${callPayment(50)}[[then]][[say Not paid.]]`)
  await screen.findByRole('button', { name: 'Approve' })
  await page.untilReady()
  const [{ id: approvalId } = { id: '' }] = await browser.api.listApprovals()
  await browser.api.decide(approvalId, { approved: false })
  const shown: string[] = []
  const observer = new window.MutationObserver(() => void shown.push(document.body.textContent))
  observer.observe(document.body, { subtree: true, childList: true, characterData: true })
  await page.click('Approve')
  await page.until('Not paid.')
  await page.until('Denied.')
  await page.untilReady()
  observer.disconnect()
  expect(shown.filter((text) => text.includes('Running'))).toEqual([])
  expect(page.chat.refusals.get(approvalId)?.code).toBe('approval-decided')
  expect(page.errors).toMatchObject([{ code: 'approval-decided' }])
  expect(testBridge.wallet.payments).toEqual([])
})

/** Opens a bridge that rejects everybody while the session has expired. */
function openExpiring(session: { isExpired: boolean }): Promise<TestBridge> {
  const authenticate = apiKey(PEOPLE)
  return TestBridge.open({
    authenticate: (request) => (session.isExpired ? undefined : authenticate(request)),
    limits: { reauthenticateMs: 50 },
  })
}

describe.each(WAYS)('signed out, over %s', (way) => {
  const it = takeTurns({ group: WAYS.indexOf(way), groups: WAYS.length })
  it('[CL850] [RE850] a decision is refused with what to do, and counts once after the person has signed in again', async () => {
    const session = { isExpired: false }
    await using testBridge = await openExpiring(session)
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show({ api: browser.api })
    page.say(`${callPayment(50)}[[then]][[say Paid.]]`)
    await screen.findByRole('button', { name: 'Approve' })
    session.isExpired = true
    await waitFor(() => expect(page.chat.connection.isSignedOut).toBe(true))
    await screen.findByText('You are signed out')
    await page.click('Approve')
    await screen.findByText(/then send it again here/)
    expect(testBridge.wallet.payments).toHaveLength(0)
    session.isExpired = false
    await page.click('Approve')
    await page.until('Paid.')
    expect(testBridge.wallet.payments).toHaveLength(1)
    await waitFor(() => expect(screen.queryByText('You are signed out')).toBeNull())
  })

  it('[CL850] [RE850] a message is kept, and sent once when the person tries again', async () => {
    const session = { isExpired: false }
    await using testBridge = await openExpiring(session)
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show({ api: browser.api })
    page.say('[[say One.]]')
    await page.until('One.')
    await page.untilReady()
    session.isExpired = true
    browser.cut()
    page.say('[[say Two.]]')
    await screen.findByText('You are signed out')
    await waitFor(() => expect(page.chat.problem).toEqual({ kind: 'signed-out' }))
    session.isExpired = false
    await page.click('Try again')
    await page.until('Two.')
    await page.untilReady()
    expect(testBridge.asked).toBe(2)
  })
})

const ASKED = {
  id: 'asked',
  role: 'user' as const,
  parts: [{ type: 'text' as const, text: 'Pay.' }],
}
const ERROR = { error: { code: 'internal' as const, message: 'x' } }
const UNSENT: AdkUIMessage = {
  id: 'unsent',
  role: 'user',
  parts: [{ type: 'text', text: 'Wait.' }],
  metadata: { stopped: true, unsent: false },
}
const REPLY = answer({ type: 'text', text: 'Done.' })
const PAID = payment({ state: 'output-available', output: {} })
const DENIED = { id: 'approval-1', approved: false as const }

test.each([
  { name: 'ran', parts: [PAID, approvalPart({ state: 'approved' })], step: 'show' },
  { name: 'may have run', parts: [PAID, approvalPart({ state: 'unknown' })], step: 'show' },
  { name: 'was begun', parts: [payment({ state: 'input-available' })], step: 'show' },
  {
    name: 'was approved, without a result',
    parts: [payment(), approvalPart({ state: 'approved' })],
    step: 'show',
  },
  { name: 'expired', parts: [payment(), approvalPart({ state: 'expired' })], step: 'regenerate' },
  { name: 'waits', parts: [payment(), approvalPart()], step: 'regenerate' },
  {
    name: 'was denied',
    parts: [
      payment({ state: 'output-denied', approval: DENIED }),
      approvalPart({ state: 'denied' }),
    ],
    step: 'regenerate',
  },
])('[RE20] of a failed answer with a call that $name: $step', ({ parts, step }) => {
  const failed = { ...answer(...parts), metadata: ERROR }
  const messages = [ASKED, failed]
  expect(planRecovery(messages, { messages, running: false }).step).toBe(step)
  // The state of the server is unknown until it is loaded.
  expect(planLocalRecovery(messages, { isDisconnected: false })).toBe('keep')
  expect(planLocalRecovery(messages, { isDisconnected: true })).toBe('resume')
  expect(planLocalRecovery([ASKED], { isDisconnected: false })).toBe('regenerate')
})

test.each([
  { name: 'ended', running: false, reply: REPLY, step: 'show' },
  { name: 'failed', running: false, reply: { ...REPLY, metadata: ERROR }, step: 'show' },
  { name: 'is running', running: true, reply: REPLY, step: 'resume' },
])(
  '[CL915] a message that the person stopped is not sent when the reply before it $name',
  (given) => {
    const { running, reply, step } = given
    const messages = running ? [ASKED] : [ASKED, reply]
    expect(planRecovery([ASKED, reply, UNSENT], { messages, running })).toEqual({ step })
  },
)

const EDITED = { ...ASKED, parts: [{ type: 'text' as const, text: 'Pay less.' }] }
const OTHER = { ...ASKED, id: 'other' }

test.each([
  { name: 'had a reply', shown: [EDITED], messages: [ASKED, REPLY], step: 'replace' },
  { name: 'had none', shown: [EDITED], messages: [ASKED], step: 'replace' },
  {
    name: 'is followed by the reply to another message',
    shown: [EDITED, { ...REPLY, id: 'later' }],
    messages: [ASKED, REPLY, OTHER, { ...REPLY, id: 'later' }],
    step: 'replace',
  },
  {
    name: 'is followed by one that is running',
    shown: [EDITED],
    messages: [ASKED, REPLY, OTHER],
    running: true,
    step: 'replace',
  },
  { name: 'was received', shown: [EDITED], messages: [EDITED, REPLY], step: 'show' },
  {
    name: 'is stored as the application has changed it, and its reply is running',
    shown: [EDITED],
    messages: [ASKED],
    running: true,
    step: 'resume',
  },
  {
    name: 'is stored as the application has changed it, and its reply is shown',
    shown: [EDITED, REPLY],
    messages: [ASKED, REPLY],
    step: 'show',
  },
])('[RE377] an edited message whose stored version $name: $step', (given) => {
  const { shown, messages, running = false, step } = given
  expect(planRecovery<AdkUIMessage>(shown, { messages, running }).step).toBe(step)
})

test('[RE377] a reply that ends while a chat recovers is shown', async () => {
  const chat = new Chat<AdkUIMessage>({
    messages: [ASKED],
    transport: {
      // The reply has just ended.
      reconnectToStream: async () => null,
      sendMessages: () => Promise.reject(new Error('Nothing is sent.')),
    },
  })
  const reply = answer({ type: 'text', text: 'Done.' })
  const loads = [
    { messages: [ASKED], running: true, position: '1.e' },
    { messages: [ASKED, reply], running: false, position: '1.e' },
  ]
  await recoverChat(chat, { loadChat: async () => loads.shift() ?? Promise.reject(new Error()) })
  expect(chat.messages).toEqual([ASKED, reply])
})

test('[RE20] a page that lacks a newer message repeats the reply to that one, not an older reply with a call that ran', async () => {
  const sent: AdkUIMessage[][] = []
  const reply = answer(payment({ state: 'output-available', output: {} }))
  const chat = new Chat<AdkUIMessage>({
    messages: [ASKED, reply],
    transport: {
      reconnectToStream: async () => null,
      sendMessages: ({ messages }) => {
        sent.push(messages)
        return Promise.reject(new Error('Only what is sent matters.'))
      },
    },
  })
  const messages = [ASKED, reply, { ...ASKED, id: 'next' }]
  await recoverChat(chat, { loadChat: async () => ({ messages, running: false, position: '3.e' }) })
  expect(sent).toEqual([messages])
})

/** A chat whose first request fails, on a server that has its message and no reply. Records the messages that are sent after it. */
function openFailing() {
  const sent: string[][] = []
  const loads: Deferred<void>[] = []
  const reply = defer()
  let hasFailed = false
  const transport: ChatTransport<AdkUIMessage> = {
    reconnectToStream: async () => null,
    sendMessages: async ({ messages }) => {
      if (!hasFailed) {
        hasFailed = true
        throw new TypeError('fetch failed')
      }
      sent.push(messages.map(({ id }) => id))
      await reply.promise
      return new ReadableStream({ start: (stream) => stream.close() })
    },
  }
  const loadChat = async () => {
    const load = defer()
    loads.push(load)
    await load.promise
    return { messages: [ASKED], running: false, position: '1.e' }
  }
  /** Responds to all loads, and then ends the reply. */
  const end = async (): Promise<void> => {
    for (const load of loads) load.resolve()
    // What follows a response waits for nothing else.
    await new Promise(setImmediate)
    reply.resolve()
  }
  return { sent, loads, transport, loadChat, end }
}

test.each([
  ['a message that was not sent', '[[say Hello.]]', 'submit-message'],
  ['a message whose reply has failed', '[[fail 429 retry=0]]', 'regenerate-message'],
])(
  '[CL1991] a chat that recovers from %s sends its context again',
  async (_what, text, trigger) => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, 'sse')
    const { api } = browser
    const bodies: unknown[] = []
    const observed: typeof fetch = async (url, init) => {
      if (init?.method !== 'POST') return fetch(url, init)
      bodies.push(JSON.parse(String(init.body)))
      const isLost = bodies.length === 1 && trigger === 'submit-message'
      return isLost ? Promise.reject(new TypeError('fetch failed')) : fetch(url, init)
    }
    const headers = { 'x-api-key': 'hanako' }
    const transport = sseTransport({ url: testBridge.url, headers, fetch: observed })
    const chat = new Chat<AdkUIMessage>({ id: 'chat-1', transport })
    const attached = attachChat(chat, transport, { api })
    const body = { context: { page: 'invoices' } }
    await chat.sendMessage({ text }, { body })
    expect(chat.status).toBe('error')
    await recoverChat(chat, api, attached)
    expect(bodies).toMatchObject([body, { ...body, trigger }])
    attached.detach()
  },
)

test('[RE20] a chat recovers once when the person returns to the page, which the browser reports twice', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'sse')
  const { sent, loads, transport, loadChat, end } = openFailing()
  const page = browser.show({ transport, api: Object.assign(browser.api, { loadChat }) })
  void page.chat.sendMessage(ASKED)
  await waitFor(() => expect(page.chat.problem?.kind).toBe('disconnected'))
  document.dispatchEvent(new window.Event('visibilitychange'))
  window.dispatchEvent(new window.Event('focus'))
  const clicked = page.chat.recover()
  await act(() => Promise.all([clicked, end()]))
  expect(sent).toEqual([['asked']])
  expect(loads).toHaveLength(1)
})

test('[RE20] a chat sends nothing of its own accord if the person sends a message while it recovers', async () => {
  const { sent, transport, loadChat, end } = openFailing()
  const chat = new Chat<AdkUIMessage>({ transport })
  await chat.sendMessage(ASKED)
  expect(chat.status).toBe('error')
  const recovered = recoverChat(chat, { loadChat })
  const replied = chat.sendMessage({ ...ASKED, id: 'next' })
  await Promise.all([recovered, replied, end()])
  expect(sent).toEqual([['asked', 'next']])
})

/** Responds as a server on which no turn is running. */
const findNoTurn = async (): Promise<Response> => new Response(null, { status: 204 })

describe.each(['attached', 'not attached'])('a chat that is %s', (how) => {
  test.each([
    { name: 'has ended', loads: [{ messages: [ASKED, REPLY], running: false, position: '1.e' }] },
    {
      name: 'ends meanwhile',
      loads: [
        { messages: [ASKED], running: true, position: '1.e' },
        { messages: [ASKED, REPLY], running: false, position: '1.e' },
      ],
    },
  ])(
    '[CL915] keeps a message that was not sent when it shows a reply that $name',
    async (given) => {
      const loads = [...given.loads]
      const api = {
        loadChat: async () => loads.shift() ?? Promise.reject(new Error('Loaded too often.')),
        watchChat: () => () => undefined,
      }
      const transport = sseTransport({ url: 'http://localhost', fetch: findNoTurn })
      const chat = new Chat<AdkUIMessage>({ messages: [UNSENT, ASKED], transport })
      const attached = how === 'attached' ? attachChat(chat, transport, { api }) : undefined
      await recoverChat(chat, api, attached)
      const kept = { ...UNSENT, metadata: { stopped: true, unsent: true } }
      expect(chat.messages).toEqual([kept, ASKED, REPLY])
      expect(loads).toEqual([])
      attached?.detach()
    },
  )
})

const isRefused = ({ chat }: TestPage): boolean => chat.problem?.kind === 'busy'

test('[CL903] a message that is refused because another tab has started a turn stays, with its error, and can be sent again', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'sse')
  await using another = new TestBrowser(testBridge, 'sse')
  const tabs = [browser.show({ api: browser.api }), another.show({ api: another.api })]
  // Both at once: the server accepts one of them.
  for (const [index, tab] of tabs.entries()) tab.say(`[[wait gate]][[say Reply ${index}.]]`)
  await waitFor(() => expect(tabs.some(isRefused)).toBe(true))
  const [page, reply] = tabs.findIndex(isRefused) === 0 ? [tabs[0], 1] : [tabs[1], 0]
  const shown = () => page?.chat.messages.map(textOf)
  const texts = [`[[wait gate]][[say Reply ${reply}.]]`, `[[wait gate]][[say Reply ${1 - reply}.]]`]
  await waitFor(() => expect(shown()).toEqual(texts))
  testBridge.emulator.release('gate')
  await waitFor(() => expect(shown()).toEqual([texts[0], `Reply ${reply}.`, texts[1]]))
  expect(page?.chat.problem).toEqual({ kind: 'busy' })
  await act(async () => page?.chat.recover())
  await waitFor(() => expect(shown()?.at(-1)).toBe(`Reply ${1 - reply}.`))
  const { messages } = await browser.api.loadChat('chat-1')
  expect(messages.filter(({ role }) => role === 'user')).toHaveLength(2)
})

test('[TU1949] after the person has read newer messages, the reply can be generated again', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'sse')
  const { api } = browser
  // A laptop that has woken up: its feed is behind.
  api.watchChat = (_chatId, listener) => {
    listener({ type: 'open', again: false })
    return () => undefined
  }
  const page = browser.show({ api })
  page.say('[[say Hello.]]')
  await page.until('Hello.')
  await page.untilReady()
  await using other = new TestBrowser(testBridge, 'sse')
  const messages = [{ id: 'm-2', role: 'user', parts: [{ type: 'text', text: '[[say Newer.]]' }] }]
  const body = JSON.stringify({ id: 'chat-1', trigger: 'submit-message', messages })
  const headers = { 'x-api-key': 'hanako', 'content-type': 'application/json' }
  const written = await fetch(`${testBridge.url}/stream`, { method: 'POST', headers, body })
  expect(await written.text()).toContain('Newer.')
  await act(() => page.chat.regenerate())
  expect(page.chat.problem).toMatchObject({ kind: 'refused', code: 'newer-messages' })
  await page.until('Newer.')
  await act(() => page.chat.recover())
  expect(page.chat.problem).toBeUndefined()
  expect(page.chat.status).toBe('ready')
  await act(() => page.chat.regenerate())
  await page.untilReady()
  expect((await other.api.loadChat('chat-1')).messages).toHaveLength(4)
})
