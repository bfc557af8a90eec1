import { expect, test } from 'vitest'

import { chunkOf, joinLive, nextUnasked } from '../live/support/live-test-bridge.ts'
import { defer } from '../support/agents.ts'
import { type ChatMessage, toolParts } from '../support/chat-probe.ts'
import { readUntil } from '../support/read-feed.ts'
import type { ApprovingChat, ApprovingClient } from './support/approving-chat.ts'
import { approvingClients, liveClient } from './support/approving-chat.ts'
import type { Page } from './support/page.ts'
import { callPayment, paymentTool } from './support/payments.ts'
import { TestBridge, type TestBridgeOptions } from './support/test-bridge.ts'

const PAY = `${callPayment(50)}[[then]][[say Paid.]]`
const POLLING = { timeout: 60_000, interval: 10 }
const HEADERS = { 'x-api-key': 'hanako', 'content-type': 'application/json' }
const LIFE = ['requested', 'approved', 'started', 'succeeded']

/** A stock client that has approved a call. The call runs, and another tab has stopped the turn. */
interface Stopped extends AsyncDisposable {
  readonly testBridge: TestBridge
  readonly page: Page
  readonly chat: ApprovingChat
  readonly id: string
  /** Lets the call end. */
  readonly finish: () => void
}

async function openStopped(
  client: ApprovingClient,
  options: Pick<TestBridgeOptions, 'limits'> = {},
): Promise<Stopped> {
  const gate = defer()
  const testBridge = await TestBridge.open({
    ...options,
    tools: (wallet) => [paymentTool(wallet, { before: () => gate.promise })],
  })
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send(PAY)
  const [id = ''] = chat.asked
  await chat.click({ id, approved: true })
  await page.untilState(id, 'executing')
  await stop(testBridge)
  // A stock client sends the decision again at the end of the stopped stream.
  await expect.poll(() => page.started === 3 || chat.error !== undefined, POLLING).toBe(true)
  const finish = (): void => gate.resolve()
  const dispose = async (): Promise<void> => {
    finish()
    await testBridge[Symbol.asyncDispose]()
  }
  return { testBridge, page, chat, id, finish, [Symbol.asyncDispose]: dispose }
}

async function stop({ url }: TestBridge): Promise<void> {
  await fetch(`${url}/chats/chat-1/stop`, { method: 'POST', headers: HEADERS })
}

/** Sends the decision once more, without waiting for the end of the response. */
function repeat({ testBridge, page }: Stopped): Promise<Response> {
  const body = JSON.stringify(page.sent[2])
  return fetch(`${testBridge.url}/stream`, { method: 'POST', headers: HEADERS, body })
}

function partsOf(message: ChatMessage | undefined): unknown {
  return message?.parts
}

test.each([...approvingClients, liveClient])(
  '[AP13] $name: a client whose turn another tab stopped receives the outcome of its call, and the model does not continue',
  async (client) => {
    await using stopped = await openStopped(client)
    const { testBridge, page, chat, id } = stopped
    stopped.finish()
    await chat.rest()
    expect(chat.error).toBeUndefined()
    expect(page.sent).toHaveLength(3)
    expect(page.sent[2]).toMatchObject({ messages: [{}, { id: chat.lastMessage?.id }] })
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-available', output: { balance: 950 } },
    ])
    expect(chat.text).toBe('')
    expect(partsOf(chat.lastMessage)).toEqual(partsOf((await page.messages()).at(-1)))
    expect(await page.history(id)).toEqual(LIFE)
    expect(testBridge.wallet.payments).toHaveLength(1)
  },
)

const [client = failWithoutClient()] = approvingClients

test('[AP13] [AP795] while the call runs, a decision that contradicts the first one is rejected, and the chat takes other messages', async () => {
  await using stopped = await openStopped(client)
  const { page, chat, testBridge } = stopped
  const sent = JSON.stringify(page.sent[2]).replace('"approved":true', '"approved":false')
  const refused = await page.post(JSON.parse(sent))
  expect([refused.status, refused.body.error?.code]).toEqual([409, 'approval-decided'])
  const other = await page.open(client)
  await other.send('[[say Still here.]]')
  expect(other.text).toBe('Still here.')
  stopped.finish()
  await chat.rest()
  expect(toolParts(chat.lastMessage)).toMatchObject([{ output: { balance: 950 } }])
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[AP795] a client that waits for a call and disconnects waits no more, and the number of such clients is limited', async () => {
  await using stopped = await openStopped(client, { limits: { maxTurnsPerPrincipal: 1 } })
  const { chat, page, id } = stopped
  const refused = await repeat(stopped)
  expect(refused.status).toBe(429)
  expect(await refused.text()).toContain('"too-many-turns"')
  await chat.stop()
  let response = await repeat(stopped)
  await expect
    .poll(async () => (response.ok ? 200 : (response = await repeat(stopped)).status), POLLING)
    .toBe(200)
  stopped.finish()
  expect(await response.text()).toContain('"balance":950')
  expect(await page.history(id)).toEqual(LIFE)
})

test('[AP795] a closing server lets its call end, and the waiting client receives the outcome', async () => {
  await using stopped = await openStopped(client)
  const { testBridge, chat } = stopped
  const closed = testBridge.bridge.close()
  stopped.finish()
  await closed
  await chat.rest()
  expect(chat.error).toBeUndefined()
  expect(toolParts(chat.lastMessage)).toMatchObject([{ output: { balance: 950 } }])
})

test.each([client, liveClient])(
  '[AP796] $name: feeds report the message of a stopped turn when the result of its call is stored, and sockets receive it',
  async (stock) => {
    await using stopped = await openStopped(stock)
    const { testBridge, page, chat } = stopped
    const feed = await fetch(`${testBridge.url}/chats/chat-1/events`, { headers: HEADERS })
    const seen = readUntil(feed, ({ type }) => type === 'stored')
    await using watcher = await joinLive(testBridge)
    watcher.send({ type: 'watch', id: 'chat-1' })
    await watcher.nextOf('status')
    stopped.finish()
    expect((await seen).map(({ type }) => type)).toContain('stored')
    expect(toolParts((await page.messages()).at(-1))).toMatchObject([{ output: { balance: 950 } }])
    const output = await chunkOf(watcher, 'tool-output-available', await nextUnasked(watcher))
    expect(output).toMatchObject({ output: { balance: 950 } })
    await chat.rest()
  },
)

function failWithoutClient(): never {
  throw new Error('There is no client.')
}
