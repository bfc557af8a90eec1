import { NOTICES } from '../../tables/notices.ts'
import { inPostgres } from '../feature-tables.ts'

export const postgresNotices = inPostgres(
  NOTICES,
  `
  -- How far the audit record was read to plan notices.
  CREATE TABLE $schema.notice_positions (
    app_name text COLLATE "C" PRIMARY KEY,
    seq double precision NOT NULL
  );

  -- What people are told about approvals. due_at: when it is sent or tried again, or when it ended.
  CREATE TABLE $schema.notices (
    app_name text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    notice_id text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    approval_id text COLLATE "C" NOT NULL,
    position double precision NOT NULL,
    asks integer NOT NULL,
    body text NOT NULL,
    state text NOT NULL,
    due_at double precision NOT NULL,
    attempts integer NOT NULL,
    worker text,
    claimed_until double precision NOT NULL,
    answer text,
    reference text,
    PRIMARY KEY (app_name, notice_id)
  );
  CREATE INDEX notices_due ON $schema.notices (app_name, due_at) WHERE state = 'waiting';
  CREATE INDEX notices_of_approval ON $schema.notices (app_name, approval_id, channel, position);
  CREATE INDEX notices_ended ON $schema.notices (due_at) WHERE state <> 'waiting';

  -- Channels whose receiver wants no more notices.
  CREATE TABLE $schema.notice_channels (
    app_name text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (app_name, channel, address)
  );
  `,
)
