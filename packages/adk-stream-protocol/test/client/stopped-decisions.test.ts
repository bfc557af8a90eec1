import { describe, expect, test, vi } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { retryConnections } from '../../src/client/connection/connection-state.ts'
import { sseTransport } from '../../src/client/index.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { defer } from '../support/agents.ts'
import { toolParts } from '../support/chat-probe.ts'
import { ClientPage, openSse, versions } from './support/client-page.ts'

const PAY = `${callPayment(50)}[[then]][[say Done.]]`
const ALL = `${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}${callPayment(50, 'Carol')}[[then]][[say Done.]]`

/** Stops the request of a decision that has arrived. The chat must show the outcome of its call, and no error. */
async function expectOutcomeAfterStop(
  chat: Awaited<ReturnType<typeof openSse>>,
  clicked: Promise<void>,
): Promise<void> {
  await chat.stop()
  await clicked
  await chat.rest()
  await chat.until(() => toolParts(chat.lastMessage)[0]?.state === 'output-available')
  expect(chat.asked).toEqual([])
  expect(chat.errors).toEqual([])
  expect(chat.error).toBeUndefined()
}

/** A response that is not delivered. */
function untilAborted(signal: AbortSignal | null | undefined): Promise<Response> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () =>
      reject(new DOMException('This operation was aborted', 'AbortError')),
    )
  })
}

describe.each(oneOf(versions, 'ai 6'))('$name', (version) => {
  test('[CL800] over HTTP, a decision whose request is stopped after it has arrived is not shown as open', async () => {
    await using testBridge = await TestBridge.open()
    const arrived = defer()
    let isHeld = false
    const transport = sseTransport({
      url: testBridge.url,
      headers: { 'x-api-key': 'hanako' },
      fetch: async (input, init) => {
        const response = await fetch(input, init)
        if (!isHeld || !String(input).endsWith('/stream')) return response
        isHeld = false
        arrived.resolve()
        return untilAborted(init?.signal)
      },
    })
    const chat = await openSse(transport, version)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    isHeld = true
    const clicked = chat.click({ id, approved: true })
    await arrived.promise
    await expect.poll(() => testBridge.wallet.payments).toHaveLength(1)
    await expectOutcomeAfterStop(chat, clicked)
  })

  test('[CL800] over HTTP, a decision whose response was lost and that is stopped before it is sent again is not shown as open', async () => {
    await using testBridge = await TestBridge.open()
    let isLosing = false
    const transport = sseTransport({
      url: testBridge.url,
      headers: { 'x-api-key': 'hanako' },
      // The test stops the request before the next attempt.
      backoff: { firstMs: 3_600_000, maxMs: 3_600_000 },
      fetch: async (input, init) => {
        const response = await fetch(input, init)
        if (!isLosing || !String(input).endsWith('/stream')) return response
        isLosing = false
        throw new TypeError('network: lost')
      },
    })
    const chat = await openSse(transport, version)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    isLosing = true
    const clicked = chat.click({ id, approved: true })
    await expect.poll(() => testBridge.wallet.payments).toHaveLength(1)
    await expect.poll(() => transport.connection.state).toBe('lost')
    await expectOutcomeAfterStop(chat, clicked)
  })

  test('[CL800] [CL1951] over HTTP, a decision that is stopped before it was sent is open again, and no stop is sent', async () => {
    await using testBridge = await TestBridge.open()
    const requests: string[] = []
    let isOffline = false
    const transport = sseTransport({
      url: testBridge.url,
      headers: { 'x-api-key': 'hanako' },
      fetch: async (input, init) => {
        requests.push(String(input))
        if (isOffline) throw new TypeError('network: offline')
        return fetch(input, init)
      },
    })
    const chat = await openSse(transport, version)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    isOffline = true
    vi.stubGlobal('navigator', { onLine: false })
    const clicked = chat.click({ id, approved: true })
    await expect.poll(() => transport.connection.state).toBe('lost')
    await chat.stop()
    await clicked
    await chat.rest()
    expect(chat.asked).toEqual([id])
    expect(chat.errors).toEqual([])
    expect(chat.error).toBeUndefined()
    vi.unstubAllGlobals()
    isOffline = false
    await chat.click({ id, approved: true })
    await chat.untilShown('Done.')
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(requests.filter((url) => url.includes('/stop'))).toEqual([])
  })

  test('[CL1951] over HTTP, a stop that waits for the connection does not stop the turn of a later decision in the same message', async () => {
    await using testBridge = await TestBridge.open()
    let isHeld = false
    let stops = 0
    const transport = sseTransport({
      url: testBridge.url,
      headers: { 'x-api-key': 'hanako' },
      // The test tries again.
      backoff: { firstMs: 3_600_000, maxMs: 3_600_000 },
      fetch: async (input, init) => {
        if (String(input).includes('/stop')) stops += 1
        if (isHeld && String(input).includes('/stop')) throw new TypeError('network: lost')
        const response = await fetch(input, init)
        if (!isHeld || !String(input).endsWith('/stream')) return response
        return untilAborted(init?.signal)
      },
    })
    const chat = await openSse(transport, version)
    await chat.send(
      `${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say So far.]][[wait more]][[say Done.]]`,
    )
    const [alice = '', bob = ''] = chat.asked
    isHeld = true
    const clicked = chat.click({ id: alice, approved: true })
    await expect.poll(() => testBridge.wallet.payments).toHaveLength(1)
    await chat.stop()
    await clicked
    await expect.poll(() => stops).toBe(1)
    isHeld = false
    void chat.click({ id: bob, approved: true })
    await chat.untilShown('So far.')
    retryConnections()
    // A stop would have been sent before this request.
    await transport.api.listChats()
    expect(stops).toBe(1)
    testBridge.emulator.release('more')
    await chat.untilShown('So far.Done.')
    await chat.rest()
    expect(testBridge.wallet.payments).toHaveLength(2)
    expect(chat.asked).toEqual([])
  })

  test('[CL800] over a socket, a decision that is stopped before it was sent is open again', async () => {
    await using testBridge = await TestBridge.open()
    let isReachable = true
    await using page = new ClientPage({
      url: testBridge.url,
      version,
      live: {
        hold: false,
        url: () => {
          if (!isReachable) throw new TypeError('offline')
          return `${testBridge.url.replace('http', 'ws')}/live`
        },
      },
    })
    const chat = await page.open()
    await chat.send(PAY)
    const [id = ''] = chat.asked
    isReachable = false
    page.cut()
    const clicked = chat.click({ id, approved: true })
    await chat.until(() => chat.status === 'submitted')
    await chat.stop()
    await clicked
    await chat.rest()
    expect(chat.asked).toEqual([id])
    isReachable = true
    await chat.click({ id, approved: true })
    await chat.untilShown('Done.')
    expect(testBridge.wallet.payments).toHaveLength(1)
  })

  test('[CL800] over a socket, a decision whose request is stopped after it has arrived is not shown as open', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version, live: { hold: false } })
    const chat = await page.open()
    await chat.send(PAY)
    const [id = ''] = chat.asked
    // The frame is sent, and nothing arrives.
    page.sockets[0]?.pause()
    const clicked = chat.click({ id, approved: true })
    await expect.poll(() => testBridge.wallet.payments).toHaveLength(1)
    await chat.stop()
    page.sockets[0]?.resume()
    await clicked
    await chat.until(() => toolParts(chat.lastMessage)[0]?.state === 'output-available')
    expect(page.transport.responses.unconfirmed).toEqual(new Set())
    expect(chat.errors).toEqual([])
    expect(chat.error).toBeUndefined()
  })

  test('[CL32] [AP836] of several decisions in one request, those that counted are shown as such', async () => {
    await using testBridge = await TestBridge.open({
      approvals: {
        process_payment: ({ args }) => ({
          deciders: { principals: [args['recipient'] === 'Bob' ? 'taro' : 'hanako'] },
        }),
      },
    })
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await openSse(page.sse(), version)
    await chat.send(ALL)
    const [alice = '', bob = '', carol = ''] = chat.asked
    // The second request contains the decisions that were given during the first one.
    await Promise.all([alice, bob, carol].map((id) => chat.click({ id, approved: true })))
    await chat.rest()
    await chat.until(() => chat.asked.length === 1)
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-available' },
      { state: 'approval-requested', approval: { id: bob } },
      { state: 'output-available' },
    ])
    expect(testBridge.wallet.payments).toHaveLength(2)
    // A turn that was still running has been read since, which clears the error of the chat.
    const [error = chat.error] = chat.errors
    expect(error).toHaveProperty(
      'message',
      'Another person decides this approval. 1 of the 2 decisions of this request took effect. Load the chat to see which.',
    )
  })
})
