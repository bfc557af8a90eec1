import { PERSONAL_RECORDS } from '../../tables/personal-records.ts'
import { inPostgres } from '../feature-tables.ts'

export const postgresPersonalRecords = inPostgres(
  PERSONAL_RECORDS,
  `
  -- Small records of people. about: another principal. expires_at: NULL if it has no end.
  CREATE TABLE $schema.personal_records (
    app_name text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    record_id text COLLATE "C" NOT NULL,
    about text COLLATE "C",
    body text NOT NULL,
    stored_at double precision NOT NULL,
    expires_at double precision,
    PRIMARY KEY (app_name, principal_id, kind, record_id)
  );
  CREATE INDEX personal_records_about ON $schema.personal_records (app_name, about, kind) WHERE about IS NOT NULL;
  CREATE INDEX personal_records_ending ON $schema.personal_records (expires_at) WHERE expires_at IS NOT NULL;
  `,
)
