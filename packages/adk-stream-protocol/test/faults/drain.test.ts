import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'

import { scriptResponder } from 'gemini-emulator'
import { expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'

import { posixTest } from '../../../../test/support/posix-test.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { SocketClient, toLiveUrl } from '../sockets/support/socket-client.ts'
import { defer } from '../support/agents.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { serve } from '../support/serve.ts'
import { bundleChildren } from './support/children.ts'
import { makeFolder } from './support/folder.ts'
import { openPair } from './support/pair.ts'
import { Person, readEffects } from './support/person.ts'
import { openPaymentServer } from './support/payment-server.ts'

const POLLING = { timeout: 120_000, interval: 50 }

posixTest(
  '[TU90] SIGTERM while three approved calls run: all three end, are recorded and reported',
  async () => {
    const children = await bundleChildren()
    await using folder = await makeFolder()
    await using child = children.start(folder, 'one')
    const url = await child.serve()
    const people = ['slow.read', 'slow.left', 'slow.inbox'].map(
      (chatId) => new Person(url, { chatId }),
    )
    const asked = await Promise.all(people.map((person) => person.ask()))
    const [read, left, inbox] = people.map((person, index) => ({ person, asked: asked[index] }))
    if (!read?.asked || !left?.asked || !inbox?.asked) throw new Error('Three were asked.')
    // One client keeps reading, one disconnects, one decides in the inbox.
    const answer = read.person.answer(read.asked, { approved: true })
    const leaving = new AbortController()
    const gone = fetch(`${url}/stream`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { 'content-type': 'application/json', 'x-user': 'hanako' },
      body: JSON.stringify(answerOf('slow.left', left.asked)),
    }).then((response) => response.text())
    await inbox.person.decide(inbox.asked.approvalId, { approved: true })
    for (const { chatId } of people) await child.waitForLine((line) => line === `running ${chatId}`)
    leaving.abort()
    await expect(gone).rejects.toThrow('aborted')
    const ended = child.terminate()
    expect((await answer).chunks.map(({ type }) => type)).toContain('tool-output-available')
    expect(await ended).toBe(0)

    expect(readEffects(folder.effects)).toHaveLength(3)
    await using store = await openSqliteStore({ path: folder.database })
    await using paymentServer = await openPaymentServer({ store, effects: folder.effects })
    for (const [index, { chatId }] of people.entries()) {
      const person = new Person(paymentServer.url, { chatId })
      const id = asked[index]?.approvalId ?? ''
      expect((await person.approval(id))?.approval.state).toBe('succeeded')
      expect(await person.calls()).toMatchObject([
        { state: 'output-available', output: { paid: 50, to: '花子' } },
      ])
    }
  },
)

function answerOf(
  id: string,
  asked: { approvalId: string; toolCallId: string; messageId: string },
): object {
  const { approvalId, toolCallId, messageId } = asked
  const approval = { id: approvalId, approved: true }
  const input = { to: '花子', amount: 50 }
  const part = { type: 'tool-pay', toolCallId, state: 'approval-responded', input, approval }
  return { id, messageId, messages: [{ id: messageId, role: 'assistant', parts: [part] }] }
}

test('[TU91] [TU11] a draining bridge finishes running replies, rejects new work, and can be closed at once', async () => {
  await using server = await serve()
  const browser = server.browser()
  await (await browser.say('[[say First.]]')).text()
  const response = await browser.say('[[say Half.]][[wait never]]')
  const closing = server.bridge.close()
  const refused = await browser.say('[[say No.]]', 'chat-2')
  expect(refused.status).toBe(503)
  expect(refused.headers.get('retry-after')).toBe('1')
  expect((await browser.delete()).status).toBe(503)
  expect((await browser.messages()).running).toBe(true)
  expect((await fetch(`${server.url}/health`)).status).toBe(200)
  void server.bridge.close({ drainMs: 0 })
  await closing
  expect(await response.text()).toContain('"stopped":true')
})

test.each([
  {
    name: 'routes for each method',
    run: (input: AgUiInput) => ({ path: '/ag-ui', body: input }),
    connect: (input: AgUiInput) => ({ path: '/ag-ui/agent/default/connect', body: input }),
    stop: (threadId: string) => ({ path: `/ag-ui/agent/default/stop/${threadId}`, body: {} }),
  },
  {
    name: 'a single route',
    run: (input: AgUiInput) => toCall('agent/run', input),
    connect: (input: AgUiInput) => toCall('agent/connect', input),
    stop: (threadId: string) => toCall('agent/stop', undefined, threadId),
  },
])(
  '[TU91] [AG1392] AG-UI clients of $name read and stop while the bridge drains, and start nothing',
  async ({ run, connect, stop }) => {
    await using server = await serve({ recorded: false })
    const browser = server.browser()
    const post = ({ path, body }: { path: string; body: object }) => browser.post(path, body)
    const response = await browser.say('[[say Half.]][[wait never]]')
    const closing = server.bridge.close()
    const refused = await post(run(inputOf('chat-1', '[[say No.]]')))
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('1')
    const readers = [await post(connect(inputOf('chat-1'))), await post(run(inputOf('chat-1')))]
    expect((await post(stop('chat-1'))).status).toBe(200)
    for (const reader of readers) expect(await reader.text()).toContain('RUN_FINISHED')
    expect(await response.text()).toContain('"stopped":true')
    await closing
  },
)

interface AgUiInput {
  readonly threadId: string
  readonly runId: string
  readonly messages: readonly object[]
}

/** A run of an AG-UI client: with a new message, or one that only reads. */
function inputOf(threadId: string, content?: string): AgUiInput {
  const message = { id: 'm2', role: 'user', content }
  return { threadId, runId: 'run', messages: content === undefined ? [] : [message] }
}

function toCall(method: string, body?: AgUiInput, threadId?: string) {
  return { path: '/ag-ui', body: { method, params: { agentId: 'default', threadId }, body } }
}

test('[TU91] a request that arrives after the bridge and its store were closed is told to try again', async () => {
  await using folder = await makeFolder()
  const store = await openSqliteStore({ path: folder.database })
  await using server = await openPaymentServer({ store, effects: folder.effects })
  await server.bridge.close({ drainMs: 0 })
  await store.close()
  const response = await fetch(`${server.url}/chats/chat-1/messages`, {
    headers: { 'x-user': 'hanako' },
  })
  expect(response.status).toBe(503)
  expect(response.headers.get('retry-after')).toBe('1')
  expect(await response.json()).toMatchObject({ error: { code: 'unavailable' } })
})

test('[TU91] a reply that runs when the bridge closes is written to its end', async () => {
  const waited = defer()
  await using server = await serve({
    respond: async (prompt) => {
      await waited.promise
      return scriptResponder(prompt)
    },
  })
  const browser = server.browser()
  const answer = browser.say('[[say Done.]]')
  await server.emulator.nextRequest()
  const closing = server.bridge.close()
  waited.resolve()
  expect(await (await answer).text()).toContain('Done.')
  await closing
})

test('[WS19] a draining bridge closes an idle socket at once, others when their replies have ended, and rejects new frames', async () => {
  await using server = await serve({ authenticate: () => ({ id: 'hanako' }) })
  await using client = await SocketClient.open(server.url)
  await using idle = await SocketClient.open(server.url)
  client.say('[[say One.]][[wait never]]')
  await client.untilText('One.')
  const closing = server.bridge.close()
  expect(await idle.closed).toBe(1001)
  client.say('[[say Two.]]', 'r2', 'chat-2')
  expect(await client.nextOf('error', 'r2')).toMatchObject({ code: 'unavailable' })
  client.send({ type: 'abort', requestId: 'r1' })
  expect(await client.closed).toBe(1001)
  await closing
})

test('[WS19] a bridge that drains for long adds no listeners to a socket whose client does not respond', async () => {
  const added = vi.spyOn(WebSocket.prototype, 'once')
  await using server = await serve({ authenticate: () => ({ id: 'hanako' }) })
  await using client = await SocketClient.open(server.url)
  const silent = new WebSocket(toLiveUrl(server.url))
  await once(silent, 'open')
  silent.pause()
  client.say('[[say One.]][[wait never]]')
  await client.untilText('One.')
  const closing = server.bridge.close()
  // The bridge looks for idle sockets several times meanwhile.
  await delay(300)
  const closes = added.mock.calls.filter(([event]) => event === 'close')
  added.mockRestore()
  silent.terminate()
  client.send({ type: 'abort', requestId: 'r1' })
  await closing
  expect(closes.length).toBeLessThan(3)
})

test('[TU90] a pending approval does not delay the end, and is decided at another server', async () => {
  await using pair = await openPair()
  const asked = await pair.atOne.ask()
  await pair.one.bridge.close({ drainMs: 600_000 })
  const { chunks } = await pair.atTwo.answer(asked, { approved: true })
  expect(chunks.map(({ type }) => type)).toContain('tool-output-available')
  expect(pair.effects()).toHaveLength(1)
})

test('[TU90] live: pending approvals stay pending, and running calls finish', async () => {
  const paid = defer()
  const running = defer()
  const before = async (): Promise<void> => {
    running.resolve()
    await paid.promise
  }
  await using testBridge = await TestBridge.open({
    tools: (wallet) => [paymentTool(wallet, { before })],
  })
  const headers = { 'x-api-key': 'hanako' }
  await using waiting = await SocketClient.open(testBridge.url, { headers })
  waiting.send({ type: 'text', id: 'chat-1', text: callPayment(10) })
  await untilAsked(waiting)
  await using paying = await SocketClient.open(testBridge.url, { headers })
  paying.send({ type: 'text', id: 'chat-2', text: `${callPayment(20)}[[then]][[say Paid.]]` })
  const approvalId = await untilAsked(paying)
  paying.send({ type: 'decide', id: 'chat-2', decisionId: 'd', approvalId, approved: true })
  await running.promise
  const closing = testBridge.bridge.close({ drainMs: 600_000 })
  expect(await waiting.closed).toBe(1001)
  paid.resolve()
  expect(await paying.closed).toBe(1001)
  await closing
  expect(testBridge.wallet.payments).toEqual([{ amount: 20, recipient: '花子' }])
  expect(paying.frames.flatMap(({ chunk }) => chunk ?? [])).toContainEqual(
    expect.objectContaining({ type: 'tool-output-available' }),
  )
  await testBridge.restart()
  const page = testBridge.page()
  await expect.poll(() => page.inbox(), POLLING).toHaveLength(1)
  expect((await page.approval(approvalId)).approval.state).toBe('succeeded')
})

/** Waits for an approval request, and returns the approval. */
async function untilAsked(client: SocketClient): Promise<string> {
  const { chunk } = await client.next((frame) => isQuestion(frame['chunk']))
  return isQuestion(chunk) ? chunk.approvalId : ''
}

function isQuestion(chunk: unknown): chunk is { approvalId: string } {
  return (chunk as { type?: string } | undefined)?.type === 'tool-approval-request'
}
