import { randomUUID } from 'node:crypto'

import { type Emulator, startEmulator } from 'gemini-emulator'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { longTest } from '../../../../test/support/long-test.ts'
import { posixTest } from '../../../../test/support/posix-test.ts'
import { bundleChildren } from '../faults/support/children.ts'
import { type Folder, makeFolder } from '../faults/support/folder.ts'
import { Person, readEffects } from '../faults/support/person.ts'
import { ServerPool } from '../faults/support/server-pool.ts'
import { FLASH_LIVE, NATIVE_AUDIO } from '../live/support/reconnecting-run.ts'
import { textOf } from '../support/chat-probe.ts'
import { postgresLeaseTimes } from '../support/lease-times.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { LiveClient, ModelSockets } from './support/live-pair.ts'
import { createRelayDatabase } from './support/relays.ts'

let database: TestDatabase
let emulator: Emulator
let folder: Folder & AsyncDisposable
/** Servers whose live model speaks on while a call waits, and whose live model does not. */
let pool: ServerPool
let waitingPool: ServerPool
beforeAll(async () => {
  database = await createRelayDatabase()
  emulator = await startEmulator()
  folder = await makeFolder()
  const children = await bundleChildren()
  const env = {
    DATABASE_URL: database.url,
    MODEL_URL: emulator.baseUrl,
    GRACE_MS: '60000',
  }
  pool = new ServerPool(children, folder, { ...env, LIVE_MODEL: NATIVE_AUDIO })
  waitingPool = new ServerPool(children, folder, { ...env, LIVE_MODEL: FLASH_LIVE })
})
afterAll(async () => {
  await pool[Symbol.asyncDispose]()
  await waitingPool[Symbol.asyncDispose]()
  await emulator.close()
  await folder[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const PAY = '[[call pay {"to": "花子", "amount": 50}]][[then]][[say All settled.]]'

test('[LV323] [RL30] after kill -9, the live session continues elsewhere with its pending approval and what was said', async () => {
  await using servers = await pool.borrowTwo()
  const { one, two } = servers
  const chatId = `killed-${randomUUID()}`
  const model = new ModelSockets(emulator)
  const atTwo = new Person(two.url, { chatId })
  const first = await LiveClient.join(one.url, chatId)
  await first.say(PAY)
  const speaking = first.begin('[[say Half of it.]][[wait never]]')
  await first.socket.untilText('Half of it.', speaking)
  // The relay has it.
  await expect
    .poll(() => database.run(`SELECT FROM relay_rows WHERE lines LIKE '%Half of it.%'`))
    .not.toHaveLength(0)
  await one.child.kill()
  await postgresLeaseTimes(database).expire()
  await using second = await LiveClient.join(two.url, chatId)
  await second.status('open')
  await expect.poll(async () => (await atTwo.messages()).map(textOf)).toContain('Half of it.')
  const [asked] = await atTwo.approvalsOfChat()
  expect((await atTwo.decide(asked?.id ?? '', { approved: true })).status).toBe(200)
  // The session was restored, so the model receives the result as text.
  await expect
    .poll(async () => textOf((await atTwo.messages())[1]))
    .toContain('[pay returned {"paid":50')
  expect(readEffects(folder.effects).filter((effect) => effect.chatId === chatId)).toHaveLength(1)
  expect(await second.say('[[say And on.]]')).toBe('And on.')
  expect(model).toMatchObject({ most: 1, open: 1 })
  model.stop()
  servers.giveBack(two)
})

/** Joins the chat of a killed server at another one, and approves the call that waits there. */
async function approveAfterCrash(person: Person, chatId: string): Promise<LiveClient> {
  await postgresLeaseTimes(database).expire()
  const client = await LiveClient.join(person.url, chatId)
  await client.status('open')
  const [asked] = await person.approvalsOfChat()
  expect((await person.decide(asked?.id ?? '', { approved: true })).status).toBe(200)
  return client
}

longTest(
  '[LV602] after kill -9, a parked call is decided elsewhere, runs once, and the model receives the outcome once',
  async () => {
    await using servers = await waitingPool.borrowTwo()
    const { one, two } = servers
    const chatId = `parked-${randomUUID()}`
    const atTwo = new Person(two.url, { chatId })
    const first = await LiveClient.join(one.url, chatId)
    await first.say(PAY)
    expect(await first.say('[[say Fifty dollars.]]')).toBe('Fifty dollars.')
    await one.child.kill()
    await using second = await approveAfterCrash(atTwo, chatId)
    await expect
      .poll(async () => textOf((await atTwo.messages())[1]))
      .toMatch(/(?:Result of the call|pay returned).*"paid":50/)
    expect(readEffects(folder.effects).filter((effect) => effect.chatId === chatId)).toHaveLength(1)
    expect(await second.say('[[say And on.]]')).toBe('And on.')
    const history = emulator.live.sessions.at(-1)?.history ?? []
    const fromUser = JSON.stringify(history.filter(({ role }) => role === 'user'))
    expect(fromUser.match(/"paid\\*":50/g)).toHaveLength(1)
  },
)

posixTest(
  '[LV328] a server that was suspended for longer than its lease gives its live session up',
  async () => {
    await using servers = await pool.borrowTwo()
    const { one, two } = servers
    const chatId = `suspended-${randomUUID()}`
    const first = await LiveClient.join(one.url, chatId)
    await first.say('[[say One.]]')
    const [own] = emulator.live.sessions.slice(-1)
    one.child.pause()
    await postgresLeaseTimes(database).expire()
    await using second = await LiveClient.join(two.url, chatId)
    expect(await second.say('[[say Two.]]')).toBe('Two.')
    const frames = own?.received.length
    one.child.resume()
    // It closes its connection by itself, and has sent nothing more to the model.
    await own?.ended
    expect(own?.received).toHaveLength(frames ?? 0)
    await first[Symbol.asyncDispose]()
    expect(await second.say('[[say Three.]]')).toBe('Three.')
    const texts = (await new Person(two.url, { chatId }).messages()).map(textOf)
    expect(texts.filter((_, index) => index % 2 === 1)).toEqual(['One.', 'Two.', 'Three.'])
    servers.giveBack(one, two)
  },
)

longTest(
  '[LV490] after kill -9, a call that waits inside agents is decided elsewhere and runs once',
  async () => {
    await using servers = await pool.borrowTwo()
    const { one, two } = servers
    const chatId = `nested-${randomUUID()}`
    const atTwo = new Person(two.url, { chatId })
    const first = await LiveClient.join(one.url, chatId)
    const desk = `[[call desk ${JSON.stringify({ request: PAY })}]][[then]][[say Passed on.]]`
    await first.say(`[[call agency ${JSON.stringify({ request: desk })}]][[then]][[say Told.]]`)
    await one.child.kill()
    await using second = await approveAfterCrash(atTwo, chatId)
    await expect
      .poll(async () => JSON.stringify(await atTwo.messages()))
      .toContain('"output":{"result":"Passed on."}')
    expect(readEffects(folder.effects).filter((effect) => effect.chatId === chatId)).toHaveLength(1)
    expect(await second.say('[[say And on.]]')).toBe('And on.')
  },
)
