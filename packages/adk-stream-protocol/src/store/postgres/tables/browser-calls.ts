import { queryOf } from '../queries.ts'
import type { BrowserCallRow, BrowserCallStore } from '../../tables/browser-calls.ts'
import { openBrowserCalls } from '../../tables/browser-calls.ts'
import type { PostgresFeature, PostgresParts } from '../feature-tables.ts'
import { toDatabase } from '../feature-tables.ts'

export const postgresBrowserCalls: PostgresFeature<BrowserCallStore> = {
  create: `
  CREATE TABLE $schema.browser_calls (
    call bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_name text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    chat_id text COLLATE "C" NOT NULL,
    tool_call_id text COLLATE "C" NOT NULL,
    message_id text NOT NULL,
    deadline double precision NOT NULL,
    taken_at double precision,
    lease_ms double precision NOT NULL DEFAULT 0,
    UNIQUE (app_name, principal_id, chat_id, tool_call_id)
  );
  CREATE INDEX browser_calls_due ON $schema.browser_calls (app_name, deadline);
  `,
  owned: ['browser_calls'],
  ofChats: ['browser_calls'],
  keepsChats: 'browser_calls',
  leased: 'browser_calls WHERE taken_at IS NOT NULL',
  open,
}

/** Stores calls that wait for clients. */
function open(parts: PostgresParts): BrowserCallStore {
  const { clock, leaseClock } = parts.clocks
  const calls = `${parts.schema}.browser_calls`
  // Instances that sweep at the same time skip each other's rows.
  const takeDue = queryOf(parts.turns)<BrowserCallRow>(`
      WITH now AS MATERIALIZED (SELECT ${leaseClock} AS at),
      due AS MATERIALIZED (
        SELECT call FROM ${calls}
        WHERE app_name = $1 AND deadline <= (SELECT ${clock})
        AND (taken_at IS NULL OR taken_at + lease_ms <= (SELECT at FROM now))
        ORDER BY coalesce(taken_at, 0), deadline LIMIT $3 FOR UPDATE SKIP LOCKED)
      UPDATE ${calls} SET taken_at = (SELECT at FROM now), lease_ms = $2::double precision
      WHERE call IN (SELECT call FROM due)
      RETURNING principal_id, chat_id, tool_call_id, message_id`)
  return openBrowserCalls(toDatabase(parts), takeDue)
}
