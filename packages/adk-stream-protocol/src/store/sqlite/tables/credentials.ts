import { queriesOf } from './queries.ts'
import type { CredentialStore } from '../../tables/credentials.ts'
import type { AttemptRow } from '../../tables/credentials.ts'
import { credentialStore } from '../../tables/credentials.ts'
import type { Connection } from '../connection.ts'
import type { SqliteClocks, SqliteFeature } from '../feature-tables.ts'

export const sqliteCredentials: SqliteFeature<CredentialStore> = {
  create: `
  -- What people gave the agent by signing in, encrypted, and sign-ins that have begun.
  CREATE TABLE credentials (
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    name TEXT NOT NULL,
    sealed BLOB NOT NULL,
    version INTEGER NOT NULL,
    used_at REAL NOT NULL,
    refresh_until REAL NOT NULL,
    PRIMARY KEY (app_name, principal_id, name)
  ) STRICT;
  CREATE INDEX credentials_used ON credentials (used_at);

  CREATE TABLE sign_in_attempts (
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    id TEXT NOT NULL,
    sealed BLOB NOT NULL,
    expires_at REAL NOT NULL,
    PRIMARY KEY (app_name, id)
  ) STRICT;
  CREATE INDEX sign_in_attempts_expired ON sign_in_attempts (expires_at);
  `,
  owned: ['credentials', 'sign_in_attempts'],
  open,
}

/** Stores encrypted credentials. */
function open(connection: Connection, { clock }: SqliteClocks): CredentialStore {
  const { read, write, writeDurably } = queriesOf(connection)
  const key = 'app_name = ?1 AND principal_id = ?2 AND name = ?3'
  const findOld = read(`
    SELECT 1 WHERE EXISTS (SELECT 1 FROM sign_in_attempts WHERE expires_at <= ${clock})
    OR EXISTS (SELECT 1 FROM credentials WHERE used_at <= ${clock} - ?1)`)
  const removeAttempts = connection.prepare(
    `DELETE FROM sign_in_attempts WHERE expires_at <= ${clock}`,
  )
  const removeUnused = connection.prepare(`DELETE FROM credentials WHERE used_at <= ${clock} - ?1`)
  return credentialStore({
    list: read(`
      SELECT name, sealed, version, used_at FROM credentials
      WHERE app_name = ?1 AND principal_id = ?2 ORDER BY name`),
    put: writeDurably(`
      INSERT INTO credentials (app_name, principal_id, name, sealed, version, used_at, refresh_until)
      VALUES (?1, ?2, ?3, ?4, 1, ${clock}, 0)
      ON CONFLICT DO UPDATE SET sealed = excluded.sealed, version = version + 1, used_at = excluded.used_at,
        refresh_until = 0
      RETURNING 1`),
    replace: writeDurably(`
      UPDATE credentials SET sealed = ?4, version = version + 1, used_at = ${clock}, refresh_until = 0
      WHERE ${key} AND version = ?5 RETURNING 1`),
    remove: writeDurably(`DELETE FROM credentials WHERE ${key} RETURNING 1`),
    lockRefresh: writeDurably(`
      UPDATE credentials SET refresh_until = ${clock} + ?5
      WHERE ${key} AND version = ?4 AND refresh_until <= ${clock} RETURNING 1`),
    touch: write(`UPDATE credentials SET used_at = ${clock} WHERE ${key}`),
    addAttempt: writeDurably(`
      INSERT INTO sign_in_attempts (app_name, principal_id, id, sealed, expires_at)
      VALUES (?1, ?2, ?3, ?4, ${clock} + ?5)`),
    takeAttempt: writeDurably<AttemptRow>(`
      DELETE FROM sign_in_attempts WHERE app_name = ?1 AND id = ?2
      RETURNING principal_id, sealed, expires_at > ${clock} AS is_valid`),
    removeOld: async (unusedMs) => {
      // Usually nothing is old, and this query takes no lock.
      if ((await findOld(unusedMs)).length === 0) return
      await connection.write(() => {
        removeAttempts.run()
        removeUnused.run(unusedMs)
      })
    },
  })
}
