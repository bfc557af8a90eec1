import { GRANTS } from '../../tables/grants.ts'
import { inPostgres } from '../feature-tables.ts'

export const postgresGrants = inPostgres(
  GRANTS,
  `
  -- Decisions of people for calls that follow. max_uses, max_spent, expires_at: NULL if there is no limit.
  CREATE TABLE $schema.grants (
    seq bigint GENERATED ALWAYS AS IDENTITY,
    app_name text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    chat_id text COLLATE "C" NOT NULL,
    grant_id text COLLATE "C" NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    scope text NOT NULL,
    max_uses integer,
    max_spent bigint,
    expires_at double precision,
    body text NOT NULL,
    state text NOT NULL,
    uses integer NOT NULL,
    spent bigint NOT NULL,
    PRIMARY KEY (app_name, principal_id, grant_id)
  );
  CREATE INDEX grants_open ON $schema.grants (app_name, principal_id, tool_name) WHERE state = 'open';
  `,
)
