import type { Relay } from '../../../relay/relay.ts'
import type { PostgresFeature } from '../feature-tables.ts'
import { postgresRelay as openRelay } from '../postgres-relay.ts'

export const postgresRelay: PostgresFeature<Relay> = {
  create: `
  -- The rows of running turns. They live as long as their turns.
  CREATE TABLE $schema.relay_turns (
    turn_id text PRIMARY KEY,
    app_name text NOT NULL,
    principal_id text NOT NULL,
    chat_id text NOT NULL,
    message_id text NOT NULL,
    owner text NOT NULL,
    replayable boolean NOT NULL,
    started_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    ended_at timestamptz
  );
  CREATE INDEX relay_turns_of_chat ON $schema.relay_turns (app_name, principal_id, chat_id) WHERE ended_at IS NULL;
  CREATE INDEX relay_turns_changed ON $schema.relay_turns (changed_at);
  CREATE INDEX relay_turns_ended ON $schema.relay_turns (ended_at) WHERE ended_at IS NOT NULL;
  CREATE TABLE $schema.relay_rows (
    turn_id text NOT NULL REFERENCES $schema.relay_turns ON DELETE CASCADE,
    seq integer NOT NULL,
    lines text NOT NULL,
    PRIMARY KEY (turn_id, seq)
  );
  CREATE TABLE $schema.relay_readers (
    turn_id text NOT NULL REFERENCES $schema.relay_turns ON DELETE CASCADE,
    worker text NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (turn_id, worker)
  );
  CREATE TABLE $schema.relay_workers (worker text PRIMARY KEY, seen_at timestamptz NOT NULL);
  CREATE TABLE $schema.relay_signals (
    id text PRIMARY KEY,
    target text NOT NULL,
    sender text NOT NULL,
    kind text NOT NULL,
    body text NOT NULL,
    sent_at timestamptz NOT NULL
  );
  CREATE INDEX relay_signals_of_target ON $schema.relay_signals (target);
  `,
  owned: ['relay_turns'],
  ofChats: ['relay_turns'],
  leased: 'relay_turns WHERE ended_at IS NULL',
  open: ({ turns, decisions, schema, clocks, createClient }) =>
    openRelay({ database: turns, signals: decisions, schema, clocks, createClient }),
}
