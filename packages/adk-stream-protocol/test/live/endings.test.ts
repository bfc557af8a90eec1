import { expect, test } from 'vitest'

import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import type { Office } from '../approvals/support/office.ts'
import { defer, tool } from '../support/agents.ts'
import { serve } from '../support/serve.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { framesOf, joinLive, openLiveOffice } from './support/live-office.ts'
import { speakInJson } from './support/voice.ts'

/** An office in which somebody waits for a tool that takes its time, so that closing takes as long. */
async function openSlowToClose(): Promise<{ office: Office; finish: () => void }> {
  const called = defer()
  const gate = defer()
  const slow = tool('slow', async () => {
    called.resolve()
    await gate.promise
    return { done: true }
  })
  const office = await openLiveOffice({ tools: () => [slow] })
  const parts = [{ type: 'text', text: '[[call slow {}]]' }]
  const request = { id: 'elsewhere', messages: [{ id: 'u1', role: 'user', parts }] }
  // It is read until the server closes.
  void office.page('taro').post(request)
  await called.promise
  return { office, finish: gate.resolve }
}

test('[LV36] a server that closes begins no conversation for those who still speak', async () => {
  const { office, finish } = await openSlowToClose()
  const { emulator } = office
  await using client = await joinLive(office)
  client.send({ type: 'watch', id: 'chat-1' })
  await client.next((frame) => frame['status'] === 'open')
  const closing = office[Symbol.asyncDispose]()
  await client.next(() => framesOf(client, 'status').at(-1)?.['status'] === 'closed')
  speakInJson(client)
  expect(await client.nextOf('refused')).toMatchObject({ frame: 'audio', code: 'unavailable' })
  client.say('[[say One.]]')
  expect(await client.nextOf('error', 'r1')).toMatchObject({ code: 'unavailable' })
  finish()
  await closing
  expect(emulator.live.sessions).toHaveLength(1)
})

test('[LV36] a conversation that is being begun when the server closes is not begun', async () => {
  const store = await openSqliteStore({ path: ':memory:' })
  const database = defer<Store>()
  await using server = await serve({
    store: database.promise,
    authenticate: () => ({ id: 'hanako' }),
    live: (model) => ({ model }),
  })
  await using client = await SocketClient.open(server.url)
  client.send({ type: 'watch', id: 'chat-1' })
  await client.sync()
  const closing = server.bridge.close()
  database.resolve(store)
  expect(await client.nextOf('refused')).toMatchObject({ frame: 'watch', code: 'unavailable' })
  await closing
  await store.close()
  expect(server.emulator.live.sessions).toHaveLength(0)
})
