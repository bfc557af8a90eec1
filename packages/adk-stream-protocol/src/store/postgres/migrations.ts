import { createHash } from 'node:crypto'

import { countApplied, FIRST_VERSION, versionAfter } from '../schema-version.ts'
import { StoreError } from '../store-error.ts'
import type { Database, RunStatement } from './database.ts'
import { POSTGRES_FEATURES } from '../features.ts'

interface Migration {
  /** The oldest schema version whose code still works on the migrated database. Instances of both run during a deploy. */
  readonly minimum: number
  /** The SQL. `$schema` stands for the quoted name of the schema. */
  readonly sql: string
}

/**
 * The migrations of the schema, in order. A released migration never changes.
 *
 * A deploy runs the old and the new version at the same time. A migration therefore only adds tables and columns with
 * defaults, and leaves `minimum` unchanged. A later version that no longer runs beside the old one removes what is unused
 * and raises `minimum`.
 */
export const migrations: readonly Migration[] = [
  {
    minimum: FIRST_VERSION,
    sql: `
      CREATE SEQUENCE $schema.epochs;

      CREATE TABLE $schema.sessions (
        session bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_name text COLLATE "C" NOT NULL,
        user_id text COLLATE "C" NOT NULL,
        session_id text COLLATE "C" NOT NULL,
        seq bigint NOT NULL DEFAULT 0,
        -- A new value of the sequence with each change of stored events. No two sessions ever have the same.
        epoch bigint NOT NULL DEFAULT nextval('$schema.epochs'),
        created_at double precision NOT NULL,
        updated_at double precision NOT NULL,
        initial_state text NOT NULL,
        write_id text NOT NULL,
        CONSTRAINT sessions_key UNIQUE (app_name, user_id, session_id)
      );
      CREATE INDEX sessions_updated ON $schema.sessions (app_name, user_id, updated_at);

      CREATE TABLE $schema.events (
        session bigint NOT NULL REFERENCES $schema.sessions ON DELETE CASCADE,
        seq bigint NOT NULL,
        event_id text COLLATE "C" NOT NULL,
        timestamp double precision NOT NULL,
        -- The ids of the function calls in the event.
        call_ids text[],
        delta text,
        data text NOT NULL,
        PRIMARY KEY (session, seq),
        CONSTRAINT events_id UNIQUE (session, event_id)
      );
      CREATE INDEX events_calls ON $schema.events (session) WHERE call_ids IS NOT NULL;

      -- The id is the key, or its hash if the key is too long for an index.
      CREATE TABLE $schema.session_state (
        session bigint NOT NULL REFERENCES $schema.sessions ON DELETE CASCADE,
        id text COLLATE "C" NOT NULL,
        key text NOT NULL,
        value text NOT NULL,
        PRIMARY KEY (session, id)
      );
      CREATE TABLE $schema.app_state (
        app_name text COLLATE "C" NOT NULL,
        id text COLLATE "C" NOT NULL,
        key text NOT NULL,
        value text NOT NULL,
        PRIMARY KEY (app_name, id)
      );
      CREATE TABLE $schema.user_state (
        app_name text COLLATE "C" NOT NULL,
        user_id text COLLATE "C" NOT NULL,
        id text COLLATE "C" NOT NULL,
        key text NOT NULL,
        value text NOT NULL,
        PRIMARY KEY (app_name, user_id, id)
      );

      -- Returns a session and its events after a position, one page of them. One query, so that the state and the events are of one
      -- moment: that of the call, not that of the statement with the call, which may first wait for a lock.
      CREATE FUNCTION $schema.read_session(
        app text, person text, chat text, known_epoch bigint, known_seq bigint, page_size integer)
      RETURNS TABLE (
        seq bigint, epoch bigint, updated_at double precision, state text, app_state text, user_state text, data text)
      LANGUAGE plpgsql VOLATILE AS $body$
      #variable_conflict use_column
      BEGIN
        RETURN QUERY
        WITH found AS MATERIALIZED (
          SELECT session, seq, epoch, updated_at FROM $schema.sessions
          WHERE app_name = app AND user_id = person AND session_id = chat)
        SELECT seq, epoch, updated_at,
          (SELECT '[' || string_agg('[' || key || ',' || value || ']', ',' ORDER BY id) || ']'
            FROM $schema.session_state AS own WHERE own.session = found.session),
          (SELECT '[' || string_agg('[' || key || ',' || value || ']', ',' ORDER BY id) || ']'
            FROM $schema.app_state WHERE app_name = app),
          (SELECT '[' || string_agg('[' || key || ',' || value || ']', ',' ORDER BY id) || ']'
            FROM $schema.user_state WHERE app_name = app AND user_id = person),
          NULL::text FROM found
        UNION ALL
        SELECT seq, NULL, NULL, NULL, NULL, NULL, data FROM (
          SELECT events.seq, data FROM found JOIN $schema.events USING (session)
          WHERE events.seq > CASE WHEN epoch = known_epoch THEN known_seq ELSE 0 END
          ORDER BY events.seq LIMIT page_size) AS page;
      END $body$;

      CREATE TABLE $schema.secrets (
        name text COLLATE "C" PRIMARY KEY,
        value bytea NOT NULL
      );

      CREATE TABLE $schema.approvals (
        -- The number of the audit entry of the request.
        seq bigint PRIMARY KEY,
        id text COLLATE "C" NOT NULL CONSTRAINT approvals_id UNIQUE,
        app_name text COLLATE "C" NOT NULL,
        principal_id text COLLATE "C" NOT NULL,
        chat_id text COLLATE "C" NOT NULL,
        tool_call_id text COLLATE "C" NOT NULL,
        deadline double precision NOT NULL,
        version integer NOT NULL,
        state text NOT NULL,
        worker text COLLATE "C",
        started_at double precision,
        unreported_since double precision,
        -- The names of those who can act on a pending approval.
        deciders text[] NOT NULL,
        asked text NOT NULL,
        moved text NOT NULL,
        CONSTRAINT approvals_call UNIQUE (app_name, principal_id, chat_id, tool_call_id)
      );
      CREATE INDEX approvals_pending ON $schema.approvals (app_name, principal_id, chat_id) WHERE state = 'requested';
      CREATE INDEX approvals_due ON $schema.approvals (deadline, seq) WHERE state = 'requested';
      CREATE INDEX approvals_executing ON $schema.approvals (seq) WHERE state = 'executing';
      CREATE INDEX approvals_unreported ON $schema.approvals (app_name) WHERE unreported_since IS NOT NULL;
      CREATE INDEX approvals_deciders ON $schema.approvals USING gin (deciders) WHERE state = 'requested';

      -- Who may see an approval, pending or decided: its requester, and everyone who may decide one of its steps. A trigger writes
      -- the rows. Names and tools are JSON, as in asked.
      CREATE TABLE $schema.approval_readers (
        app_name text COLLATE "C" NOT NULL,
        name text COLLATE "C" NOT NULL,
        seq bigint NOT NULL REFERENCES $schema.approvals ON DELETE CASCADE,
        principal_id text COLLATE "C" NOT NULL,
        tool text COLLATE "C" NOT NULL,
        PRIMARY KEY (app_name, name, seq)
      );
      CREATE INDEX approval_readers_approval ON $schema.approval_readers (seq);

      -- PostgreSQL cannot parse JSON with an escape of NUL or of a lone surrogate. This turns "\\u0000" into the text of the escape.
      CREATE FUNCTION $schema.without_escapes(encoded text) RETURNS json LANGUAGE sql IMMUTABLE AS $$
        SELECT regexp_replace(encoded, '(?<!\\\\)((?:\\\\\\\\)*)\\\\u', '\\1\\\\\\\\u', 'g')::json
      $$;
      -- Returns the names as JSON text, as they are stored elsewhere.
      CREATE FUNCTION $schema.reader_names(asked json) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS $$
        SELECT '["principal",' || (asked -> 'chat' -> 'principalId')::text || ']'
        UNION SELECT '["principal",' || item::text || ']'
          FROM json_array_elements(asked -> 'terms' -> 'chain') AS step, json_array_elements(step -> 'principals') AS item
        UNION SELECT '["role",' || item::text || ']'
          FROM json_array_elements(asked -> 'terms' -> 'chain') AS step, json_array_elements(step -> 'roles') AS item
      $$;
      CREATE FUNCTION $schema.add_readers() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO $schema.approval_readers (app_name, name, seq, principal_id, tool)
          SELECT NEW.app_name, name, NEW.seq, NEW.principal_id, (decoded -> 'toolName')::text
          FROM $schema.without_escapes(NEW.asked) AS decoded, $schema.reader_names(decoded) AS name;
        RETURN NULL;
      END $$;
      CREATE TRIGGER approval_readers_added AFTER INSERT ON $schema.approvals
        FOR EACH ROW EXECUTE FUNCTION $schema.add_readers();

      -- The open questions of MCP servers.
      CREATE INDEX approvals_elicitations ON $schema.approvals (app_name, seq)
        WHERE state = 'requested' AND $schema.without_escapes(asked) -> 'terms' ->> 'kind' = 'elicitation';

      CREATE TABLE $schema.approval_audit (
        seq bigint PRIMARY KEY,
        approval_id text COLLATE "C" NOT NULL,
        version integer NOT NULL,
        at double precision NOT NULL,
        entry text NOT NULL,
        hash text NOT NULL,
        -- Identifies the write, so that a writer without an acknowledgement can recognize its own entry.
        write_id text NOT NULL,
        CONSTRAINT approval_audit_version UNIQUE (approval_id, version)
      );
      -- The newest entry. Each writer updates it, so entries have one order.
      CREATE TABLE $schema.audit_head (
        single boolean PRIMARY KEY DEFAULT true CHECK (single),
        seq bigint NOT NULL,
        hash text NOT NULL
      );
      INSERT INTO $schema.audit_head (seq, hash) VALUES (0, '');
      CREATE FUNCTION $schema.refuse_change() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the audit record is append-only'; END $$;
      -- The newest audit entry that retention has removed. The removal is also an entry of the record.
      CREATE TABLE $schema.audit_cut (
        single boolean PRIMARY KEY DEFAULT true CHECK (single),
        seq bigint NOT NULL,
        hash text NOT NULL
      );
      CREATE TRIGGER approval_audit_is_final BEFORE TRUNCATE ON $schema.approval_audit
        FOR EACH STATEMENT EXECUTE FUNCTION $schema.refuse_change();
      -- Only the content of an entry can be erased.
      CREATE TRIGGER approval_audit_is_kept BEFORE UPDATE ON $schema.approval_audit FOR EACH ROW
        WHEN (NEW.entry <> '{"erased":true}' OR (NEW.seq, NEW.approval_id, NEW.version, NEW.at, NEW.hash, NEW.write_id)
          IS DISTINCT FROM (OLD.seq, OLD.approval_id, OLD.version, OLD.at, OLD.hash, OLD.write_id))
        EXECUTE FUNCTION $schema.refuse_change();
      CREATE FUNCTION $schema.refuse_removal() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF OLD.seq > coalesce((SELECT seq FROM $schema.audit_cut), 0) THEN
          RAISE EXCEPTION 'the audit record is append-only';
        END IF;
        RETURN OLD;
      END $$;
      CREATE TRIGGER approval_audit_stays BEFORE DELETE ON $schema.approval_audit
        FOR EACH ROW EXECUTE FUNCTION $schema.refuse_removal();

      CREATE TABLE $schema.workers (
        worker text COLLATE "C" PRIMARY KEY,
        beat_at double precision NOT NULL
      );

      -- The clock for leases: the time since 1970, without the time in which no instance could write. It was at when the clock of the
      -- database was at ticked_at, and advances by max_gap at most until an instance stores it again. It stands still until the first one
      -- does, with a max_gap of its own lease: a longer one would let it go back then.
      CREATE TABLE $schema.lease_clock (
        single boolean PRIMARY KEY DEFAULT true CHECK (single),
        at double precision NOT NULL,
        ticked_at double precision NOT NULL,
        max_gap double precision NOT NULL
      );
      INSERT INTO $schema.lease_clock (at, ticked_at, max_gap)
        SELECT now, now, 0 FROM (SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now) AS clock;
      CREATE FUNCTION $schema.lease_now() RETURNS double precision LANGUAGE plpgsql VOLATILE AS $body$ BEGIN
        RETURN (
          SELECT at + greatest(0, least(extract(epoch FROM clock_timestamp()) * 1000 - ticked_at, max_gap)) FROM $schema.lease_clock);
      END $body$;

      CREATE TABLE $schema.chat_locks (
        app_name text COLLATE "C" NOT NULL,
        principal_id text COLLATE "C" NOT NULL,
        chat_id text COLLATE "C" NOT NULL,
        worker text COLLATE "C" NOT NULL,
        token text COLLATE "C" NOT NULL,
        background boolean NOT NULL,
        locked_at double precision NOT NULL,
        -- When the lock was acquired, by the clock of the database.
        since timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (app_name, principal_id, chat_id)
      );

      CREATE TABLE $schema.chats (
        app_name text COLLATE "C" NOT NULL,
        principal_id text COLLATE "C" NOT NULL,
        chat_id text COLLATE "C" NOT NULL,
        name text,
        title text,
        created_at double precision,
        agent text,
        PRIMARY KEY (app_name, principal_id, chat_id)
      );
      ${POSTGRES_FEATURES.map(({ create }) => create).join('')}`,
  },
]

export interface MigrateOptions {
  /** The quoted name of the schema. */
  readonly schema: string
  /** Whether to change the database. */
  readonly allowed: boolean
  readonly steps?: readonly Migration[]
}

/** Creates or migrates the schema, under a lock, so that any number of instances may start at the same time. */
export async function migrate(
  database: Database,
  { schema, allowed, steps = migrations }: MigrateOptions,
): Promise<void> {
  const applied = await database.retry((run) => readApplied(run, schema, steps))
  if (applied >= steps.length) return
  if (!allowed) {
    throw new StoreError(
      'older-schema',
      `The schema ${schema} is missing or older than this version of the library. Start one instance with \`migrate: true\` and a user that may create tables.`,
    )
  }
  await database.transaction(
    async (run) => {
      // Another instance may have migrated meanwhile.
      const done = await readApplied(run, schema, steps)
      if (done === 0) await createVersion(run, schema)
      for (const [index, step] of steps.entries()) {
        if (index < done) continue
        await run(step.sql.replaceAll('$schema', () => schema))
        await run(`UPDATE ${schema}.schema_version SET version = $1, minimum = $2`, [
          versionAfter(index + 1),
          step.minimum,
        ])
      }
    },
    `BEGIN; SET LOCAL lock_timeout = '10s'; SELECT pg_advisory_xact_lock(${lockKey(schema)})`,
  )
}

async function createVersion(run: RunStatement, schema: string): Promise<void> {
  const [found] = await run('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema.slice(1, -1)])
  // Needs a right on the database even if the schema exists.
  if (found === undefined) await run(`CREATE SCHEMA IF NOT EXISTS ${schema}`)
  await run(
    `CREATE TABLE IF NOT EXISTS ${schema}.schema_version (version integer NOT NULL, minimum integer NOT NULL)`,
  )
  await run(
    `INSERT INTO ${schema}.schema_version SELECT 0, 0 WHERE NOT EXISTS (SELECT FROM ${schema}.schema_version)`,
  )
}

/** Returns how many migrations the schema has had: none if it is missing. Throws if it does not support this version. */
async function readApplied(
  run: RunStatement,
  schema: string,
  steps: readonly Migration[],
): Promise<number> {
  // Not `to_regclass`, which may not see a table that another instance has created during this transaction.
  const [table] = await run(
    "SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'schema_version'",
    [schema.slice(1, -1)],
  )
  if (table === undefined) return 0
  const [row] = await run<{ version: number; minimum: number }>(
    `SELECT version, minimum FROM ${schema}.schema_version`,
  )
  const { version = 0, minimum = 0 } = row ?? {}
  if (minimum > versionAfter(steps.length)) {
    throw new StoreError(
      'newer-schema',
      `The schema ${schema} has version ${version}, which this version of the library cannot use. Upgrade the library.`,
    )
  }
  return countApplied(version, {
    name: `The schema ${schema}`,
    remove: `Drop it (DROP SCHEMA ${schema} CASCADE)`,
  })
}

/** A number that identifies the migration lock of a schema. */
function lockKey(schema: string): string {
  return createHash('sha256')
    .update(`adk-stream-protocol ${schema}`)
    .digest()
    .readBigInt64BE()
    .toString()
}
