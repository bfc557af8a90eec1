import { IN_CHAT, queryOf } from '../queries.ts'
import type { BrowserCallStore } from '../../tables/browser-calls.ts'
import { browserCallStore } from '../../tables/browser-calls.ts'
import type { PostgresFeature, PostgresParts } from '../feature-tables.ts'

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
function open({
  turns: database,
  schema,
  clocks: { clock, leaseClock },
}: PostgresParts): BrowserCallStore {
  const query = queryOf(database)
  const calls = `${schema}.browser_calls`
  return browserCallStore({
    add: query(`
      INSERT INTO ${calls} (app_name, principal_id, chat_id, tool_call_id, message_id, deadline)
      SELECT $1, $2, $3, $4, $5, ${clock} + $6::double precision ON CONFLICT DO NOTHING`),
    list: query(`SELECT * FROM ${calls} ORDER BY deadline LIMIT $1`),
    listChat: query(`SELECT * FROM ${calls} WHERE ${IN_CHAT} ORDER BY deadline LIMIT $4`),
    drop: query(`DELETE FROM ${calls} WHERE ${IN_CHAT} AND tool_call_id = ANY ($4::text[])`),
    dropChat: query(`DELETE FROM ${calls} WHERE ${IN_CHAT}`),
    // Instances that sweep at the same time skip each other's rows.
    takeDue: query(`
      WITH now AS MATERIALIZED (SELECT ${leaseClock} AS at),
      due AS MATERIALIZED (
        SELECT call FROM ${calls}
        WHERE app_name = $1 AND deadline <= (SELECT ${clock})
        AND (taken_at IS NULL OR taken_at + lease_ms <= (SELECT at FROM now))
        ORDER BY coalesce(taken_at, 0), deadline LIMIT $3 FOR UPDATE SKIP LOCKED)
      UPDATE ${calls} SET taken_at = (SELECT at FROM now), lease_ms = $2::double precision
      WHERE call IN (SELECT call FROM due)
      RETURNING principal_id, chat_id, tool_call_id, message_id`),
  })
}
