import { describe, expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { attachChat, runBrowserTools, sseTransport } from '../../src/client/index.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { StoreError } from '../../src/store/store-error.ts'
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
