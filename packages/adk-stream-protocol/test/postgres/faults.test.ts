import { Pool } from 'pg'
import { expect, test } from 'vitest'

import { Ledger } from '../../src/approvals/ledger.ts'
import { isRefusal } from '../../src/approvals/approval.ts'
import { Database } from '../../src/store/postgres/database.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { listApprovals } from '../../src/store/postgres/approval-sql.ts'
import { migrate, migrations } from '../../src/store/postgres/migrations.ts'
import { FIRST_VERSION, versionAfter } from '../../src/store/schema-version.ts'
import { hanako, requestOf, taken } from '../ledger/support/fixture.ts'
import { OPEN_RUN_LOCK } from '../../src/locks/lock-names.ts'
import { expectRefusal } from '../../src/store/contract/contract-test.ts'
import { key, lockOf, readSession, textEvent } from '../../src/store/contract/fixtures.ts'
import { refusal } from '../store/support/subjects.ts'
import { defer } from '../support/agents.ts'
import { createDatabase } from '../support/postgres.ts'
import { openProxy } from '../support/postgres-proxy.ts'
import { openTestStores } from '../support/postgres-stores.ts'

const APP = 'demo'

test('[ST231] a decision whose acknowledgement is lost is found, not repeated and not reported as failed', async () => {
  await using database = await createDatabase()
  await using proxy = await openProxy(database.url)
  await using direct = await openPostgresStore({ connectionString: database.url })
  await using store = await openPostgresStore({ connectionString: proxy.url })
  const ledger = new Ledger({ store: store.approvals, appName: APP })
  const other = new Ledger({ store: direct.approvals, appName: APP })
  const approval = taken(await ledger.request(requestOf({ id: 'a' })))
  await ledger.heartbeat()
  const session = await store.sessions.createSession(key)
  proxy.dropAnswers()
  const call = requestOf({ id: 'a' })
  const decided = ledger.decide('a', { by: hanako, approved: true }, approval)
  // The clock is read first, and this response is lost too. So the decision is made after the connection is cut.
  proxy.cut()
  expect(taken(await decided).state.name).toBe('approved')
  const current = (await direct.approvals.get('a')) ?? approval
  const transition = { ...current, version: current.version + 1 }
  proxy.dropAnswers()
  const entry = { approvalId: 'a', chat: call.chat, version: transition.version, at: 1 }
  const event = { type: 'cancelled', reason: 'lost' } as const
  const replaced = store.approvals.replace({
    next: { ...transition, state: { name: 'cancelled', at: 1, reason: 'lost' } },
    entry: { ...entry, event },
  })
  // PostgreSQL has committed. The store does not know.
  await expect.poll(async () => (await other.get('a'))?.state.name).toBe('cancelled')
  proxy.cut()
  expect(await replaced).toBe(true)
  // So that there is a connection.
  await readSession(store.sessions)
  proxy.dropAnswers()
  const appended = store.sessions.appendEvent({ session, event: textEvent('e-1') })
  await expect.poll(async () => (await readSession(direct.sessions)).events.length).toBe(1)
  proxy.cut()
  await appended
  expect((await readSession(direct.sessions)).events).toHaveLength(1)
  const audit = await direct.approvals.verifyAudit?.()
  expect(audit).toMatchObject({ entries: 3 })
  expect(audit).not.toHaveProperty('fault')
})

test('[ST232] decisions do not wait for connections that turns have used up', async () => {
  await using database = await createDatabase()
  const pool = new Pool({ connectionString: database.url, max: 2 })
  {
    await using store = await openPostgresStore({ pool })
    const ledger = new Ledger({ store: store.approvals, appName: APP })
    const busy = [await pool.connect(), await pool.connect()]
    const waiting = store.sessions.createSession(key)
    taken(await ledger.request(requestOf({ id: 'a' })))
    taken(await ledger.decide('a', { by: hanako, approved: true }))
    await ledger.heartbeat()
    for (const client of busy) client.release()
    await waiting
  }
  // Closing the store leaves the pool of the application open.
  expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  await pool.end()
})

test.each(['the turn', 'the live session'] as const)(
  '[ST80] an event that waits for a connection while its process releases the lock of %s is stored, unless another process has taken a lock',
  async (name) => {
    await using database = await createDatabase()
    const pool = new Pool({ connectionString: database.url, max: 1 })
    {
      await using store = await openPostgresStore({ pool })
      await using other = await openPostgresStore({ connectionString: database.url })
      const { sessions, approvals } = store
      const session = await sessions.createSession(key)
      const turn = { appName: key.appName, principalId: key.userId, chatId: key.sessionId }
      const openRun = { ...turn, appName: turn.appName + OPEN_RUN_LOCK }
      const [released, kept] = name === 'the turn' ? [turn, openRun] : [openRun, turn]
      const lock = async (chat: typeof turn, token: string): Promise<void> => {
        const own = { ...lockOf(token, 60_000), worker: 'one' }
        expect(await approvals.lockChat(chat, own)).toBe(true)
      }
      // With a lease of 0 ms, every lock has expired.
      const take = async (chat: typeof turn): Promise<void> =>
        expect(await other.approvals.lockChat(chat, lockOf('two', 0))).toBe(true)
      const appendDuring = async (id: string, work: () => Promise<void>): Promise<void> => {
        const client = await pool.connect()
        const appended = sessions.appendEvent({ session, event: textEvent(id) })
        // It may be rejected before it is awaited.
        appended.catch(() => undefined)
        await expect.poll(() => pool.waitingCount).toBe(1)
        await work().finally(() => client.release())
        await appended
      }
      await lock(kept, 'kept')
      await lock(released, 'first')
      await appendDuring('released', () => approvals.unlockChat(released, 'first'))
      await lock(released, 'second')
      await appendDuring('locked again', async () => {
        await approvals.unlockChat(released, 'second')
        await lock(released, 'third')
      })
      const lost = appendDuring('lost before', async () => {
        await take(released)
        await approvals.unlockChat(released, 'third')
      })
      await expectRefusal(lost, 'lock-lost')
      await other.approvals.unlockChat(released, 'two')
      await lock(released, 'fourth')
      const lostOther = appendDuring('other lost', async () => {
        await approvals.unlockChat(released, 'fourth')
        await take(kept)
      })
      await expectRefusal(lostOther, 'lock-lost')
      const stored = (await readSession(sessions)).events.map(({ id }) => id)
      expect(stored).toEqual(['released', 'locked again'])
    }
    await pool.end()
  },
)

test('[ST231] a connection that ends as soon as it is ready does not end the process', async () => {
  await using database = await createDatabase()
  await using proxy = await openProxy(database.url)
  proxy.endNewConnections(2)
  await using store = await openPostgresStore({ connectionString: proxy.url })
  expect(await store.approvals.lastSeq()).toBe(0)
  expect(proxy.ended).toBe(2)
})

test('[ST231] a store continues after all its connections were terminated', async () => {
  await using database = await createDatabase()
  await using store = await openPostgresStore({ connectionString: database.url })
  const session = await store.sessions.createSession(key)
  for (let round = 0; round < 3; round += 1) {
    const appended = store.sessions.appendEvent({ session, event: textEvent(`e-${round}`) })
    await database.run(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    )
    await appended
  }
  expect((await readSession(store.sessions)).events.map(({ id }) => id)).toEqual([
    'e-0',
    'e-1',
    'e-2',
  ])
})

test('[ST234] concurrent decisions of several stores have one outcome each and one intact audit record', async () => {
  await using database = await openTestStores()
  const stores = await Promise.all([database.open(), database.open(), database.open()])
  const ledgers = stores.map(({ approvals: store }) => new Ledger({ store, appName: APP }))
  const [first] = ledgers
  const ids = Array.from({ length: 12 }, (_, index) => `a-${index}`)
  // The same requests at all stores: each is stored once.
  const asked = await Promise.all(
    ids.flatMap((id) => ledgers.map((ledger) => ledger.request(requestOf({ id, toolCallId: id })))),
  )
  expect(asked.filter(isRefusal)).toEqual([])
  const results = await Promise.all(
    ids.flatMap((id) =>
      ledgers.map(async (ledger) => {
        const decided = await ledger.decide(id, { by: hanako, approved: true })
        const claimed = await ledger.claim(id, requestOf({ toolCallId: id }))
        return { isDecided: !isRefusal(decided), isClaimed: !isRefusal(claimed) }
      }),
    ),
  )
  expect(results.filter(({ isDecided }) => isDecided)).toHaveLength(ids.length)
  expect(results.filter(({ isClaimed }) => isClaimed)).toHaveLength(ids.length)
  for (const id of ids) expect((await first?.get(id))?.state.name).toBe('executing')
  const audit = await stores[0]?.approvals.verifyAudit()
  expect(audit).toMatchObject({ entries: 3 * ids.length })
  expect(audit).not.toHaveProperty('fault')
})

test('[ST234] concurrent requests do not exceed the quota', async () => {
  await using database = await openTestStores()
  const stores = await Promise.all([database.open(), database.open()])
  const quota = { perChat: 3, perPrincipal: 3 }
  const [one, two] = stores.map(
    ({ approvals: store }) => new Ledger({ store, appName: APP, quota }),
  ) as [Ledger, Ledger]
  const results = await Promise.all(
    Array.from({ length: 10 }, (_, index) =>
      (index % 2 ? one : two).request(requestOf({ id: `a-${index}`, toolCallId: `c-${index}` })),
    ),
  )
  expect(results.filter((result) => !isRefusal(result))).toHaveLength(3)
})

test('[ST235] an old instance works on a newer schema that supports it, and is rejected otherwise', async () => {
  await using database = await createDatabase()
  await (await openPostgresStore({ connectionString: database.url })).close()
  const schema = '"adk_stream_protocol"'
  const pool = new Pool({ connectionString: database.url, max: 2 })
  const connection = new Database(pool, { busyTimeoutMs: 5_000, prepare: false })
  const expand = { minimum: FIRST_VERSION, sql: 'ALTER TABLE $schema.chats ADD COLUMN colour text' }
  const contract = {
    minimum: versionAfter(migrations.length + 1),
    sql: 'ALTER TABLE $schema.chats DROP COLUMN agent',
  }
  // Two new instances at the same time.
  const options = { schema, allowed: true }
  await Promise.all(
    [1, 2].map(() => migrate(connection, { ...options, steps: [...migrations, expand] })),
  )
  {
    await using old = await openPostgresStore({ connectionString: database.url })
    await old.chats.rename({ appName: APP, principalId: 'hanako', chatId: 'c' }, 'A name')
  }
  await migrate(connection, { ...options, steps: [...migrations, expand, contract] })
  const outdated = openPostgresStore({ connectionString: database.url })
  await expect(outdated).rejects.toEqual(refusal('newer-schema'))
  connection.close()
  await pool.end()
})

test.each([
  [9, true],
  [FIRST_VERSION - 1, false],
])(
  '[ST28] a schema of the unreleased version %i is rejected, and the error says what to do, with `migrate: %s`',
  async (version, mayMigrate) => {
    await using database = await createDatabase()
    const options = { connectionString: database.url, migrate: mayMigrate }
    await (await openPostgresStore({ connectionString: database.url })).close()
    await database.run(
      `UPDATE adk_stream_protocol.schema_version SET version = ${version}, minimum = ${version}`,
    )
    const error: unknown = await openPostgresStore(options).catch((thrown: unknown) => thrown)
    expect(error).toEqual(refusal('older-schema'))
    expect(String(error)).toContain('Drop it (DROP SCHEMA "adk_stream_protocol" CASCADE), or')
    await database.run('DROP SCHEMA "adk_stream_protocol" CASCADE')
    await (await openPostgresStore({ connectionString: database.url })).close()
  },
)

test('[ST236] an unusable database is rejected with a code and a sentence that says what to do', async () => {
  await using database = await createDatabase()
  const change = (edit: (url: URL) => void): string => {
    const url = new URL(database.url)
    edit(url)
    return url.href
  }
  const name = `reader_${Date.now()}`
  await database.run(`CREATE ROLE ${name} LOGIN PASSWORD 'x'`)
  const asReader = change((url) => {
    url.username = name
    url.password = 'x'
  })
  const cases = [
    ['misconfigured', { connectionString: change((url) => (url.password = 'wrong')) }],
    ['misconfigured', { connectionString: change((url) => (url.pathname = '/none')) }],
    ['misconfigured', { connectionString: asReader }],
    ['unavailable', { connectionString: 'postgres://a:b@127.0.0.1:1/none', busyTimeoutMs: 50 }],
    ['unavailable', { connectionString: 'postgres://a:b@no-such-host.invalid/none' }],
    ['invalid', { connectionString: '' }],
    ['invalid', { connectionString: database.url, schema: 'a"; DROP' }],
    ['older-schema', { connectionString: database.url, migrate: false }],
  ] as const
  for (const [code, options] of cases) {
    const error: unknown = await openPostgresStore(options).catch((thrown: unknown) => thrown)
    expect([options, error]).toEqual([options, refusal(code)])
  }
  await (await openPostgresStore({ connectionString: database.url })).close()
  await database.run(`GRANT USAGE ON SCHEMA adk_stream_protocol TO ${name}`)
  await database.run(`GRANT SELECT ON ALL TABLES IN SCHEMA adk_stream_protocol TO ${name}`)
  await using readOnly = await openPostgresStore({ connectionString: asReader })
  await expect(readOnly.secret('a')).rejects.toEqual(refusal('misconfigured'))
  await database.run(`DROP OWNED BY ${name}; DROP ROLE ${name}`)
})

test('[ST237] errors of a running database say whether the same call may succeed in a moment', async () => {
  await using database = await createDatabase()
  const open = (settings: string) => {
    const url = new URL(database.url)
    url.searchParams.set('options', settings)
    return openPostgresStore({ connectionString: url.href })
  }
  await (await open('')).close()
  await using replica = await open('-c default_transaction_read_only=on')
  await expect(replica.secret('a')).rejects.toMatchObject({ code: 'read-only', isTransient: false })
  await using slow = await open('-c statement_timeout=100')
  const session = await slow.sessions.createSession(key)
  await database.run('BEGIN; LOCK TABLE adk_stream_protocol.events')
  const blocked = slow.sessions.appendEvent({ session, event: textEvent('e') })
  await expect(blocked).rejects.toMatchObject({ code: 'busy', isTransient: true })
  await database.run('ROLLBACK')
  await slow.sessions.appendEvent({ session, event: textEvent('e') })
  expect((await readSession(slow.sessions)).events).toHaveLength(1)
  const full =
    'CREATE FUNCTION pg_temp.fail() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$'
  const pool = new Pool({ connectionString: database.url, max: 1 })
  const connection = new Database(pool, { busyTimeoutMs: 100, prepare: false })
  await connection.query(full)
  const failed = connection.query('SELECT pg_temp.fail()')
  await expect(failed).rejects.toMatchObject({ code: 'full', isTransient: false })
  await pool.end()
})

test('[ST238] of ten thousand pending approvals, those that are due are found by an index', async () => {
  await using database = await openTestStores()
  const store = await database.open()
  const ledger = new Ledger({ store: store.approvals, appName: APP })
  taken(await ledger.request(requestOf({ id: 'a' })))
  // Without the triggers of each row, which take most of the time.
  await database.run(`SET session_replication_role = replica;
    INSERT INTO ${database.schema}.approvals
      (seq, id, app_name, principal_id, chat_id, tool_call_id, deadline, version, state, deciders, asked, moved)
    SELECT 10 + n, 'many-' || n, app_name, 'person-' || n % 100, chat_id, 'call-' || n, deadline + n, 0, state, deciders, asked, moved
    FROM ${database.schema}.approvals, generate_series(1, 10000) n WHERE id = 'a';
    RESET session_replication_role`)
  await database.run(`ANALYZE ${database.schema}.approvals`)
  const due = await database.run(`
    EXPLAIN SELECT asked FROM ${database.schema}.approvals
    WHERE state = 'requested' AND deadline <= (SELECT at FROM ${database.schema}.test_clocks) ORDER BY deadline, seq LIMIT 100`)
  expect(due.map((row) => row['QUERY PLAN']).join(' ')).toContain('approvals_due')
  expect(await store.approvals.due(100)).toEqual([])
  // LG25: none of them is a question of an MCP server.
  const { text, values } = listApprovals(database.schema, {
    appName: APP,
    states: ['requested'],
    kind: 'elicitation',
    limit: 100,
  })
  const [limit, app] = [values.at(-1), values[0]].map(String)
  const literal = text.replace('$1', `'${app}'`).replace('$2', limit ?? '')
  const rows = await database.run(`EXPLAIN ${literal}`)
  expect(rows.map((row) => row['QUERY PLAN']).join(' ')).toContain('approvals_elicitations')
  const filter = { appName: APP, waitsFor: { id: 'person-1', roles: [] }, limit: 1_000 }
  expect(await store.approvals.list(filter)).toHaveLength(100)
})

test('[ST332] two instances that sweep at the same time take each expired browser call once', async () => {
  await using database = await openTestStores()
  const stores = await Promise.all([database.open(), database.open(), database.open()])
  const chat = { appName: APP, principalId: 'hanako', chatId: 'c' }
  for (let call = 0; call < 20; call += 1)
    await stores[0]?.browserCalls.add({ chat, messageId: 'm', toolCallId: `c-${call}` }, -1)
  const sweep = { appName: APP, leaseMs: 60_000, limit: 20 }
  const taking = await Promise.all(stores.map(({ browserCalls }) => browserCalls.takeDue(sweep)))
  const ids = taking.flat().map(({ toolCallId }) => toolCallId)
  expect(new Set(ids).size).toBe(ids.length)
  const rest = await stores[0]?.browserCalls.takeDue(sweep)
  expect(ids.length + (rest?.length ?? 0)).toBe(20)
})

test('[ST237] a claim whose statement was cancelled by its timeout has changed nothing, and can be repeated', async () => {
  await using database = await createDatabase()
  const url = new URL(database.url)
  url.searchParams.set('options', '-c statement_timeout=200')
  await using direct = await openPostgresStore({ connectionString: database.url })
  await using store = await openPostgresStore({ connectionString: url.href })
  const ledger = new Ledger({ store: store.approvals, appName: APP })
  taken(await ledger.request(requestOf({ id: 'a' })))
  taken(await ledger.decide('a', { by: hanako, approved: true }))
  await database.run('BEGIN; SELECT FROM adk_stream_protocol.approvals FOR UPDATE')
  const claimed = ledger.claim('a', requestOf({ id: 'a' }))
  await expect(claimed).rejects.toMatchObject({ code: 'busy', isTransient: true })
  await database.run('ROLLBACK')
  expect((await direct.approvals.get('a'))?.state.name).toBe('approved')
  expect(ledger.busy).toBe(false)
  taken(await ledger.claim('a', requestOf({ id: 'a' })))
  expect(isRefusal(await ledger.claim('a', requestOf({ id: 'a' })))).toBe(true)
  expect(await direct.approvals.verifyAudit?.()).toMatchObject({ entries: 3 })
})

test.each([
  ['deadlock', 'BEGIN', "SET LOCAL deadlock_timeout = '10ms'"],
  ['serialization failure', 'BEGIN ISOLATION LEVEL SERIALIZABLE', 'SELECT 1'],
])(
  '[ST237] a transaction that a %s has ended runs again, and counts once',
  async (_what, begin, prepare) => {
    await using database = await createDatabase()
    await database.run(
      'CREATE TABLE counters AS SELECT id, 0 AS count FROM generate_series(0, 1) id',
    )
    const pool = new Pool({ connectionString: database.url, max: 2 })
    const connection = new Database(pool, { busyTimeoutMs: 30_000, prepare: false })
    const add = 'UPDATE counters SET count = count + 1 WHERE id = $1'
    let attempts = 0
    let held = 0
    // Both transactions have taken their first row before either takes its second.
    const bothTaken = defer()
    const work = (first: number) =>
      connection.transaction(async (run) => {
        attempts += 1
        await run(prepare)
        await run('SELECT count FROM counters')
        await run(add, [first])
        held += 1
        if (held === 2) bothTaken.resolve()
        await bothTaken.promise
        await run(add, [1 - first])
      }, begin)
    await Promise.all([work(0), work(1)])
    expect(attempts).toBeGreaterThan(2)
    const counters = await database.run('SELECT count FROM counters')
    expect(counters).toEqual([{ count: 2 }, { count: 2 }])
    connection.close()
    await pool.end()
  },
)

test('[ST460] a transaction of a suspended process does not block others, and runs again', async () => {
  await using database = await createDatabase()
  await database.run('CREATE TABLE counters AS SELECT 0 AS count')
  const pool = new Pool({ connectionString: database.url, max: 2 })
  const settings = { busyTimeoutMs: 120_000, prepare: false }
  const standing = new Database(pool, { ...settings, maxIdleMs: 100 })
  const other = new Database(pool, settings)
  const [isHeld, othersDone] = [defer(), defer()]
  let attempts = 0
  const stood = standing.transaction(async (run) => {
    attempts += 1
    await run('UPDATE counters SET count = count + 1')
    isHeld.resolve()
    await othersDone.promise
    await run('SELECT 1')
  })
  await isHeld.promise
  await other.transaction((run) => run('UPDATE counters SET count = count + 1'))
  othersDone.resolve()
  await stood
  expect(attempts).toBeGreaterThan(1)
  expect(await database.run('SELECT count FROM counters')).toEqual([{ count: 2 }])
  for (const connection of [standing, other]) connection.close()
  await pool.end()
})

test('[ST332] of several instances that sweep at the same time, one expires each approval', async () => {
  await using database = await openTestStores()
  const stores = await Promise.all([database.open(), database.open(), database.open()])
  const ledgers = stores.map(({ approvals: store }) => new Ledger({ store, appName: APP }))
  const ids = Array.from({ length: 12 }, (_, index) => `a-${index}`)
  for (const id of ids)
    taken((await ledgers[0]?.request(requestOf({ id, toolCallId: id }))) ?? { refused: 'mismatch' })
  const [{ at } = { at: 0 }] = await database.run(
    `SELECT at + 1e9 AS at FROM ${database.schema}.test_clocks`,
  )
  await database.setClocks(Number(at))
  const swept = await Promise.all(ledgers.map((ledger) => ledger.expireDue()))
  const expired = swept.flat().map(({ id }) => id)
  expect(expired.toSorted()).toEqual(ids.toSorted())
  expect(await stores[0]?.approvals.verifyAudit()).toMatchObject({ entries: 2 * ids.length })
})

test('[ST235] instances decide and store while a newer one migrates the schema', async () => {
  await using database = await createDatabase()
  await using old = await openPostgresStore({ connectionString: database.url })
  const ledger = new Ledger({ store: old.approvals, appName: APP })
  const session = await old.sessions.createSession(key)
  const pool = new Pool({ connectionString: database.url, max: 2 })
  const connection = new Database(pool, { busyTimeoutMs: 30_000, prepare: false })
  const tables = ['approvals', 'approval_audit', 'sessions', 'events']
  const expand = tables.map((table) => ({
    minimum: FIRST_VERSION,
    sql: `ALTER TABLE $schema.${table} ADD COLUMN colour text`,
  }))
  const schema = '"adk_stream_protocol"'
  const migrated = migrate(connection, {
    schema,
    allowed: true,
    steps: [...migrations, ...expand],
  })
  for (let count = 0; count < 10; count += 1) {
    const id = `a-${count}`
    taken(await ledger.request(requestOf({ id, toolCallId: id })))
    taken(await ledger.decide(id, { by: hanako, approved: true }))
    await old.sessions.appendEvent({ session, event: textEvent(`e-${count}`) })
  }
  await migrated
  taken(await ledger.claim('a-0', requestOf({ toolCallId: 'a-0' })))
  expect((await readSession(old.sessions)).events).toHaveLength(10)
  expect(await old.approvals.verifyAudit?.()).not.toHaveProperty('fault')
  connection.close()
  await pool.end()
})

test('[ST620] with `prepareStatements: false`, no statement is prepared', async () => {
  await using database = await createDatabase()
  const pool = new Pool({ connectionString: database.url, max: 1 })
  const only = { connect: () => pool.connect(), on: pool.on.bind(pool) }
  try {
    await using store = await openPostgresStore({ pool: only, prepareStatements: false })
    const session = await store.sessions.createSession(key)
    await store.sessions.appendEvent({ session, event: textEvent('e-a') })
    expect((await readSession(store.sessions)).events).toHaveLength(1)
    expect((await pool.query('SELECT FROM pg_prepared_statements')).rowCount).toBe(0)
  } finally {
    await pool.end()
  }
})

test('[ST620] prepared statements that a proxy loses are not used any more, and nothing fails or is stored twice', async () => {
  await using database = await createDatabase()
  // One connection for everything, because a pool without options cannot be copied.
  const pool = new Pool({ connectionString: database.url, max: 1 })
  const only = { connect: () => pool.connect(), on: pool.on.bind(pool) }
  const countPrepared = async (): Promise<number> =>
    (await pool.query('SELECT FROM pg_prepared_statements')).rowCount ?? 0
  try {
    await using store = await openPostgresStore({ pool: only })
    const session = await store.sessions.createSession(key)
    const ledger = new Ledger({ store: store.approvals, appName: APP })
    const work = async (id: string): Promise<void> => {
      await store.sessions.appendEvent({ session, event: textEvent(`e-${id}`) })
      taken(await ledger.request(requestOf({ id, toolCallId: `call-${id}` })))
      taken(await ledger.decide(id, { by: hanako, approved: true }))
    }
    await work('a')
    expect(await countPrepared()).toBeGreaterThan(0)
    // As behind a proxy that gives each transaction another connection.
    await pool.query('DEALLOCATE ALL')
    await work('b')
    await pool.query('DEALLOCATE ALL')
    await work('c')
    expect(await countPrepared()).toBe(0)
    expect((await readSession(store.sessions)).events).toHaveLength(3)
    expect(await store.approvals.verifyAudit?.()).toMatchObject({ entries: 6 })
  } finally {
    await pool.end()
  }
})
