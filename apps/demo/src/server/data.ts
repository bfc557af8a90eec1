import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'

import { openSqliteStore, type Store } from 'adk-stream-protocol/store'
import { openPostgresStore } from 'adk-stream-protocol/store/postgres'
import { Pool } from 'pg'

import { openPostgresWallets } from '../agent/wallet/postgres-wallets.ts'
import { openSqliteWallets } from '../agent/wallet/sqlite-wallets.ts'
import type { Wallets } from '../agent/wallet/wallets.ts'
import { type Approvers, createApprovers } from './roles.ts'
import type { Settings } from './settings.ts'

/** The stored data of the demo. */
export interface DemoData extends AsyncDisposable {
  readonly store: Store
  readonly wallets: Wallets
  readonly approvers: Approvers
}

/** Opens the PostgreSQL database of the settings. Without one, opens SQLite files in the data folder. */
export async function openData({ dataDir, databaseUrl }: Settings): Promise<DemoData> {
  if (databaseUrl !== undefined) return openPostgres(databaseUrl)
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const wallets = openSqliteWallets(join(dataDir, 'wallets.db'))
  const store = await openSqliteStore({ path: join(dataDir, 'chats.db') }).catch((cause) => {
    wallets[Symbol.dispose]()
    throw cause
  })
  return {
    store,
    wallets,
    approvers: createApprovers(),
    [Symbol.asyncDispose]: async () => {
      await store.close()
      wallets[Symbol.dispose]()
    },
  }
}

async function openPostgres(connectionString: string): Promise<DemoData> {
  const store = await openPostgresStore({ connectionString })
  const pool = new Pool({ connectionString, max: 4 })
  // An idle connection was lost. The next query opens another one, or reports the error.
  pool.on('error', () => undefined)
  const close = async (): Promise<void> => {
    await store.close()
    await pool.end()
  }
  try {
    return {
      store,
      wallets: await openPostgresWallets(pool),
      approvers: await openPostgresApprovers(pool),
      [Symbol.asyncDispose]: close,
    }
  } catch (cause) {
    await close()
    throw cause
  }
}

/** Keeps the approvers in the database, because the next request of a browser may reach another instance. */
async function openPostgresApprovers(pool: Pool): Promise<Approvers> {
  await pool.query(`
    BEGIN;
    SELECT pg_advisory_xact_lock(hashtext('demo_approvers'));
    CREATE TABLE IF NOT EXISTS demo_approvers (principal_id text PRIMARY KEY);
    COMMIT;
  `)
  return {
    add: async (principalId) => {
      await pool.query('INSERT INTO demo_approvers VALUES ($1) ON CONFLICT DO NOTHING', [
        principalId,
      ])
    },
    has: async (principalId) => {
      const { rowCount } = await pool.query(
        'SELECT 1 FROM demo_approvers WHERE principal_id = $1',
        [principalId],
      )
      return rowCount !== 0
    },
  }
}
