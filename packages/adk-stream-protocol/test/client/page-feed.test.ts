import { afterEach, expect, test, vi } from 'vitest'

import { adkApi } from '../../src/client/index.ts'
import { createHttp } from '../../src/client/api/http.ts'
import type { WatchEvent } from '../../src/client/api/watch-feed.ts'
import { PageFeed } from '../../src/client/api/watch-feed.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'

const HEADERS = { 'x-api-key': 'hanako' }

/** Records the events of a listener. `until` resolves when it has received this many events of a type. */
class EventRecorder {
  readonly events: WatchEvent<{ readonly type: string }>[] = []
  readonly listener = (event: WatchEvent<{ readonly type: string }>): void => {
    this.events.push(event)
  }

  types(): string[] {
    return this.events.map(({ type }) => type)
  }

  async until(type: string, times = 1): Promise<void> {
    await vi.waitUntil(() => this.types().filter((each) => each === type).length >= times, WAIT)
  }
}

const WAIT = { timeout: 120_000, interval: 5 }

/** A page that is visible or hidden. */
class FakePage extends EventTarget {
  visibilityState: 'visible' | 'hidden' = 'visible'

  show(state: 'visible' | 'hidden'): void {
    this.visibilityState = state
    this.dispatchEvent(new Event('visibilitychange'))
  }
}

afterEach(() => vi.unstubAllGlobals())

test('[CL29] all listeners of one api share one connection, and each gets its own events', async () => {
  await using testBridge = await TestBridge.open()
  const asked: string[] = []
  const fetch: typeof globalThis.fetch = (input, init) => {
    asked.push(String(input).slice(testBridge.url.length))
    return globalThis.fetch(input, init)
  }
  const api = adkApi({ url: testBridge.url, headers: HEADERS, fetch })
  const [lists, chat, other, late] = [
    new EventRecorder(),
    new EventRecorder(),
    new EventRecorder(),
    new EventRecorder(),
  ]
  const ends = [
    api.watch(lists.listener),
    api.watchChat('chat-1', chat.listener),
    api.watchChat('chat-2', other.listener),
  ]
  for (const each of [lists, chat, other]) await each.until('open')
  ends.push(api.watchChat('chat-1', late.listener))
  await late.until('open')
  const messages = [{ role: 'user', content: callPayment(50) }]
  await testBridge.page().post({ chatId: 'chat-1', messages })
  for (const each of [lists, chat, late]) await each.until('approval')
  await lists.until('chat')
  for (const each of [chat, late]) await each.until('stored')
  expect(asked).toEqual(['/events'])
  for (const type of ['turn', 'stored']) expect(lists.types()).not.toContain(type)
  // A busy server may report what is stored more than once.
  for (const each of [chat, late])
    expect([...new Set(each.types())]).toEqual(['open', 'turn', 'approval', 'stored'])
  const [waiting] = await testBridge.page().inbox()
  const approval = { type: 'approval', approvalId: waiting?.id, state: 'requested' }
  expect(chat.events).toContainEqual(approval)
  expect(other.types()).toEqual(['open'])
  for (const end of ends) end()
  // The next one opens another.
  const again = new EventRecorder()
  const end = api.watch(again.listener)
  await again.until('open')
  end()
  expect(again.events).toEqual([{ type: 'open', again: false }])
  expect(asked).toEqual(['/events', '/events'])
})

test('[CL29] a hidden page closes its feed, and catches up when it is visible', async () => {
  await using testBridge = await TestBridge.open({ limits: { maxFeedsPerPrincipal: 1 } })
  const tab = new FakePage()
  vi.stubGlobal('document', tab)
  const feed = new PageFeed(createHttp({ url: testBridge.url, headers: HEADERS }), 1)
  const recorder = new EventRecorder()
  const end = feed.watch(recorder.listener)
  await recorder.until('open')
  tab.show('hidden')
  // Another page can then open a feed.
  const another = async (): Promise<number> => {
    const response = await fetch(`${testBridge.url}/events`, { headers: HEADERS })
    await response.body?.cancel()
    return response.status
  }
  await expect.poll(another, WAIT).toBe(200)
  expect(recorder.events).toEqual([{ type: 'open', again: false }])
  tab.show('visible')
  await vi.waitFor(
    () => expect(recorder.events).toContainEqual({ type: 'open', again: true }),
    WAIT,
  )
  end()
})
