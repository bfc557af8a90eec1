import { afterEach, describe, expect, test, vi } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { type AttachedChat, runBrowserTools, sseTransport } from '../../src/client/index.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { defer } from '../support/agents.ts'
import { toolParts } from '../support/chat-probe.ts'
import { ASK, locationTool, TOKYO } from '../support/locating.ts'
import { type ClientChat, ClientPage, openSse, versions } from './support/client-page.ts'
import { CuttableFetch } from './support/cuttable-fetch.ts'
import { FakeLocks } from './support/fake-locks.ts'

afterEach(() => vi.unstubAllGlobals())

describe.each(oneOf(versions, 'ai 6'))('$name', (version) => {
  test.each([true, false])(
    '[CL25] of two tabs that show a call, one runs it; gated: %s',
    async (gated) => {
      const locks = new FakeLocks()
      vi.stubGlobal('navigator', { locks })
      await using testBridge = await TestBridge.open({ tools: () => [locationTool({ gated })] })
      await using pageOne = new ClientPage({ url: testBridge.url, version })
      await using pageTwo = new ClientPage({ url: testBridge.url, version })
      const [one, two] = [await pageOne.open(), await pageTwo.open()]
      let runs = 0
      const run = (): object => {
        runs += 1
        return TOKYO
      }
      // Slow enough for the other tab to see the call.
      const release = defer()
      const tools = { get_location: () => release.promise.then(run) }
      runBrowserTools(one.attached, tools)
      runBrowserTools(two.attached, tools)
      void one.send(ASK)
      if (gated) await one.untilAsked()
      else await one.until(() => toolParts(one.lastMessage).length === 1)
      void two.resume()
      if (gated) {
        const [id = ''] = await two.untilAsked()
        await two.attached.approve(id)
      }
      await two.until(() => toolParts(two.lastMessage).length === 1)
      await vi.waitFor(() => expect(locks.held.size).toBe(1), { timeout: 120_000, interval: 10 })
      release.resolve()
      await Promise.all([one.untilShown('There you are.'), two.untilShown('There you are.')])
      expect(runs).toBe(1)
      expect([...one.errors, ...two.errors]).toEqual([])
    },
  )

  test.each(['gone', 'done', 'taken'])(
    '[CL25] a call of a closed tab runs in an open one, unless the server has its output; %s',
    async (how) => {
      const locks = new FakeLocks()
      vi.stubGlobal('navigator', { locks })
      await using testBridge = await TestBridge.open({ tools: () => [locationTool()] })
      await using pageOne = new ClientPage({ url: testBridge.url, version })
      await using pageTwo = new ClientPage({ url: testBridge.url, version })
      const one = await openSse(pageOne.sse(), version)
      const [begun, release] = [defer(), defer()]
      let runs = 0
      runBrowserTools(one.attached, {
        get_location: () => {
          begun.resolve()
          return release.promise.then(() => TOKYO)
        },
      })
      void one.send('[[call get_location {}]][[then]][[wait reply]][[say There you are.]]')
      await begun.promise
      await one.rest()
      const two = await openSse(pageTwo.sse(), version)
      runBrowserTools(two.attached, {
        get_location: () => {
          runs += 1
          return TOKYO
        },
      })
      await vi.waitFor(() => expect(locks.waiting).toBe(1), { timeout: 120_000, interval: 10 })
      if (how !== 'gone') {
        const taken = testBridge.untilAsked('139.7')
        release.resolve()
        await taken
      }
      if (how === 'done') {
        testBridge.emulator.release('reply')
        await one.untilShown('There you are.')
        await one.rest()
      }
      one.attached.detach()
      for (const name of locks.held) locks.free(name)
      // The tab has loaded the chat, without the reply that is being written.
      await two.attached.catchUp()
      testBridge.emulator.release('reply')
      await two.untilShown('There you are.')
      expect(runs).toBe(how === 'gone' ? 1 : 0)
      expect(testBridge.lastPrompt).toContain('139.7')
    },
  )

  test('[CL25] a tab that cannot load the chat does not run a call that has its output', async () => {
    const locks = new FakeLocks()
    vi.stubGlobal('navigator', { locks })
    await using testBridge = await TestBridge.open({ tools: () => [locationTool()] })
    const headers = { 'x-api-key': 'hanako' }
    const one = await openSse(sseTransport({ url: testBridge.url, headers }), version)
    const release = defer()
    runBrowserTools(one.attached, { get_location: () => release.promise.then(() => TOKYO) })
    await one.send(ASK)
    const net = new CuttableFetch()
    const two = await openSse(
      sseTransport({ url: testBridge.url, headers, fetch: net.fetch }),
      version,
    )
    let runs = 0
    runBrowserTools(two.attached, { get_location: () => void (runs += 1) })
    await vi.waitFor(() => expect(locks.waiting).toBe(1), { timeout: 120_000, interval: 10 })
    release.resolve()
    await one.untilShown('There you are.')
    one.attached.detach()
    net.fail(1)
    for (const name of locks.held) locks.free(name)
    await two.until(() => two.errors.length > 0)
    await two.rest()
    expect(runs).toBe(0)
  })

  test.each(['before', 'after'])(
    '[CL25] the output of a tool that ends while its chat is closed is sent by the chat that is opened %s it',
    async (when) => {
      vi.stubGlobal('navigator', { locks: new FakeLocks() })
      await using testBridge = await TestBridge.open({ tools: () => [locationTool()] })
      await using page = new ClientPage({ url: testBridge.url, version })
      const left = await page.open()
      const { tools, begun, release, run } = heldLocation()
      runBrowserTools(left.attached, tools)
      void left.send(ASK)
      await begun.promise
      left.attached.detach()
      await left.rest()
      if (when === 'after') {
        release.resolve()
        await page.transport.ping()
      }
      const chat = await page.open()
      runBrowserTools(chat.attached, tools)
      void chat.resume()
      await chat.until(() => toolParts(chat.lastMessage).length === 1)
      release.resolve()
      await chat.untilShown('There you are.')
      expect(run.count).toBe(1)
      expect(testBridge.lastPrompt).toContain('139.7')
    },
  )

  test.each([
    { left: 'HTTP', hasLocks: true },
    { left: 'HTTP', hasLocks: false },
    { left: 'socket', hasLocks: true },
    { left: 'socket', hasLocks: false },
  ])(
    '[CL25] a tool that runs while its page changes to a chat with another transport runs once, and that chat sends the output: $left, locks: $hasLocks',
    async ({ left: from, hasLocks }) => {
      vi.stubGlobal('document', new EventTarget())
      if (hasLocks) vi.stubGlobal('navigator', { locks: new FakeLocks() })
      await using testBridge = await TestBridge.open({ tools: () => [locationTool()] })
      await using page = new ClientPage({ url: testBridge.url, version })
      const overHttp = (): Promise<ClientChat> => openSse(page.sse(), version)
      const left = from === 'HTTP' ? await overHttp() : await page.open()
      const { tools, begun, release, run } = heldLocation()
      runBrowserTools(left.attached, tools)
      void left.send(ASK)
      await begun.promise
      left.attached.detach()
      await left.rest()
      const chat = from === 'HTTP' ? await page.open() : await overHttp()
      runBrowserTools(chat.attached, tools)
      void chat.resume()
      await chat.until(() => toolParts(chat.lastMessage).length === 1)
      release.resolve()
      await chat.untilShown('There you are.')
      expect(run.count).toBe(1)
      expect(testBridge.lastPrompt).toContain('139.7')
      expect(chat.errors).toEqual([])
    },
  )

  test.each(['held', 'HTTP'])(
    '[CL12] a call whose approval request comes late does not run before it, in any tab, %s',
    async (mode) => {
      vi.stubGlobal('navigator', { locks: new FakeLocks() })
      const late = defer()
      const tool = locationTool({ gated: () => late.promise.then(() => true) })
      await using testBridge = await TestBridge.open({ tools: () => [tool] })
      await using page = new ClientPage({ url: testBridge.url, version })
      await using other = new ClientPage({ url: testBridge.url, version })
      const open = ({ sse }: { sse: boolean }, shown: ClientPage): Promise<ClientChat> =>
        sse ? openSse(shown.sse(), version) : shown.open()
      const chat = await open({ sse: mode === 'HTTP' }, page)
      const run = countRuns(chat.attached)
      void chat.send(ASK)
      await chat.until(() => toolParts(chat.lastMessage)[0]?.state === 'input-available')
      const tab = await open({ sse: mode === 'HTTP' }, other)
      const runInTab = countRuns(tab.attached)
      const count = (): number => run.count + runInTab.count
      void tab.resume()
      await tab.until(() => toolParts(tab.lastMessage)[0]?.state === 'input-available')
      // Time enough for a page that does not wait.
      await Promise.all([chat.attached.catchUp(), tab.attached.catchUp(), page.load('chat-1')])
      expect(count()).toBe(0)
      late.resolve()
      const [id = ''] = await chat.untilAsked()
      expect(count()).toBe(0)
      await chat.attached.approve(id)
      await chat.untilShown('There you are.')
      expect(count()).toBe(1)
    },
  )

  test.each(['breaks off', 'is stopped'])(
    '[CL12] a call whose reply %s before its approval request does not run',
    async (end) => {
      const late = defer()
      const tool = locationTool({ gated: () => late.promise.then(() => true) })
      await using testBridge = await TestBridge.open({ tools: () => [tool] })
      const net = new CuttableFetch()
      const transport = sseTransport({
        url: testBridge.url,
        headers: { 'x-api-key': 'hanako' },
        fetch: net.fetch,
        backoff: { firstMs: 1, maxMs: 1, attempts: 1 },
      })
      const chat = await openSse(transport, version)
      const run = countRuns(chat.attached)
      const reply = chat.send(ASK)
      await chat.until(() => toolParts(chat.lastMessage)[0]?.state === 'input-available')
      if (end === 'is stopped') await chat.stop()
      else {
        net.fail(1_000)
        net.cut()
      }
      await reply
      await chat.rest()
      expect(run.count).toBe(0)
      late.resolve()
    },
  )

  test('[CL12] a gated browser tool runs over HTTP after its approval', async () => {
    await using testBridge = await TestBridge.open({ tools: () => [locationTool({ gated: true })] })
    const transport = sseTransport({ url: testBridge.url, headers: { 'x-api-key': 'hanako' } })
    const chat = await openSse(transport, version)
    const run = countRuns(chat.attached)
    await chat.send(ASK)
    expect(run.count).toBe(0)
    const [id = ''] = await chat.untilAsked()
    await chat.attached.approve(id)
    await chat.untilShown('There you are.')
    await chat.rest()
    expect(run.count).toBe(1)
    expect(chat.errors).toEqual([])
  })
})

/** A tool that waits in each run until it is released. */
function heldLocation() {
  const [begun, release] = [defer(), defer()]
  const run = { count: 0 }
  const tools = {
    get_location: () => {
      run.count += 1
      begun.resolve()
      return release.promise.then(() => TOKYO)
    },
  }
  return { tools, begun, release, run }
}

/** Runs the tool `get_location` in a page, and counts how often. */
function countRuns(attached: AttachedChat): { readonly count: number } {
  const run = { count: 0 }
  runBrowserTools(attached, {
    get_location: () => {
      run.count += 1
      return TOKYO
    },
  })
  return run
}
