import type { RequiredRecord } from '../../approvals/required-record.ts'
import { checkName, isStorable, ownerColumns, type Owner } from '../keys.ts'
import type { FeatureDatabase, FeatureStatements, SharedFeature } from './feature-tables.ts'

/**
 * Stores small records of people, such as where they receive notifications, and who decides for them while they are away. Every method
 * is atomic. Any number of processes may call them at the same time.
 */
export interface PersonalRecordStore {
  /** Stores a record, and replaces the one with the same kind and id. `forMs`: how long it is listed. Default: without an end. */
  put(owner: Owner, record: NewPersonalRecord): Promise<void>
  /** Lists the records of a kind of a principal, the oldest first. At most 1,000. */
  list(owner: Owner, kind: string): Promise<PersonalRecord[]>
  /** Lists the records of a kind, of any principal, that are about this one, the oldest first. At most 1,000. */
  listAbout(other: Owner, kind: string): Promise<PersonalRecord[]>
  /** Removes a record. Returns false if there is none. */
  remove(owner: Owner, record: Pick<NewPersonalRecord, 'kind' | 'id'>): Promise<boolean>
  /** Removes records of all applications whose time is over. */
  removeOld(): Promise<void>
}

/** A record to store. */
export interface NewPersonalRecord {
  readonly kind: string
  readonly id: string
  /** Another principal whom it is about. */
  readonly about?: string
  /** What it says, as JSON. */
  readonly body: string
  readonly forMs?: number
}

/** A stored record. */
export interface PersonalRecord {
  readonly principalId: string
  readonly id: string
  readonly about?: string
  readonly body: string
  /** When it was stored, in ms since 1970. */
  readonly at: number
  readonly expiresAt?: number
}

interface PersonalRecordRow {
  readonly principal_id: string
  readonly record_id: string
  readonly about: string | null
  readonly body: string
  readonly stored_at: number
  readonly expires_at: number | null
}

export const PERSONAL_RECORDS: SharedFeature<PersonalRecordStore> = {
  owned: ['personal_records'],
  open,
  writes,
}

const IN_KIND = 'app_name = $1 AND principal_id = $2 AND kind = $3'

function open({ clock, read, write, writeDurably }: FeatureDatabase): PersonalRecordStore {
  const select =
    'SELECT principal_id, record_id, about, body, stored_at, expires_at FROM $schema.personal_records'
  const listed = `${isCurrent(clock)} ORDER BY stored_at, record_id LIMIT 1000`
  const put = writeDurably(`
    INSERT INTO $schema.personal_records (app_name, principal_id, kind, record_id, about, body, stored_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, ${clock}, ${clock} + $7::double precision)
    ON CONFLICT (app_name, principal_id, kind, record_id) DO UPDATE
    SET about = excluded.about, body = excluded.body, stored_at = excluded.stored_at, expires_at = excluded.expires_at`)
  const list = read<PersonalRecordRow>(`${select} WHERE ${IN_KIND} AND ${listed}`)
  const listAbout = read<PersonalRecordRow>(
    `${select} WHERE app_name = $1 AND about = $2 AND kind = $3 AND ${listed}`,
  )
  const remove = writeDurably(
    `DELETE FROM $schema.personal_records WHERE ${IN_KIND} AND record_id = $4 RETURNING 1`,
  )
  const removeOld = write(`DELETE FROM $schema.personal_records WHERE expires_at <= ${clock}`)
  return {
    async put(owner, { kind, id, about, body, forMs }) {
      const other = about === undefined ? null : checkName('about', about)
      const key = [...ownerColumns(owner), checkName('kind', kind), checkName('id', id)]
      await put(...key, other, checkName('body', body), forMs ?? null)
    },
    list: async (owner, kind) => (await list(...ownerColumns(owner), kind)).map(decode),
    listAbout: async (other, kind) => (await listAbout(...ownerColumns(other), kind)).map(decode),
    remove: async (owner, { kind, id }) =>
      isStorable(id) && (await remove(...ownerColumns(owner), kind, id)).length > 0,
    async removeOld() {
      await removeOld()
    },
  }
}

/** A record that is there stays until the transaction ends. */
function writes(clock: string): FeatureStatements<RequiredRecord> {
  const find = `
    SELECT 1 FROM $schema.personal_records WHERE ${IN_KIND} AND record_id = $4 AND ${isCurrent(clock)} FOR SHARE`
  return {
    'require-record': ({ owner, kind, id }) => [
      { sql: find, values: [...ownerColumns(owner), kind, id], needsRows: true },
    ],
  }
}

const isCurrent = (clock: string): string => `(expires_at IS NULL OR expires_at > ${clock})`

function decode(row: PersonalRecordRow): PersonalRecord {
  return {
    principalId: row.principal_id,
    id: row.record_id,
    body: row.body,
    at: row.stored_at,
    ...(row.about !== null && { about: row.about }),
    ...(row.expires_at !== null && { expiresAt: row.expires_at }),
  }
}
