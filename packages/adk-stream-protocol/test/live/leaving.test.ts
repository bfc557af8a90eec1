import { afterEach, expect, test, vi } from 'vitest'

import { LiveWatchers } from '../../src/live/live-watchers.ts'
import { Office } from '../approvals/support/office.ts'
import { joinLive, openLiveOffice } from './support/live-office.ts'

test.each([
  ['live', () => openLiveOffice()],
  ['turn by turn', () => Office.open({ live: undefined as never, disconnectGraceMs: 60_000 })],
])(
  '[WS24] %s, who said goodbye reads no more: another page stops the answer',
  async (_, openOffice) => {
    await using office = await openOffice()
    await using first = await joinLive(office)
    await using second = await joinLive(office)
    first.say('[[say One.]][[wait never]]')
    await first.untilText('One.')
    second.resume('r2')
    await second.untilText('One.', 'r2')
    first.socket.close(1000)
    // It does not read the server's answer to that, as a page does that was put to sleep: the connection stays.
    first.socket.pause()
    await second.sync()
    second.send({ type: 'abort', requestId: 'r2' })
    // Had the first still counted, the answer would go on for its time of grace.
    await vi.waitFor(async () => {
      const messages = await office.page().messages()
      expect(messages.at(-1)).toMatchObject({ metadata: { stopped: true } })
    })
    first.socket.resume()
    expect(await first.closed).toBe(1000)
  },
)

/** How many clients are in any conversation. */
function countMembers(): () => number {
  const joined = vi.spyOn(LiveWatchers.prototype, 'add')
  const left = vi.spyOn(LiveWatchers.prototype, 'delete')
  return () => joined.mock.calls.length - left.mock.calls.length
}

afterEach(() => vi.restoreAllMocks())

test('[LV43] whoever names chats in which nothing happens is in none of them', async () => {
  await using office = await openLiveOffice({ limits: { maxLiveChatsPerPrincipal: 2 } })
  const members = countMembers()
  await using client = await joinLive(office)
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
  await using another = await joinLive(office)
  another.send({ type: 'watch', id: 'invented-5' })
  expect(await another.nextOf('refused')).toMatchObject({ code: 'too-many-live-chats' })
  another.say('[[say No.]]', 'r1', 'invented-6')
  expect(await another.nextOf('error', 'r1')).toMatchObject({ code: 'too-many-live-chats' })
  await another.sync()
  expect(members()).toBe(2)
})

test('[LV19] of two who talk in a chat, the one who stays keeps the conversation', async () => {
  await using office = await openLiveOffice({ live: { graceMs: 20 } })
  await using staying = await joinLive(office)
  const leaving = await joinLive(office)
  staying.say('[[say One.]]')
  await staying.nextOf('end', 'r1')
  leaving.say('[[say Two.]]')
  await leaving.nextOf('end', 'r1')
  const [session] = office.emulator.live.sessions
  let ended = false
  void session?.ended.then(() => (ended = true))
  await leaving[Symbol.asyncDispose]()
  // A conversation that is left is over by then.
  const other = await joinLive(office, 'taro')
  other.say('[[say Mine.]]')
  await other.nextOf('end', 'r1')
  const [, second] = office.emulator.live.sessions
  await other[Symbol.asyncDispose]()
  await second?.ended
  expect(ended).toBe(false)
})
