import type { RequiredRecord } from '../../../approvals/required-record.ts'
import { ownerColumns } from '../../keys.ts'
import type { PostgresFeature, PostgresParts, PostgresWrites } from '../feature-tables.ts'
import type { PersonalRecordStore } from '../../tables/personal-records.ts'
import { personalRecordStore } from '../../tables/personal-records.ts'
import { queryOf } from './queries.ts'

export const postgresPersonalRecords: PostgresFeature<PersonalRecordStore> = {
  create: `
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
  owned: ['personal_records'],
  open,
  prepareWrites,
}

const COLUMNS = 'principal_id, record_id, about, body, stored_at, expires_at'

/** Stores personal records. */
function open({ turns: database, schema, clocks: { clock } }: PostgresParts): PersonalRecordStore {
  const query = queryOf(database)
  const records = `${schema}.personal_records`
  const listed = `(expires_at IS NULL OR expires_at > ${clock}) ORDER BY stored_at, record_id LIMIT 1000`
  return personalRecordStore({
    put: query(`
      INSERT INTO ${records} (app_name, principal_id, kind, record_id, about, body, stored_at, expires_at)
      VALUES ($1, $2, $3, $4, $5, $6, ${clock}, ${clock} + $7::double precision)
      ON CONFLICT (app_name, principal_id, kind, record_id) DO UPDATE
      SET about = excluded.about, body = excluded.body, stored_at = excluded.stored_at, expires_at = excluded.expires_at`),
    list: query(`
      SELECT ${COLUMNS} FROM ${records} WHERE app_name = $1 AND principal_id = $2 AND kind = $3 AND ${listed}`),
    listAbout: query(`
      SELECT ${COLUMNS} FROM ${records} WHERE app_name = $1 AND about = $2 AND kind = $3 AND ${listed}`),
    remove: query(`
      DELETE FROM ${records} WHERE app_name = $1 AND principal_id = $2 AND kind = $3 AND record_id = $4
      RETURNING 1`),
    removeOld: query(`DELETE FROM ${records} WHERE expires_at <= ${clock}`),
  })
}

/** Returns a function that says in a transaction whether a record is there. It stays there until the transaction ends. */
function prepareWrites({
  schema,
  clocks: { clock },
}: Pick<PostgresParts, 'schema' | 'clocks'>): PostgresWrites<RequiredRecord> {
  const find = `
    SELECT 1 FROM ${schema}.personal_records
    WHERE app_name = $1 AND principal_id = $2 AND kind = $3 AND record_id = $4
      AND (expires_at IS NULL OR expires_at > ${clock})
    FOR SHARE`
  return {
    'require-record': async (run, { owner, kind, id }) =>
      (await run(find, [...ownerColumns(owner), kind, id])).length > 0,
  }
}
