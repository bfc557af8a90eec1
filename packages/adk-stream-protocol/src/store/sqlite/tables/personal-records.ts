import type { RequiredRecord } from '../../../approvals/required-record.ts'
import { ownerColumns } from '../../keys.ts'
import type { SqliteClocks, SqliteFeature, SqliteWrites } from '../feature-tables.ts'
import type { PersonalRecordStore } from '../../tables/personal-records.ts'
import { personalRecordStore } from '../../tables/personal-records.ts'
import type { Connection } from '../connection.ts'
import { queriesOf } from './queries.ts'

export const sqlitePersonalRecords: SqliteFeature<PersonalRecordStore> = {
  create: `
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
  owned: ['personal_records'],
  open,
  prepareWrites,
}

const COLUMNS = 'principal_id, record_id, about, body, stored_at, expires_at'

/** Stores personal records. */
function open(connection: Connection, { clock }: SqliteClocks): PersonalRecordStore {
  const { read, write, writeDurably } = queriesOf(connection)
  const listed = `(expires_at IS NULL OR expires_at > ${clock}) ORDER BY stored_at, record_id LIMIT 1000`
  return personalRecordStore({
    put: writeDurably(`
      INSERT INTO personal_records (app_name, principal_id, kind, record_id, about, body, stored_at, expires_at)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ${clock}, ${clock} + ?7)
      ON CONFLICT (app_name, principal_id, kind, record_id) DO UPDATE
      SET about = excluded.about, body = excluded.body, stored_at = excluded.stored_at, expires_at = excluded.expires_at`),
    list: read(`
      SELECT ${COLUMNS} FROM personal_records
      WHERE app_name = ?1 AND principal_id = ?2 AND kind = ?3 AND ${listed}`),
    listAbout: read(`
      SELECT ${COLUMNS} FROM personal_records WHERE app_name = ?1 AND about = ?2 AND kind = ?3 AND ${listed}`),
    remove: writeDurably(`
      DELETE FROM personal_records WHERE app_name = ?1 AND principal_id = ?2 AND kind = ?3 AND record_id = ?4
      RETURNING 1`),
    removeOld: write(`DELETE FROM personal_records WHERE expires_at <= ${clock}`),
  })
}

/** Returns a function that says in a transaction whether a record is there. */
function prepareWrites(
  connection: Connection,
  { clock }: SqliteClocks,
): SqliteWrites<RequiredRecord> {
  const find = connection.prepare(`
    SELECT 1 FROM personal_records
    WHERE app_name = ?1 AND principal_id = ?2 AND kind = ?3 AND record_id = ?4
      AND (expires_at IS NULL OR expires_at > ${clock})`)
  return {
    'require-record': ({ owner, kind, id }) =>
      find.rows(...ownerColumns(owner), kind, id).length > 0,
  }
}
