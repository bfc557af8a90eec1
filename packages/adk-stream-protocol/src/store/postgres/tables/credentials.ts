import { CREDENTIALS } from '../../tables/credentials.ts'
import { inPostgres } from '../feature-tables.ts'

export const postgresCredentials = inPostgres(
  CREDENTIALS,
  `
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
)
