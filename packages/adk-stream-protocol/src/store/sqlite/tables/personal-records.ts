import { PERSONAL_RECORDS } from '../../tables/personal-records.ts'
import { inSqlite } from '../feature-tables.ts'

export const sqlitePersonalRecords = inSqlite(
  PERSONAL_RECORDS,
  `
  -- Small records of people. about: another principal. expires_at: NULL if it has no end.
  CREATE TABLE personal_records (
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    record_id TEXT NOT NULL,
    about TEXT,
    body TEXT NOT NULL,
    stored_at REAL NOT NULL,
    expires_at REAL,
    PRIMARY KEY (app_name, principal_id, kind, record_id)
  ) STRICT;
  CREATE INDEX personal_records_about ON personal_records (app_name, about, kind) WHERE about IS NOT NULL;
  CREATE INDEX personal_records_ending ON personal_records (expires_at) WHERE expires_at IS NOT NULL;
  `,
)
