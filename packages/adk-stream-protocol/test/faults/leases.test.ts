import { writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'

import Database from 'libsql'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'

import { openSqliteStore } from '../../src/store/index.ts'
import { oneOf } from '../../../../test/support/long-run.ts'
import { posixTest } from '../../../../test/support/posix-test.ts'
import { textOf } from '../support/chat-probe.ts'
import type { LeaseTimes } from '../support/lease-times.ts'
import { bundleChildren, type Child, type Children } from './support/children.ts'
import { databases, type SharedDatabase } from './support/databases.ts'
import { type Folder, makeFolder } from './support/folder.ts'
import { JUMP_TABLE } from './support/jumping-store.ts'
import { type Asked, Person, readEffects } from './support/person.ts'

const POLLING = { timeout: 120_000, interval: 50 }
/** Longer than the other process takes for a transaction. */
const LOCK_MS = 5_000
/** The lease by which the second process judges the others. No test waits for it: a process may get no CPU time for seconds. */
const LEASE_MS = 60_000
/** Processes with this lease renew it every second. */
const RENEWED_OFTEN = { LEASE_MS: '3000' }

/** The behaviour after a lost lock does not depend on the database. The leases of each database have their own tests. */
const usedDatabases = oneOf(databases, 'SQLite')

let children: Children
/** The server processes of the current test. */
let servers: Servers
const started = new Map<string, Servers>()

beforeAll(async () => {
  children = await bundleChildren()
  for (const { name, open } of usedDatabases) started.set(name, await startServers(await open()))
})

beforeEach(() => useServersOn('SQLite'))
afterEach(() => servers.a.resume())
afterAll(async () => {
  for (const each of started.values()) await each[Symbol.asyncDispose]()
})

function useServersOn(name: string): void {
  const found = started.get(name)
  if (found === undefined) throw new Error(`There are no servers on ${name}.`)
  servers = found
}

/** Two server processes on one database, and the same people at both. Each test uses chats of its own. */
interface Servers extends AsyncDisposable {
  readonly a: Child
  readonly folder: Folder
  readonly leases: LeaseTimes
  /** The SQLite database, in which a test sets the clock of all processes. */
  readonly database: Database.Database
  atA(chatId: string): Person
  atB(chatId: string): Person
}

async function startServers(shared: SharedDatabase): Promise<Servers> {
  const folder = await makeFolder()
  await (await openSqliteStore({ path: folder.database })).close()
  const database = new Database(folder.database, { timeout: LOCK_MS })
  database.exec(`CREATE TABLE ${JUMP_TABLE} (ms INTEGER); INSERT INTO ${JUMP_TABLE} VALUES (0)`)
  const a = children.start(folder, 'a', { ...shared.env, ...RENEWED_OFTEN })
  const b = children.start(folder, 'b', { ...shared.env, LEASE_MS: String(LEASE_MS) })
  const [urlA, urlB] = await Promise.all([a.serve(), b.serve()])
  return {
    a,
    folder,
    leases: shared.leases(folder),
    database,
    atA: (chatId) => new Person(urlA, { user: chatId, chatId }),
    atB: (chatId) => new Person(urlB, { user: chatId, chatId }),
    async [Symbol.asyncDispose]() {
      // A suspended process would never end.
      a.resume()
      await Promise.all([a.kill(), b.kill()])
      database.close()
      await folder[Symbol.asyncDispose]()
      await shared[Symbol.asyncDispose]()
    },
  }
}

/** Starts the tool of a chat in a process, by a decision in the stream or in the inbox. */
async function beginAt(
  child: Child,
  person: Person,
  by: 'stream' | 'inbox',
): Promise<{ asked: Asked; answer: Promise<Response> }> {
  const tool = person.chatId.endsWith('top_up') ? 'top_up' : 'pay'
  const asked = await person.ask(`[[call ${tool} {"to": "花子", "amount": 50}]]`)
  const approval = { approved: true }
  const part = { type: `tool-${tool}` }
  const answer =
    by === 'stream'
      ? person.beginAnswer(asked, approval, part)
      : person.decide(asked.approvalId, approval).then(({ body }) => new Response(body))
  await child.waitForLine((line) => line === `at ${person.chatId}`)
  return { asked, answer }
}

function beginAtA(chatId: string, by: 'stream' | 'inbox' = 'stream') {
  return beginAt(servers.a, servers.atA(chatId), by)
}

async function readOutcome(person: Person, { approvalId }: Asked): Promise<readonly unknown[]> {
  const { approval, history } = (await person.approval(approvalId)) ?? {}
  return [approval?.state, ...(history ?? []).map(({ type }) => type)]
}

const WHOLE = ['succeeded', 'requested', 'approved', 'started', 'succeeded']

/** Ends the block of the event loop of a process. */
async function unblock(chatId: string): Promise<void> {
  await writeFile(`${servers.folder.effects}.${chatId}.go`, '')
}

posixTest(
  '[LG36] a process keeps its calls when the clock is set forwards and backwards',
  async () => {
    const chats = [0, 1, 2, 3].flatMap((n) => [`a.hold.${n}.pay`, `a.hold.${n}.top_up`])
    const begun = await Promise.all(chats.map((chatId) => beginAtA(chatId, 'inbox')))
    for (const jump of [60_000, -60_000, 0]) {
      servers.database.exec(`UPDATE ${JUMP_TABLE} SET ms = ${jump}`)
      await servers.leases.passWhileRenewed(LEASE_MS)
    }
    servers.a.writeLine('go')
    for (const [index, chatId] of chats.entries()) {
      const asked = begun[index]?.asked ?? { approvalId: '', toolCallId: '', messageId: '' }
      const outcome = () => readOutcome(servers.atB(chatId), asked)
      await expect.poll(outcome, POLLING).toEqual(WHOLE)
      expect([chatId, readEffects(servers.folder.effects, chatId).length]).toEqual([chatId, 1])
    }
  },
)

posixTest(
  '[LG81] a process whose event loop is blocked for several leases keeps its calls',
  async () => {
    const chatId = 'a.block.pay'
    const { asked, answer } = await beginAtA(chatId)
    await servers.leases.passWhileRenewed(LEASE_MS)
    await unblock(chatId)
    expect(await (await answer).text()).toContain('"type":"tool-output-available"')
    expect(await readOutcome(servers.atB(chatId), asked)).toEqual(WHOLE)
    expect(readEffects(servers.folder.effects, chatId)).toHaveLength(1)
  },
)

posixTest('[LG81] a process whose event loop is blocked for too long loses its calls', async () => {
  const env = { LEASE_MS: '500', MAX_BLOCKED_MS: '1000' }
  await using child = children.start(servers.folder, 'c', env)
  const chatId = 'c.block.pay'
  const atC = new Person(await child.serve(), { user: chatId, chatId })
  const { asked, answer } = await beginAt(child, atC, 'stream')
  const lost = ['unknown', 'requested', 'approved', 'started', 'lost']
  const outcome = () => readOutcome(servers.atB(chatId), asked)
  const later = async () => {
    await servers.leases.age(LEASE_MS / 2)
    return outcome()
  }
  // As long as it renews its lease, it does so several times in this interval.
  await expect.poll(later, { ...POLLING, interval: 1_000 }).toEqual(lost)
  await unblock(chatId)
  // It reads what the other process wrote, or its write is rejected. In both cases it does not report its call as successful.
  const body = await (await answer).text()
  expect(body).not.toContain('"type":"tool-output-available"')
  expect(body).toMatch(/"code":"turn-lost"|"state":"unknown"/)
  expect(await outcome()).toEqual(lost)
})

/** Pauses the first process while it holds no lock on the SQLite database. A lock would block the other process as well. */
async function pauseA(): Promise<void> {
  const { a, database } = servers
  for (;;) {
    a.pause()
    try {
      database.exec('BEGIN IMMEDIATE; ROLLBACK')
      return
    } catch {
      a.resume()
      await delay(10)
    }
  }
}

/** The stream of a process that lost the call reports that, and no outcome of the call. */
async function expectLost(answer: Response): Promise<void> {
  const body = await answer.text()
  expect(body).not.toContain('"type":"tool-output-available"')
  expect(body).not.toContain('"type":"finish"')
  expect(body).toContain('"code":"turn-lost"')
}

posixTest.each(usedDatabases)(
  '[AP80] a process that was suspended past its lease reports no success, and writes nothing after another one took over, on $name',
  async ({ name }) => {
    useServersOn(name)
    const chatId = 'a.hold.pay'
    const { asked, ...begun } = await beginAtA(chatId)
    // The stream is open.
    const answer = await begun.answer
    await pauseA()
    await servers.leases.expire()
    const atB = servers.atB(chatId)
    const outcome = () => readOutcome(atB, asked)
    const lost = ['unknown', 'requested', 'approved', 'started', 'lost']
    await expect.poll(outcome, POLLING).toEqual(lost)
    const states = async () => (await atB.calls()).map(({ state }) => state)
    await expect.poll(states, POLLING).toEqual(['output-error'])
    expect((await atB.say('[[say Next.]]')).body).toContain('Next.')
    const before = await atB.messages()
    servers.a.resume()
    servers.a.writeLine('go')
    await expectLost(answer)
    // The tool has run, but no server knows that: the outcome is `unknown`.
    await expect.poll(() => readEffects(servers.folder.effects, chatId), POLLING).toHaveLength(1)
    expect(await outcome()).toEqual(lost)
    // The lost turn may still be ending.
    await expect.poll(() => servers.atA(chatId).messages()).toEqual(before)
    expect((await servers.atA(chatId).say('[[say Again.]]')).body).toContain('Again.')
  },
)

posixTest.each(usedDatabases)(
  '[AP80] the outcome of an idempotent call of a suspended process is that of the process that took over, on $name',
  async ({ name }) => {
    useServersOn(name)
    const chatId = 'a.hold.top_up'
    const { asked, ...begun } = await beginAtA(chatId)
    // The stream is open.
    const answer = await begun.answer
    await pauseA()
    await servers.leases.expire()
    const atB = servers.atB(chatId)
    const outcome = () => readOutcome(atB, asked)
    const again = ['succeeded', 'requested', 'approved', 'started', 'lost', 'started', 'succeeded']
    await expect.poll(outcome, POLLING).toEqual(again)
    const states = async () => (await atB.calls()).map(({ state }) => state)
    await expect.poll(states, POLLING).toEqual(['output-available'])
    const before = await atB.messages()
    servers.a.resume()
    servers.a.writeLine('go')
    await expectLost(answer)
    const keys = () => readEffects(servers.folder.effects, chatId).map(({ key }) => key)
    await expect.poll(keys, POLLING).toHaveLength(2)
    expect(new Set(keys()).size).toBe(1)
    expect(await outcome()).toEqual(again)
    // The lost turn may still be ending.
    await expect.poll(() => servers.atA(chatId).messages()).toEqual(before)
  },
)

posixTest.each(usedDatabases)(
  '[TU80] the reply of a suspended process is not written into a conversation that has continued, on $name',
  async ({ name }) => {
    useServersOn(name)
    const chatId = 'streamed'
    const [atA, atB] = [servers.atA(chatId), servers.atB(chatId)]
    const script = '[[say One.]][[wait gate]][[say Two.]]'
    const answer = await atA.begin(script)
    await pauseA()
    await servers.leases.expire()
    expect((await atB.say('[[say Next.]]')).body).toContain('Next.')
    const before = await atB.messages()
    servers.a.resume()
    servers.a.writeLine('release gate')
    const body = await answer.text()
    expect(body).toContain('turn-lost')
    expect(body).not.toContain('"type":"finish"')
    expect(await atB.messages()).toEqual(before)
    expect(before.map(textOf)).not.toContain('One.Two.')
  },
)
