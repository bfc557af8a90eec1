import { GRANTS } from '../../tables/grants.ts'
import { inSqlite } from '../feature-tables.ts'

export const sqliteGrants = inSqlite(
  GRANTS,
  `
  -- Decisions of people for calls that follow. max_uses, max_spent, expires_at: NULL if there is no limit.
  CREATE TABLE grants (
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    scope TEXT NOT NULL,
    max_uses INTEGER,
    max_spent INTEGER,
    expires_at REAL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    uses INTEGER NOT NULL,
    spent INTEGER NOT NULL,
    PRIMARY KEY (app_name, principal_id, grant_id)
  ) STRICT;
  CREATE INDEX grants_open ON grants (app_name, principal_id, tool_name) WHERE state = 'open';
  `,
)
