/** The schema, step by step; a released step is never changed, only followed by another. */
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
]
