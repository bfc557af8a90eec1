import { SQLITE_FEATURES } from '../features.ts'

/**
 * The migrations of the schema, in order. A released migration never changes. Tables, columns and indexes have the same names as in
 * PostgreSQL.
 */
export const migrations: readonly string[] = [
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
  CREATE INDEX sessions_updated ON sessions (app_name, user_id, updated_at);

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
    -- The process that runs the call, and since when.
    worker TEXT,
    started_at REAL,
    -- Since when its outcome is unreported. NULL if the conversation shows it.
    unreported_since REAL,
    -- The approval as JSON: what was fixed when it was requested, and what changes.
    asked TEXT NOT NULL,
    moved TEXT NOT NULL,
    UNIQUE (app_name, principal_id, chat_id, tool_call_id)
  ) STRICT;
  CREATE INDEX approvals_pending ON approvals (app_name, principal_id, chat_id) WHERE state = 'requested';
  CREATE INDEX approvals_due ON approvals (deadline) WHERE state = 'requested';
  CREATE INDEX approvals_executing ON approvals (seq) WHERE state = 'executing';
  CREATE INDEX approvals_unreported ON approvals (app_name) WHERE unreported_since IS NOT NULL;
  -- The open questions of MCP servers.
  CREATE INDEX approvals_elicitations ON approvals (app_name, seq)
    WHERE state = 'requested' AND asked ->> '$.terms.kind' = 'elicitation';

  -- The names of those who can act on a pending approval.
  CREATE TABLE approval_deciders (
    name TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    PRIMARY KEY (name, approval_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX approval_deciders_approval ON approval_deciders (approval_id);

  -- Who may see an approval, pending or decided: its requester, and everyone who may decide one of its steps. Triggers write the
  -- rows. Names and tools are JSON, as in \`asked\`.
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
    INSERT OR IGNORE INTO approval_readers (app_name, name, seq, principal_id, tool)
    SELECT NEW.app_name, '["principal",' || (NEW.asked -> '$.chat.principalId') || ']', NEW.seq, NEW.principal_id,
      NEW.asked -> '$.toolName';
    INSERT OR IGNORE INTO approval_readers (app_name, name, seq, principal_id, tool)
    SELECT NEW.app_name,
      '["' || CASE WHEN list.key = 'roles' THEN 'role' ELSE 'principal' END || '",' || (NEW.asked -> item.fullkey) || ']',
      NEW.seq, NEW.principal_id, NEW.asked -> '$.toolName'
    FROM json_each(NEW.asked, '$.terms.chain') AS step, json_each(NEW.asked, step.fullkey) AS list,
      json_each(NEW.asked, list.fullkey) AS item
    WHERE list.key IN ('principals', 'roles');
  END;
  CREATE TRIGGER approval_readers_removed AFTER DELETE ON approvals BEGIN
    DELETE FROM approval_readers WHERE seq = OLD.seq;
  END;

  CREATE TABLE approval_audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    approval_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    entry TEXT NOT NULL,
    hash TEXT NOT NULL,
    UNIQUE (approval_id, version)
  ) STRICT;
  -- The newest audit entry that retention has removed. The removal is also an entry of the record.
  CREATE TABLE audit_cut (
    single INTEGER PRIMARY KEY CHECK (single = 1),
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL
  ) STRICT;

  CREATE TRIGGER approval_audit_stays BEFORE DELETE ON approval_audit
  WHEN OLD.seq > coalesce((SELECT seq FROM audit_cut), 0)
  BEGIN SELECT RAISE(ABORT, 'the audit record is append-only'); END;
  -- Only the content of an entry can be erased.
  CREATE TRIGGER approval_audit_is_final BEFORE UPDATE ON approval_audit
  WHEN NEW.entry <> '{"erased":true}' OR NEW.seq <> OLD.seq OR NEW.approval_id <> OLD.approval_id
    OR NEW.version <> OLD.version OR NEW.hash IS NOT OLD.hash
  BEGIN SELECT RAISE(ABORT, 'the audit record is append-only'); END;
  -- REPLACE removes the row that is in its way, and fires no trigger for that.
  CREATE TRIGGER approval_audit_is_appended BEFORE INSERT ON approval_audit
  WHEN NEW.seq <= (SELECT max(seq) FROM approval_audit)
    OR EXISTS (SELECT 1 FROM approval_audit WHERE approval_id = NEW.approval_id AND version = NEW.version)
  BEGIN SELECT RAISE(ABORT, 'the audit record is append-only'); END;

  CREATE TABLE workers (
    worker TEXT PRIMARY KEY,
    beat_at REAL NOT NULL
  ) STRICT;

  -- The clock for leases. It starts when the database is opened next: ticked_at is later than the clock of any machine. It stands still
  -- until a process stores it with a max_gap of its own lease, because a longer one would let it go back then.
  CREATE TABLE lease_clock (
    single INTEGER PRIMARY KEY CHECK (single = 1),
    at REAL NOT NULL,
    ticked_at REAL NOT NULL,
    max_gap REAL NOT NULL
  ) STRICT;
  INSERT INTO lease_clock (single, at, ticked_at, max_gap) VALUES (1, 0, 9e15, 0);

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

  -- What a list shows of a chat: the name that its owner gave it, and its title, once it was read.
  CREATE TABLE chats (
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    name TEXT,
    title TEXT,
    created_at REAL,
    -- The agent of the chat, where a bridge has several.
    agent TEXT,
    PRIMARY KEY (app_name, principal_id, chat_id)
  ) STRICT;
  ${SQLITE_FEATURES.map(({ create }) => create).join('')}`,
]
