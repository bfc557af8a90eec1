import { CREDENTIALS } from '../../tables/credentials.ts'
import { inSqlite } from '../feature-tables.ts'

export const sqliteCredentials = inSqlite(
  CREDENTIALS,
  `
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
)
