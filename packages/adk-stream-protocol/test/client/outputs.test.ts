import { describe, expect, test, vi } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { attachChat, runBrowserTools, sseTransport } from '../../src/client/index.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { FREE_MODEL, TestBridge } from '../approvals/support/test-bridge.ts'
import { defer } from '../support/agents.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { ASK, locationTool, TOKYO } from '../support/locating.ts'
import { ClientPage, openSse, versions } from './support/client-page.ts'
import { CuttableFetch } from './support/cuttable-fetch.ts'

const tools = (): ReturnType<typeof locationTool>[] => [locationTool()]

/** A store that cannot write the position that the page has found until `isAway` is false. */
async function openDisk() {
  const store = await openSqliteStore({ path: ':memory:' })
  const appendEvent = store.sessions.appendEvent.bind(store.sessions)
  const disk = { store, isAway: true, lost: 0 }
  store.sessions.appendEvent = (request) => {
    if (!disk.isAway || !JSON.stringify(request.event).includes('"latitude":35.7'))
      return appendEvent(request)
    disk.lost += 1
    return Promise.reject(new StoreError('unavailable', 'The disk is away.'))
  }
  return disk
}

describe.each(oneOf(versions, 'ai 7'))('$name', (version) => {
  test('[CL26] an output that could not be sent over HTTP is sent again', async () => {
    await using testBridge = await TestBridge.open({ tools })
    const net = new CuttableFetch()
    const headers = { 'x-api-key': 'hanako' }
    const transport = sseTransport({ url: testBridge.url, headers, fetch: net.fetch })
    const chat = await openSse(transport, version)
    let runs = 0
    runBrowserTools(chat.attached, {
      get_location: () => {
        runs += 1
        net.fail(1)
        return TOKYO
      },
    })
    await chat.send(ASK)
    await chat.untilShown('There you are.')
    await chat.rest()
    expect(runs).toBe(1)
    expect(testBridge.lastPrompt).toContain('139.7')
    expect(chat.error).toBeUndefined()
  })

  /** What happens to the request that contains the decision: it fails before or after it has arrived, or a proxy answers. */
  const faults = [
    ['is lost', async () => Promise.reject(new TypeError('network: lost'))],
    [
      'arrives and gets no response',
      async (send: () => Promise<Response>) => {
        await send()
        throw new TypeError('network: lost')
      },
    ],
    ['finds no server', async () => new Response('<html>', { status: 503 })],
  ] as const

  test.each(faults)(
    '[CL530] [CL1952] over HTTP, a request with a decision and an output that %s is sent again, and both count once',
    async (_fault, fail) => {
      await using testBridge = await TestBridge.open({
        tools: (wallet) => [locationTool(), paymentTool(wallet)],
      })
      let failures = 1
      const sent: string[] = []
      const transport = sseTransport({
        url: testBridge.url,
        headers: { 'x-api-key': 'hanako' },
        backoff: { firstMs: 1, maxMs: 5 },
        fetch: async (input, init) => {
          const body = String(init?.body)
          // The output alone finds no server, so that the decision is sent with it.
          if (body.includes('139.7') && !body.includes('"approved"'))
            throw new TypeError('network: lost')
          if (!body.includes('"approved"')) return fetch(input, init)
          sent.push(body)
          failures -= 1
          return failures < 0 ? fetch(input, init) : fail(() => fetch(input, init))
        },
      })
      const chat = await openSse(transport, version)
      await chat.send(`[[call get_location {}]]${callPayment(50)}[[then]][[say There you are.]]`)
      const [approvalId = ''] = chat.asked
      const [{ toolCallId = '' } = {}] = toolParts(chat.lastMessage)
      await chat.give({ tool: 'get_location', toolCallId, output: TOKYO })
      await chat.click({ id: approvalId, approved: true })
      await chat.untilShown('There you are.')
      await chat.rest()
      expect(sent).toHaveLength(2)
      for (const body of sent) expect(body).toContain('139.7')
      expect(testBridge.wallet.payments).toHaveLength(1)
      expect(testBridge.lastPrompt.split('139.7')).toHaveLength(2)
      expect(chat.error).toBeUndefined()
    },
  )

  test('[CL371] [CL900] over HTTP, an output is sent although the decision in the same request was taken back', async () => {
    await using testBridge = await TestBridge.open({
      tools: (wallet) => [locationTool(), paymentTool(wallet)],
    })
    let isOffline = false
    const transport = sseTransport({
      url: testBridge.url,
      headers: { 'x-api-key': 'hanako' },
      fetch: async (input, init) => {
        if (isOffline) throw new TypeError('network: offline')
        return fetch(input, init)
      },
    })
    const chat = await openSse(transport, version)
    await chat.send(`[[call get_location {}]]${callPayment(50)}[[then]][[say There you are.]]`)
    const [approvalId = ''] = chat.asked
    const [{ toolCallId = '' } = {}] = toolParts(chat.lastMessage)
    isOffline = true
    vi.stubGlobal('navigator', { onLine: false })
    void chat.give({ tool: 'get_location', toolCallId, output: TOKYO })
    void chat.click({ id: approvalId, approved: true })
    await expect.poll(() => transport.connection.state, { timeout: 120_000 }).toBe('lost')
    expect(chat.attached.cancelDecision(approvalId)).toBe(true)
    await chat.until(() => chat.asked.length === 1)
    vi.unstubAllGlobals()
    isOffline = false
    const stored = async () => toolParts((await transport.loadMessages('chat-1')).at(-1))
    await expect.poll(stored, { timeout: 120_000 }).toMatchObject([{ output: TOKYO }, {}])
    expect(testBridge.wallet.payments).toEqual([])
    await chat.rest()
    await chat.click({ id: approvalId, approved: true })
    await chat.untilShown('There you are.')
    expect(testBridge.wallet.payments).toHaveLength(1)
  })

  test.each(['live', 'HTTP', 'socket'])(
    '[CL1620] an output that the server has taken and could not store is sent again, %s',
    async (mode) => {
      const disk = await openDisk()
      await using testBridge = await TestBridge.open({
        tools,
        openStore: async () => disk.store,
        isLive: mode === 'live',
      })
      await using page = new ClientPage({ url: testBridge.url, version })
      const chat = mode === 'HTTP' ? await openSse(page.sse(), version) : await page.open()
      let runs = 0
      runBrowserTools(chat.attached, {
        get_location: () => {
          runs += 1
          return TOKYO
        },
      })
      void chat.send(ASK)
      await expect.poll(() => disk.lost).toBeGreaterThan(0)
      disk.isAway = false
      await chat.untilShown('There you are.')
      await chat.rest()
      expect(toolParts(chat.lastMessage)).toMatchObject([{ output: TOKYO }])
      expect(testBridge.lastPrompt).toContain('139.7')
      expect(runs).toBe(1)
    },
  )

  test('[BT1601] a posted result that the server cannot store is refused, and counts when it is sent again', async () => {
    const disk = await openDisk()
    const openStore = async () => disk.store
    await using testBridge = await TestBridge.open({ tools, openStore, isLive: false })
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await openSse(page.sse(), version)
    await chat.send(ASK)
    const [{ toolCallId = '' } = {}] = toolParts(chat.lastMessage)
    const post = async (): Promise<number> => {
      const { status } = await fetch(`${testBridge.url}/chats/chat-1/outputs/${toolCallId}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': 'hanako' },
        body: JSON.stringify({ output: TOKYO }),
      })
      return status
    }
    expect(await post()).toBe(503)
    expect(disk.lost).toBe(1)
    disk.isAway = false
    expect(await post()).toBe(204)
    // Until the turn has ended, its message is not among the stored ones.
    const stored = async () => toolParts((await page.load('chat-1')).at(-1))
    await expect.poll(stored).toMatchObject([{ output: TOKYO }])
  })

  test('[CL26] an output whose socket was given up is sent again over the next one', async () => {
    await using testBridge = await TestBridge.open({ tools, disconnectGraceMs: 60_000 })
    let isThere = true
    const live = {
      url: () =>
        (isThere ? `${testBridge.url}/live` : 'http://127.0.0.1:1/live').replace('http', 'ws'),
      backoff: { firstMs: 1, maxMs: 2, attempts: 2 },
    }
    await using page = new ClientPage({ url: testBridge.url, version, live })
    const chat = await page.open()
    runBrowserTools(chat.attached, {
      get_location: () => {
        isThere = false
        page.cut()
        return TOKYO
      },
    })
    await chat.send(ASK)
    expect(page.transport.connection).toEqual({ state: 'closed' })
    isThere = true
    await chat.untilShown('There you are.')
    expect(toolParts(chat.lastMessage)).toMatchObject([{ output: TOKYO }])
    expect(testBridge.lastPrompt).toContain('139.7')
  })

  test.each(['held', 'HTTP'])(
    '[CL26] the model receives an error for an output that is not JSON, %s',
    async (mode) => {
      await using testBridge = await TestBridge.open({ tools })
      await using page = new ClientPage({ url: testBridge.url, version })
      const chat = mode === 'HTTP' ? await openSse(page.sse(), version) : await page.open()
      const circle: { self?: object } = {}
      circle.self = circle
      runBrowserTools(chat.attached, { get_location: () => circle })
      await chat.send(ASK)
      await chat.untilShown('There you are.')
      expect(toolParts(chat.lastMessage)).toMatchObject([{ state: 'output-error' }])
      expect(testBridge.lastPrompt).toContain('cannot be written')
      // What follows is not delayed.
      await chat.send('[[say Next.]]')
      expect(chat.text).toBe('Next.')
      const bad = { chatId: 'chat-1', toolCallId: 'x', output: circle }
      await expect(page.transport.toolOutput(bad)).rejects.toThrow('circular')
    },
  )

  test.each(['held', 'HTTP'])(
    '[CL33] the output for an older message is delivered, and its outcome is shown in that message, %s',
    async (mode) => {
      await using testBridge = await TestBridge.open({ tools, liveModel: FREE_MODEL })
      await using page = new ClientPage({ url: testBridge.url, version })
      const transport = page.sse()
      const chat = mode === 'HTTP' ? await openSse(transport, version) : await page.open()
      const [begun, release] = [defer(), defer()]
      let runs = 0
      const given = {
        get_location: () => {
          runs += 1
          begun.resolve()
          return release.promise.then(() => TOKYO)
        },
      }
      const end = runBrowserTools(chat.attached, given)
      void chat.send(ASK)
      await begun.promise
      if (mode === 'HTTP') await chat.rest()
      await chat.send('[[say Second.]]')
      await chat.rest()
      release.resolve()
      await chat.until(() => textOf(chat.messages[1]) !== '')
      await chat.rest()
      expect(testBridge.lastPrompt).toContain('139.7')
      expect(chat.messages.map(textOf).at(-1)).toBe('Second.')
      expect(chat.messages).toHaveLength(4)
      expect(chat.error).toBeUndefined()
      end()
      chat.attached.detach()
      const again = mode === 'HTTP' ? await openSse(transport, version) : await page.open()
      runBrowserTools(again.attached, given)
      expect(runs).toBe(1)
    },
  )

  test('[CL28] a chat that is attached twice stays attached until both have detached it', async () => {
    await using testBridge = await TestBridge.open({ tools })
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    const { attached } = chat
    const again = attachChat(attached.chat, page.transport)
    expect(again).toBe(attached)
    again.detach()
    runBrowserTools(attached, { get_location: () => TOKYO })
    await chat.send(ASK)
    expect(chat.text).toBe('There you are.')
    expect(page.types).toEqual(['send', 'tool-output'])
    attached.detach()
    expect(Object.hasOwn(page.transport, 'keep')).toBe(false)
    await chat.send('[[say Bare.]]')
    expect(page.sent.at(-1)).toMatchObject({ body: { hold: false } })
  })
})
