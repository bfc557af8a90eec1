import { afterAll, beforeAll, expect, test } from 'vitest'

import { OPEN_RUN_LOCK } from '../../src/locks/lock-names.ts'
import { postgresLeaseTimes } from '../support/lease-times.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { openLivePair } from './support/live-pair.ts'
import { createRelayDatabase } from './support/relays.ts'

// The leases of other tests do not expire.
let database: TestDatabase
beforeAll(async () => {
  database = await createRelayDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const PAY = '[[call pay {"to": "花子", "amount": 50}]][[then]][[say All settled.]]'

test('[LV328] a server that could not reach the database for longer than its lease gives its live session up', async () => {
  await using pair = await openLivePair(database, 'away-live')
  await using first = await pair.join('one')
  await first.say(PAY)
  const [own] = pair.emulator.live.sessions
  {
    using _ = pair.disconnect()
    await postgresLeaseTimes(database).expire()
    await using second = await pair.join('two')
    expect(await second.say('[[say Two.]]')).toBe('Two.')
  }
  await own?.ended
})

test('[LV328] a server whose held stream another server has continued without a live session ends the stream', async () => {
  await using pair = await openLivePair(database, 'continued-live')
  await using first = await pair.join('one')
  const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: PAY }] }]
  const body = { hold: true }
  first.socket.send({ type: 'send', requestId: 'r1', id: pair.chatId, messages, body })
  const has = (name: string): boolean => first.socket.chunks().some(({ type }) => type === name)
  await first.socket.next(() => has('tool-approval-request'))
  const [own] = pair.emulator.live.sessions
  // The state after another server has taken the chat over, and has released it.
  await database.run(`DELETE FROM chat_locks WHERE chat_id = $1 AND NOT app_name LIKE $2`, [
    pair.chatId,
    `%${OPEN_RUN_LOCK}`,
  ])
  await first.socket.nextOf('end', 'r1')
  expect(has('error')).toBe(true)
  await own?.ended
  expect(JSON.parse((await pair.atOne.get(`/chats/${pair.chatId}/messages`)).body)).toMatchObject({
    running: false,
  })
})
