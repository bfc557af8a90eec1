import { decodeApproval, deciderNames } from '../rows.ts'
import { selectApprovals, chainExisting } from './approval-sql.ts'
import type { Connection } from './connection.ts'

/** A migration: SQL, or a function if SQL alone is not enough. */
type Migration = string | ((connection: Connection) => void)

/** The migrations of the schema, in order. A released migration never changes. */
export const migrations: readonly Migration[] = [
  `
  CREATE TABLE sessions (
    -- AUTOINCREMENT: a number is never given twice, so a deleted session cannot be mistaken for its successor.
    session INTEGER PRIMARY KEY AUTOINCREMENT,
    app_name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    initial_state TEXT NOT NULL,
    state TEXT NOT NULL,
    UNIQUE (app_name, user_id, session_id)
  ) STRICT;

  CREATE TABLE events (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    timestamp REAL NOT NULL,
    delta TEXT,
    data TEXT NOT NULL,
    PRIMARY KEY (session, seq),
    UNIQUE (session, event_id)
  ) STRICT;

  CREATE TABLE app_states (
    app_name TEXT PRIMARY KEY,
    state TEXT NOT NULL
  ) STRICT;

  CREATE TABLE user_states (
    app_name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (app_name, user_id)
  ) STRICT;

  CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
  ) STRICT;
  `,
  `
  CREATE TABLE approvals (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    deadline REAL NOT NULL,
    version INTEGER NOT NULL,
    state TEXT NOT NULL,
    -- Of the one that runs: who runs it, since when.
    worker TEXT,
    started_at REAL,
    -- The whole approval: what was fixed when it was asked, and what moves.
    asked TEXT NOT NULL,
    moved TEXT NOT NULL,
    UNIQUE (app_name, principal_id, chat_id, tool_call_id)
  ) STRICT;

  CREATE INDEX approvals_pending ON approvals (app_name, principal_id, chat_id) WHERE state = 'requested';
  CREATE INDEX approvals_due ON approvals (deadline) WHERE state = 'requested';
  CREATE INDEX approvals_approved ON approvals (app_name) WHERE state = 'approved';
  CREATE INDEX approvals_executing ON approvals (seq) WHERE state = 'executing';

  -- Who is named to decide what waits; the rows go when it is decided.
  CREATE TABLE approval_deciders (
    name TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    PRIMARY KEY (name, approval_id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE approval_audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    approval_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    entry TEXT NOT NULL,
    UNIQUE (approval_id, version)
  ) STRICT;

  CREATE TRIGGER approval_audit_stays BEFORE DELETE ON approval_audit
  BEGIN SELECT RAISE(ABORT, 'the audit record is append-only'); END;
  CREATE TRIGGER approval_audit_is_final BEFORE UPDATE ON approval_audit
  BEGIN SELECT RAISE(ABORT, 'the audit record is append-only'); END;

  CREATE TABLE workers (
    worker TEXT PRIMARY KEY,
    beat_at REAL NOT NULL
  ) STRICT;

  CREATE TABLE chat_locks (
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    worker TEXT NOT NULL,
    locked_at REAL NOT NULL,
    PRIMARY KEY (app_name, principal_id, chat_id)
  ) STRICT;
  `,
  `
  ALTER TABLE chat_locks ADD COLUMN background INTEGER NOT NULL DEFAULT 0;

  -- Since when its outcome is unreported. NULL if the conversation shows it.
  ALTER TABLE approvals ADD COLUMN untold_since REAL;
  UPDATE approvals SET untold_since = 0 WHERE state NOT IN ('requested', 'executing');
  CREATE INDEX approvals_untold ON approvals (app_name) WHERE untold_since IS NOT NULL;
  DROP INDEX approvals_approved;

  -- Calls that wait for a client.
  CREATE TABLE waits (
    wait INTEGER PRIMARY KEY,
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    deadline REAL NOT NULL,
    UNIQUE (app_name, principal_id, chat_id, tool_call_id)
  ) STRICT;

  CREATE INDEX waits_due ON waits (app_name, deadline);
  `,
  `
  -- What a list shows of a chat: what its owner calls it, and how it began, once that was read.
  CREATE TABLE chats (
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    name TEXT,
    title TEXT,
    created_at REAL,
    PRIMARY KEY (app_name, principal_id, chat_id)
  ) STRICT;

  CREATE INDEX sessions_updated ON sessions (app_name, user_id, updated_at);
  `,
  `
  -- Leases go by the lease clock. What was written by the clock of the day says nothing, and those who wrote it are gone.
  DELETE FROM workers;
  DROP TABLE chat_locks;
  CREATE TABLE chat_locks (
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    worker TEXT NOT NULL,
    token TEXT NOT NULL,
    background INTEGER NOT NULL,
    locked_at REAL NOT NULL,
    PRIMARY KEY (app_name, principal_id, chat_id)
  ) STRICT;
  UPDATE approvals SET started_at = 0 WHERE started_at IS NOT NULL;
  UPDATE approvals SET untold_since = 0 WHERE untold_since IS NOT NULL;

  -- When a process took the expired call, to end it.
  ALTER TABLE waits ADD COLUMN taken_at REAL;
  ALTER TABLE waits ADD COLUMN lease_ms REAL NOT NULL DEFAULT 0;
  `,
  (connection) => {
    connection.exec(`
      DROP TRIGGER approval_audit_is_final;
      ALTER TABLE approval_audit ADD COLUMN hash TEXT;
    `)
    chainExisting(connection)
    connection.exec(`
      CREATE TRIGGER approval_audit_is_final BEFORE UPDATE ON approval_audit
      BEGIN SELECT RAISE(ABORT, 'the audit record is append-only'); END;

      -- REPLACE removes the row that is in its way, and fires no trigger for that.
      CREATE TRIGGER approval_audit_is_appended BEFORE INSERT ON approval_audit
      WHEN NEW.hash IS NULL
        OR NEW.seq <= (SELECT max(seq) FROM approval_audit)
        OR EXISTS (SELECT 1 FROM approval_audit WHERE approval_id = NEW.approval_id AND version = NEW.version)
      BEGIN SELECT RAISE(ABORT, 'the audit record is append-only'); END;
    `)
  },
  (connection) => {
    connection.exec('CREATE INDEX approval_deciders_approval ON approval_deciders (approval_id)')
    // The table contained the deciders of all steps. It now contains only those who can act on the approval.
    connection.exec('DELETE FROM approval_deciders')
    const insert = connection.prepare(
      'INSERT INTO approval_deciders (name, approval_id) VALUES (?, ?)',
    )
    for (const approval of selectApprovals(connection, "state = 'requested'")
      .rows()
      .map(decodeApproval))
      for (const name of deciderNames(approval)) insert.run(name, approval.id)
  },
  `
  -- The agent of the chat, where a bridge has several.
  ALTER TABLE chats ADD COLUMN agent TEXT;
  `,
  `
  -- The newest audit entry that retention has removed. The removal is also an entry of the record.
  CREATE TABLE audit_cut (
    single INTEGER PRIMARY KEY CHECK (single = 1),
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL
  ) STRICT;

  DROP TRIGGER IF EXISTS approval_audit_stays;
  CREATE TRIGGER approval_audit_stays BEFORE DELETE ON approval_audit
  WHEN OLD.seq > coalesce((SELECT seq FROM audit_cut), 0)
  BEGIN SELECT RAISE(ABORT, 'the audit record is append-only'); END;

  -- Only the content of an entry can be erased.
  DROP TRIGGER IF EXISTS approval_audit_is_final;
  CREATE TRIGGER approval_audit_is_final BEFORE UPDATE ON approval_audit
  WHEN NEW.entry <> '{"erased":true}' OR NEW.seq <> OLD.seq OR NEW.approval_id <> OLD.approval_id
    OR NEW.version <> OLD.version OR NEW.hash IS NOT OLD.hash
  BEGIN SELECT RAISE(ABORT, 'the audit record is append-only'); END;
  `,
  `
  -- What another process needs to continue a live session, encrypted.
  CREATE TABLE live_sessions (
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    state BLOB NOT NULL,
    saved_at REAL NOT NULL,
    PRIMARY KEY (app_name, principal_id, chat_id)
  ) STRICT;

  -- Messages from one process to another.
  CREATE TABLE signals (
    signal INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    target TEXT NOT NULL,
    sender TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    sent_at REAL NOT NULL
  ) STRICT;
  CREATE INDEX signals_of_target ON signals (target);
  `,
  `
  -- Who may see an approval, pending or decided: its requester, and everyone who may decide one of its steps. Triggers write the
  -- rows, so that approvals of a process with an earlier version have them too. Names and tools are JSON, as in \`asked\`.
  CREATE TABLE approval_readers (
    app_name TEXT NOT NULL,
    name TEXT NOT NULL,
    seq INTEGER NOT NULL,
    principal_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    PRIMARY KEY (app_name, name, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX approval_readers_approval ON approval_readers (seq);

  CREATE TRIGGER approval_readers_added AFTER INSERT ON approvals BEGIN
    ${insertReaders('NEW')};
  END;
  CREATE TRIGGER approval_readers_removed AFTER DELETE ON approvals BEGIN
    DELETE FROM approval_readers WHERE seq = OLD.seq;
  END;

  ${insertReaders('approvals', 'approvals,')};
  `,
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
  `
  -- The open questions of MCP servers.
  CREATE INDEX approvals_elicitations ON approvals (app_name, seq)
    WHERE state = 'requested' AND asked ->> '$.terms.kind' = 'elicitation';
  `,
  `
  -- The clock for leases. It starts when the database is opened next: ticked_at is later than the clock of any machine. It stands still
  -- until a process stores it with a max_gap of its own lease, because a longer one would let it go back then.
  CREATE TABLE lease_clock (
    single INTEGER PRIMARY KEY CHECK (single = 1),
    at REAL NOT NULL,
    ticked_at REAL NOT NULL,
    max_gap REAL NOT NULL
  ) STRICT;
  INSERT INTO lease_clock (single, at, ticked_at, max_gap) VALUES (1, 0, 9e15, 0);
  `,
]

/** Returns the statement that inserts the readers of one approval, or of each approval of a table. */
function insertReaders(row: string, from = ''): string {
  return `
    INSERT OR IGNORE INTO approval_readers (app_name, name, seq, principal_id, tool)
    SELECT ${row}.app_name, '["principal",' || (${row}.asked -> '$.chat.principalId') || ']', ${row}.seq, ${row}.principal_id,
      ${row}.asked -> '$.toolName'
    ${from === '' ? '' : 'FROM approvals'};
    INSERT OR IGNORE INTO approval_readers (app_name, name, seq, principal_id, tool)
    SELECT ${row}.app_name,
      '["' || CASE WHEN list.key = 'roles' THEN 'role' ELSE 'principal' END || '",' || (${row}.asked -> item.fullkey) || ']',
      ${row}.seq, ${row}.principal_id, ${row}.asked -> '$.toolName'
    FROM ${from} json_each(${row}.asked, '$.terms.chain') AS step, json_each(${row}.asked, step.fullkey) AS list,
      json_each(${row}.asked, list.fullkey) AS item
    WHERE list.key IN ('principals', 'roles')`
}
