import { Client } from 'pg'
import { afterAll, beforeAll, expect } from 'vitest'

import { type RunningPostgres, startPostgres } from '../../../../test/support/postgres-server.ts'
import { posixTest } from '../../../../test/support/posix-test.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { CHAT, createTurn, Reading, say, SCHEMA, startRelay } from '../relay/support/relays.ts'

let postgres: RunningPostgres

beforeAll(async () => {
  // What is not flushed at a commit is lost in a crash.
  postgres = await startPostgres(['wal_writer_delay=10s'])
  await (await openPostgresStore({ connectionString: postgres.url, schema: SCHEMA })).close()
})
afterAll(() => postgres.stop())

async function run(sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: postgres.url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows
  } finally {
    await client.end()
  }
}

posixTest(
  '[RL330] what PostgreSQL loses of a turn in a crash is written again, and the end of a turn is not lost',
  async () => {
    // A hint may be lost while the connections for hints are opened again.
    const timing = { pollMs: 500, fastPollMs: 500 }
    await using one = await startRelay(postgres, 'one', { timing })
    await using two = await startRelay(postgres, 'two', { timing })
    const turn = createTurn()
    const readRows = () => run('SELECT seq FROM relay_rows ORDER BY seq')
    one.turns.publish(CHAT, turn)
    turn.log.append({ type: 'start', messageId: turn.messageId })
    say(turn, 'One.')
    await expect.poll(readRows).toHaveLength(1)
    say(turn, 'Two.')
    await expect.poll(readRows).toHaveLength(2)
    await postgres.restart('immediate')
    // Proves that something was lost.
    expect(await readRows()).toHaveLength(1)
    say(turn, 'Three.')
    await expect.poll(readRows).toEqual([{ seq: 1 }, { seq: 2 }, { seq: 3 }])
    const reading = new Reading((await two.turns.open(CHAT)) ?? createTurn())
    await expect.poll(() => reading.text).toBe('One.Two.Three.')
    turn.log.end()
    await expect.poll(() => reading.end).toBe('ended')
    await postgres.restart('immediate')
    const rows = await run('SELECT ended_at IS NOT NULL AS ended FROM relay_turns')
    expect(rows).toEqual([{ ended: true }])
  },
)
