import { randomUUID } from 'node:crypto'

import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { longTest } from '../../../../test/support/long-test.ts'
import { bundleChildren, type Child, type Children } from '../faults/support/children.ts'
import { type Folder, makeFolder } from '../faults/support/folder.ts'
import { openPaymentServer } from '../faults/support/payment-server.ts'
import { Person, readEffects } from '../faults/support/person.ts'
import { ServerPool } from '../faults/support/server-pool.ts'
import { times } from '../../../../test/support/long-run.ts'
import { posixTest } from '../../../../test/support/posix-test.ts'
import { createRelayDatabase } from '../relay/support/relays.ts'
import { Stream } from '../relay/support/servers.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { textOf } from '../support/chat-probe.ts'
import { postgresLeaseTimes } from '../support/lease-times.ts'
import type { TestDatabase } from '../support/postgres.ts'

let database: TestDatabase
let children: Children
let folder: Folder & AsyncDisposable
let pool: ServerPool
let env: Readonly<Record<string, string>>
beforeAll(async () => {
  database = await createRelayDatabase()
  children = await bundleChildren()
  folder = await makeFolder()
  env = { DATABASE_URL: database.url, GRACE_MS: '60000' }
  pool = new ServerPool(children, folder, env)
})
afterAll(async () => {
  await pool[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const HOUR_MS = 3_600_000

/** Keeps all servers from writing to a table, until it is released. */
async function holdTable(table: string) {
  const client = new Client({ connectionString: database.url })
  await client.connect()
  client.on('error', () => undefined)
  await client.query(`BEGIN; LOCK TABLE ${table} IN EXCLUSIVE MODE`)
  return {
    /** The statements that wait for the table. */
    waiting: async (): Promise<number> => {
      const { rows } = await client.query<{ count: number }>(
        `SELECT count(*)::int FROM pg_locks WHERE relation = '${table}'::regclass AND NOT granted`,
      )
      return rows[0]?.count ?? 0
    },
    release: () => client.end(),
  }
}

test('[ST232] while many turns have used up the connections, a call is decided and runs', async () => {
  const maxConnections = 4
  await using store = await openPostgresStore({
    connectionString: database.url,
    schema: 'public',
    maxConnections,
    busyTimeoutMs: 120_000,
  })
  await using server = await openPaymentServer({ store, effects: folder.effects })
  const chatId = `decided-${randomUUID()}`
  const person = new Person(server.url, { chatId })
  const { approvalId } = await person.ask()
  const events = await holdTable('events')
  const turns = Array.from({ length: times(20, 200) }, (_, index) =>
    new Person(server.url, { user: `user-${index % 20}`, chatId: `many-${randomUUID()}` }).say(
      '[[say Hello.]]',
    ),
  )
  await expect.poll(events.waiting).toBe(maxConnections)
  expect((await person.decide(approvalId, { approved: true })).status).toBe(200)
  await expect.poll(() => readEffects(folder.effects, chatId)).toHaveLength(1)
  expect(await events.waiting()).toBe(maxConnections)
  await events.release()
  for (const { body } of await Promise.all(turns)) expect(body).toContain('Hello.')
  await expect.poll(async () => (await person.calls())[0]?.state).toBe('output-available')
  expect(readEffects(folder.effects, chatId)).toHaveLength(1)
})

function startWithClock(name: string, offsetMs: number): Child {
  return children.start(folder, name, { ...env, CLOCK_OFFSET_MS: String(offsetMs) })
}

longTest(
  '[RL331] servers whose clocks are an hour off expire nothing too early, and take over nothing',
  async () => {
    await using servers = await pool.borrowTwo()
    const right = servers.one
    await using early = startWithClock('early', -HOUR_MS)
    await using late = startWithClock('late', HOUR_MS)
    const urls = [right.url, ...(await Promise.all([early.serve(), late.serve()]))]
    const gate = `gate-${randomUUID()}`
    const chats = urls.map((url) => new Person(url, { chatId: `clock-${randomUUID()}` }))
    const running = await Promise.all(
      urls.map(async (url) => {
        const person = new Person(url, { chatId: `running-${randomUUID()}` })
        const stream = Stream.read(
          await person.begin(`[[say Half,]][[wait ${gate}]][[say whole.]]`),
        )
        await stream.until('Half,')
        return stream
      }),
    )
    const asked = await Promise.all(chats.map((person) => person.ask()))
    // One that is due by the clock of the database shows that the servers look for such approvals.
    const due = await new Person(right.url, { chatId: `due-${randomUUID()}` }).ask()
    await database.run(
      `UPDATE approvals SET deadline = 1, asked = regexp_replace(asked, '"deadline":[0-9.]+', '"deadline":1') WHERE id = $1`,
      [due.approvalId],
    )
    const atRight = new Person(right.url)
    await expect
      .poll(async () => (await atRight.approval(due.approvalId))?.approval.state)
      .toBe('expired')
    for (const [index, { approvalId }] of asked.entries()) {
      // Each is decided at another server than the one that asked.
      const decider = new Person(urls[(index + 1) % 3] ?? '')
      expect((await decider.decide(approvalId, { approved: true })).status).toBe(200)
      const { chatId } = chats[index] ?? atRight
      await expect.poll(() => readEffects(folder.effects, chatId)).toHaveLength(1)
      await expect
        .poll(async () => (await decider.approval(approvalId))?.history.map(({ type }) => type))
        .toEqual(['requested', 'approved', 'started', 'succeeded'])
    }
    const wrong = await database.run(
      `SELECT at FROM approval_audit WHERE abs(at - extract(epoch FROM clock_timestamp()) * 1000) > $1`,
      [HOUR_MS / 2],
    )
    expect(wrong).toEqual([])
    for (const server of [right.child, early, late]) server.writeLine(`release ${gate}`)
    await Promise.all(running.map(({ done }) => done))
    expect(running.map(({ text }) => text)).toEqual(Array(3).fill('Half,whole.'))
    servers.giveBack(right, servers.two)
  },
)

test('[ST340] while PostgreSQL is a read-only replica, decisions are refused, and afterwards they count once', async () => {
  const own = await createRelayDatabase()
  try {
    await using store = await openPostgresStore({ connectionString: own.url, schema: 'public' })
    await using server = await openPaymentServer({ store, effects: folder.effects })
    const chatId = `read-only-${randomUUID()}`
    const person = new Person(server.url, { chatId })
    const { approvalId } = await person.ask()
    const name = new URL(own.url).pathname.slice(1)
    const switchTo = async (mode: 'on' | 'off'): Promise<void> => {
      await own.run(`ALTER DATABASE ${name} SET default_transaction_read_only = ${mode}`)
      await own.run(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
      )
    }
    await switchTo('on')
    const refused = await person.decide(approvalId, { approved: true })
    expect([refused.status, refused.code]).toEqual([503, 'store-failed'])
    // What was stored can be read.
    expect((await person.calls())[0]?.state).toBe('approval-requested')
    expect((await person.approval(approvalId))?.approval.state).toBe('requested')
    expect(readEffects(folder.effects, chatId)).toEqual([])
    await own.run('SET default_transaction_read_only = off')
    await switchTo('off')
    expect((await person.decide(approvalId, { approved: true })).status).toBe(200)
    await expect.poll(() => readEffects(folder.effects, chatId)).toHaveLength(1)
    await expect.poll(async () => (await person.calls())[0]?.state).toBe('output-available')
  } finally {
    await own[Symbol.asyncDispose]()
  }
})

test('[ST341] [RL1] if the disk is full for the rows of the relay, the reply is whole for its reader and in the session', async () => {
  const own = await createRelayDatabase()
  try {
    await using store = await openPostgresStore({ connectionString: own.url, schema: 'public' })
    await using server = await openPaymentServer({ store, effects: folder.effects })
    const person = new Person(server.url, { chatId: `full-${randomUUID()}` })
    const stream = Stream.read(await person.begin('[[say One.]][[wait on]][[say Two.]]'))
    await stream.until('One.')
    await own.run(`
      CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$;
      CREATE TRIGGER fill BEFORE INSERT ON relay_rows EXECUTE FUNCTION fill();
    `)
    server.emulator.release('on')
    await stream.done
    expect(stream.text).toBe('One.Two.')
    await own.run('DROP TRIGGER fill ON relay_rows')
    expect((await person.messages()).map(textOf).at(-1)).toBe('One.Two.')
    expect((await person.say('[[say Three.]]')).body).toContain('Three.')
  } finally {
    await own[Symbol.asyncDispose]()
  }
})

posixTest(
  '[RL332] replies that run while all servers are replaced one after the other are whole',
  async () => {
    const rounds = times(1, 2)
    await using servers = await pool.borrowTwo()
    let { one, two } = servers
    const isWhole: boolean[] = []
    try {
      for (let round = 0; round < rounds; round += 1) {
        const leaving = one
        const gate = `gate-${randomUUID()}`
        const begun = await Promise.all(
          Array.from({ length: 8 }, async (_, index) => {
            const chatId = `rolling-${randomUUID()}`
            const stream = Stream.read(
              await new Person(leaving.url, { chatId }).begin(
                `[[say Before,]][[wait ${gate}]][[say after.]]`,
              ),
            )
            await stream.until('Before,')
            // Half of the readers come back at another server.
            const elsewhere = new Person(two.url, { chatId })
            if (index % 2 === 0) return { stream, elsewhere }
            const copy = await Stream.open(elsewhere)
            stream.leave()
            return { stream: copy, elsewhere }
          }),
        )
        const next = pool.start()
        const ended = leaving.child.terminate()
        leaving.child.writeLine(`release ${gate}`)
        await Promise.all(begun.map(({ stream }) => stream.done))
        expect(await ended).toBe(0)
        for (const { stream, elsewhere } of begun) {
          expect(stream.text).toBe('Before,after.')
          const stored = (await elsewhere.messages()).at(-1)
          expect(textOf(stored)).toBe('Before,after.')
          isWhole.push(!JSON.stringify(stored?.metadata ?? {}).includes('stopped'))
        }
        one = two
        two = await next
      }
      expect(isWhole).toEqual(Array(8 * rounds).fill(true))
      servers.giveBack(one, two)
    } catch (error) {
      await Promise.all([one.child.kill(), two.child.kill()])
      throw error
    }
  },
)

test('[RL30] text is stored once if its server is killed while PostgreSQL has not yet taken the event of the session', async () => {
  const chatId = `between-${randomUUID()}`
  await using servers = await pool.borrowTwo()
  const { one, two } = servers
  const atTwo = new Person(two.url, { chatId })
  const stream = Stream.read(
    await new Person(one.url, { chatId }).begin(
      `[[say Said once.]][[wait ${chatId}]][[say The rest.]]`,
    ),
  )
  await stream.until('Said once.')
  const events = await holdTable('events')
  // A server that other tests have used keeps their gates open.
  one.child.writeLine(`release ${chatId}`)
  // The rows of the relay have the whole text, and the session waits.
  await expect
    .poll(() => database.run(`SELECT FROM relay_rows WHERE lines LIKE '%rest.%'`))
    .not.toHaveLength(0)
  await expect.poll(events.waiting).toBeGreaterThan(0)
  await one.child.kill()
  // PostgreSQL may still carry out what the killed server has sent.
  await events.release()
  await postgresLeaseTimes(database).expire()
  await expect
    .poll(async () => (await atTwo.messages()).map(textOf).at(-1))
    .toBe('Said once.The rest.')
  expect((await atTwo.say('[[say Next.]]')).body).toContain('Next.')
  expect((await atTwo.messages()).filter(({ role }) => role === 'assistant').map(textOf)).toEqual([
    'Said once.The rest.',
    'Next.',
  ])
})
