import { afterEach, expect, test, vi } from 'vitest'

import { LiveWatchers } from '../../src/modules/live/session/live-watchers.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { joinLive, openLiveTestBridge } from './support/live-test-bridge.ts'

test.each([
  ['live', () => openLiveTestBridge()],
  ['turn by turn', () => TestBridge.open({ live: undefined as never, disconnectGraceMs: 60_000 })],
])(
  '[WS5] %s, a client that closed its socket counts as no reader: another one stops the reply',
  async (_, openTestBridge) => {
    await using testBridge = await openTestBridge()
    await using first = await joinLive(testBridge)
    await using second = await joinLive(testBridge)
    first.say('[[say One.]][[wait never]]')
    await first.untilText('One.')
    second.resume('r2')
    await second.untilText('One.', 'r2')
    first.socket.close(1000)
    // Like a suspended page, it does not read the server's close frame: the connection stays open.
    first.socket.pause()
    await second.sync()
    second.send({ type: 'abort', requestId: 'r2' })
    // If the first still counted as a reader, the reply would continue for its grace period.
    await vi.waitFor(
      async () => {
        const messages = await testBridge.page().messages()
        expect(messages.at(-1)).toMatchObject({ metadata: { stopped: true } })
      },
      { timeout: 120_000, interval: 10 },
    )
    first.socket.resume()
    expect(await first.closed).toBe(1000)
  },
)

/** The number of clients in all conversations. */
function countMembers(): () => number {
  const joined = vi.spyOn(LiveWatchers.prototype, 'add')
  const left = vi.spyOn(LiveWatchers.prototype, 'delete')
  return () => joined.mock.calls.length - left.mock.calls.length
}

afterEach(() => vi.restoreAllMocks())

test('[LV37] frames for chats without a conversation leave the client in none of them', async () => {
  await using testBridge = await openLiveTestBridge({ limits: { maxLiveChatsPerPrincipal: 2 } })
  const members = countMembers()
  await using client = await joinLive(testBridge)
  client.resume('r1', 'invented-1')
  expect(await client.nextOf('no-active', 'r1')).toBeDefined()
  const messages = [{ id: 'a', role: 'assistant', parts: [] }]
  const nothing = { trigger: 'submit-message', messages, headers: {}, body: {} }
  client.send({ type: 'send', requestId: 'r2', id: 'invented-2', ...nothing })
  expect(await client.nextOf('error', 'r2')).toMatchObject({ code: 'nothing-new' })
  await client.sync()
  expect(members()).toBe(0)
  for (const id of ['chat-1', 'chat-2']) {
    client.say('[[say Hi.]]', id, id)
    await client.nextOf('end', id)
  }
  expect(members()).toBe(2)
  client.say('[[say No.]]', 'r3', 'invented-3')
  expect(await client.nextOf('error', 'r3')).toMatchObject({ code: 'too-many-live-chats' })
  client.send({ type: 'watch', id: 'invented-4' })
  expect(await client.nextOf('refused')).toMatchObject({ code: 'too-many-live-chats' })
  await using another = await joinLive(testBridge)
  another.send({ type: 'watch', id: 'invented-5' })
  expect(await another.nextOf('refused')).toMatchObject({ code: 'too-many-live-chats' })
  another.say('[[say No.]]', 'r1', 'invented-6')
  expect(await another.nextOf('error', 'r1')).toMatchObject({ code: 'too-many-live-chats' })
  await another.sync()
  expect(members()).toBe(2)
})

test('[LV19] if one of two clients leaves a chat, the conversation stays open for the other', async () => {
  await using testBridge = await openLiveTestBridge({ live: { graceMs: 20 } })
  await using staying = await joinLive(testBridge)
  const leaving = await joinLive(testBridge)
  staying.say('[[say One.]]')
  await staying.nextOf('end', 'r1')
  leaving.say('[[say Two.]]')
  await leaving.nextOf('end', 'r1')
  const [session] = testBridge.emulator.live.sessions
  let ended = false
  void session?.ended.then(() => (ended = true))
  await leaving[Symbol.asyncDispose]()
  // By then, a conversation without clients has ended.
  const other = await joinLive(testBridge, 'taro')
  other.say('[[say Mine.]]')
  await other.nextOf('end', 'r1')
  const [, second] = testBridge.emulator.live.sessions
  await other[Symbol.asyncDispose]()
  await second?.ended
  expect(ended).toBe(false)
})
