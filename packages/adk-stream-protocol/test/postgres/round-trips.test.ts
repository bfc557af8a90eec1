import { Client, Pool, type PoolClient, type QueryConfig } from 'pg'
import { expect, test } from 'vitest'

import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { canReadLocked, type Store } from '../../src/store/store.ts'
import { openPair } from '../faults/support/pair.ts'
import { idsOf, key, readSession, textEvent } from '../../src/store/contract/fixtures.ts'
import { createDatabase } from '../support/postgres.ts'

const CHAT = { appName: key.appName, principalId: key.userId, chatId: key.sessionId }
const LOCK = { worker: 'one', token: 'first', leaseMs: 60_000, background: false, reads: true }

/** A statement with its values, as it was sent. */
type Statement = readonly [text: string, values: string]

/** Opens a store and records its statements. */
async function openRecorded(url: string): Promise<{ store: Store; statements: Statement[] }> {
  const pool = new Pool({ connectionString: url, max: 6, allowExitOnIdle: true })
  pool.on('error', () => undefined)
  const statements: Statement[] = []
  pool.on('connect', (client: PoolClient) => {
    const query = client.query.bind(client) as (config: QueryConfig) => unknown
    const recorded = (config: QueryConfig): unknown => {
      statements.push([config.text, JSON.stringify(config.values ?? [])])
      return query(config)
    }
    Object.assign(client, { query: recorded })
  })
  // The store copies a pool whose options it knows, and the copies would not be recorded.
  const recordedPool = { connect: () => pool.connect(), on: pool.on.bind(pool) }
  return { store: await openPostgresStore({ pool: recordedPool }), statements }
}

test('[ST624] from a decision at another server to its call, three statements are sent, and one commit waits for the disk', async () => {
  await using database = await createDatabase()
  const opened: Statement[][] = []
  const openStore = async (): Promise<Store> => {
    const { store, statements } = await openRecorded(database.url)
    opened.push(statements)
    return store
  }
  // A sweep of the other server would continue the turn if this one is slow.
  const limits = { leaseMs: 15_000, sweepMs: 60_000 }
  await using pair = await openPair({ openStore, limits })
  const { approvalId } = await pair.atOne.ask()
  // Otherwise the other server asks for the lock of the chat more than once.
  await expect
    .poll(() => database.run('SELECT FROM adk_stream_protocol.chat_locks'))
    .toHaveLength(0)
  const before = opened.map(({ length }) => length)
  expect((await pair.atTwo.decide(approvalId, { approved: true })).status).toBe(200)
  await expect.poll(() => pair.effects()).toHaveLength(1)
  // The statements of the server that decided and ran the call, without those of its sweeps.
  const all = opened.map((statements, index) => statements.slice(before[index]))
  const decided = all.find((statements) => statements.some(([text]) => text.includes('link_2')))
  const { chatId } = pair.atTwo
  const own = (decided ?? []).filter(
    ([, values]) => values.includes(approvalId) || values.includes(chatId),
  )
  const claim = own.findIndex(([text]) => text.includes('link_2'))
  expect(own.slice(0, claim + 1)).toEqual([
    [expect.stringContaining('asked, moved, now'), expect.anything()],
    [expect.stringMatching(/synchronous_commit[^]*read_session/), expect.anything()],
    [expect.not.stringContaining('synchronous_commit'), expect.anything()],
  ])
})

test('[ST621] a session that is read with its chat lock has what the holder before stored last', async () => {
  await using database = await createDatabase()
  await using store = await openPostgresStore({ connectionString: database.url })
  const { sessions, approvals } = store
  const session = await sessions.createSession(key)
  await sessions.appendEvent({ session, event: textEvent('e-1') })
  const before = await readSession(sessions)
  const tables = 'adk_stream_protocol'
  await database.run(
    `INSERT INTO ${tables}.chat_locks (app_name, principal_id, chat_id, worker, token, background, locked_at)
     VALUES ($1, $2, $3, 'before', 'before', false, extract(epoch FROM clock_timestamp()) * 1000)`,
    [CHAT.appName, CHAT.principalId, CHAT.chatId],
  )
  const holder = new Client({ connectionString: database.url })
  await holder.connect()
  try {
    // The holder before stores an event and unlocks the chat, and its commit takes a while.
    await holder.query(`BEGIN; DELETE FROM ${tables}.chat_locks`)
    const locked = approvals.lockChat(CHAT, LOCK)
    await expect
      .poll(() =>
        database.run(
          "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%read_session%' AND datname = current_database()",
        ),
      )
      .toHaveLength(1)
    await holder.query(
      `UPDATE ${tables}.sessions SET seq = seq + 1;
       INSERT INTO ${tables}.events (session, seq, event_id, timestamp, data)
       SELECT session, seq + 1, 'e-2', timestamp, replace(data, 'e-1', 'e-2') FROM ${tables}.events; COMMIT`,
    )
    expect(await locked).toBe(true)
  } finally {
    await holder.end()
  }
  const read = canReadLocked(sessions) ? await sessions.getLockedSession(key) : undefined
  expect([idsOf(before), read && idsOf(read)]).toEqual([['e-1'], ['e-1', 'e-2']])
})

test('[ST622] the state of a live session is not stored by a process whose lock is being taken over', async () => {
  await using database = await createDatabase()
  await using store = await openPostgresStore({ connectionString: database.url })
  expect(await store.approvals.lockChat(CHAT, { ...LOCK, reads: false })).toBe(true)
  const taker = new Client({ connectionString: database.url })
  await taker.connect()
  try {
    await taker.query("BEGIN; UPDATE adk_stream_protocol.chat_locks SET token = 'second'")
    const options = { lock: { chat: CHAT, token: 'first' }, maxAgeMs: 60_000 }
    const saved = store.liveSessions?.save(CHAT, Uint8Array.of(1), options)
    await expect
      .poll(() =>
        database.run(
          "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%live_sessions%' AND datname = current_database()",
        ),
      )
      .toHaveLength(1)
    await taker.query('COMMIT')
    expect(await saved).toBe(false)
  } finally {
    await taker.end()
  }
  expect(await store.liveSessions?.find(CHAT)).toBeUndefined()
})
