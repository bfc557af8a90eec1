import { queryOf } from './queries.ts'
import type { CredentialStore } from '../../tables/credentials.ts'
import { credentialStore } from '../../tables/credentials.ts'
import type { PostgresFeature, PostgresParts } from '../feature-tables.ts'

export const postgresCredentials: PostgresFeature<CredentialStore> = {
  create: `
  -- What people gave the agent by signing in, encrypted, and sign-ins that have begun.
  CREATE TABLE $schema.credentials (
    app_name text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    sealed bytea NOT NULL,
    version integer NOT NULL,
    used_at double precision NOT NULL,
    refresh_until double precision NOT NULL,
    PRIMARY KEY (app_name, principal_id, name)
  );
  CREATE INDEX credentials_used ON $schema.credentials (used_at);

  CREATE TABLE $schema.sign_in_attempts (
    app_name text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    sealed bytea NOT NULL,
    expires_at double precision NOT NULL,
    PRIMARY KEY (app_name, id)
  );
  CREATE INDEX sign_in_attempts_expired ON $schema.sign_in_attempts (expires_at);
  `,
  owned: ['credentials', 'sign_in_attempts'],
  open,
}

/** Stores encrypted credentials. */
function open({ turns: database, schema, clocks: { clock } }: PostgresParts): CredentialStore {
  const query = queryOf(database)
  const [credentials, attempts] = [`${schema}.credentials`, `${schema}.sign_in_attempts`]
  const key = 'app_name = $1 AND principal_id = $2 AND name = $3'
  const removeAttempts = query(`DELETE FROM ${attempts} WHERE expires_at <= ${clock}`)
  const removeUnused = query(
    `DELETE FROM ${credentials} WHERE used_at <= ${clock} - $1::double precision`,
  )
  return credentialStore({
    list: query(`
      SELECT name, sealed, version, used_at FROM ${credentials}
      WHERE app_name = $1 AND principal_id = $2 ORDER BY name`),
    put: query(`
      INSERT INTO ${credentials} AS known (app_name, principal_id, name, sealed, version, used_at, refresh_until)
      SELECT $1, $2, $3, $4::bytea, 1, ${clock}, 0
      ON CONFLICT (app_name, principal_id, name) DO UPDATE SET sealed = excluded.sealed,
        version = known.version + 1, used_at = excluded.used_at, refresh_until = 0
      RETURNING 1`),
    replace: query(`
      UPDATE ${credentials} SET sealed = $4::bytea, version = version + 1, used_at = ${clock}, refresh_until = 0
      WHERE ${key} AND version = $5 RETURNING 1`),
    remove: query(`DELETE FROM ${credentials} WHERE ${key} RETURNING 1`),
    lockRefresh: query(`
      UPDATE ${credentials} SET refresh_until = ${clock} + $5::double precision
      WHERE ${key} AND version = $4 AND refresh_until <= ${clock} RETURNING 1`),
    touch: query(`UPDATE ${credentials} SET used_at = ${clock} WHERE ${key}`),
    addAttempt: query(`
      INSERT INTO ${attempts} (app_name, principal_id, id, sealed, expires_at)
      SELECT $1, $2, $3, $4::bytea, ${clock} + $5::double precision`),
    takeAttempt: query(`
      DELETE FROM ${attempts} WHERE app_name = $1 AND id = $2
      RETURNING principal_id, sealed, expires_at > ${clock} AS is_valid`),
    removeOld: async (unusedMs) => {
      await removeAttempts()
      await removeUnused(unusedMs)
    },
  })
}
