import { NOTICES } from '../../tables/notices.ts'
import { inSqlite } from '../feature-tables.ts'

export const sqliteNotices = inSqlite(
  NOTICES,
  `
  -- How far the audit record was read to plan notices.
  CREATE TABLE notice_positions (
    app_name TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
  ) STRICT;

  -- What people are told about approvals. due_at: when it is sent or tried again, or when it ended.
  CREATE TABLE notices (
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    notice_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    asks INTEGER NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    due_at REAL NOT NULL,
    attempts INTEGER NOT NULL,
    worker TEXT,
    claimed_until REAL NOT NULL,
    answer TEXT,
    reference TEXT,
    PRIMARY KEY (app_name, notice_id)
  ) STRICT;
  CREATE INDEX notices_due ON notices (app_name, due_at) WHERE state = 'waiting';
  CREATE INDEX notices_of_approval ON notices (app_name, approval_id, channel, position);
  CREATE INDEX notices_ended ON notices (due_at) WHERE state <> 'waiting';

  -- Channels whose receiver wants no more notices.
  CREATE TABLE notice_channels (
    app_name TEXT NOT NULL,
    channel TEXT NOT NULL,
    address TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (app_name, channel, address)
  ) STRICT;
  `,
)
