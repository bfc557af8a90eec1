import { checkName, isStorable, ownerColumns, type Owner } from '../keys.ts'
import type { Query } from './query.ts'

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

/** The statements of personal records. Their first values are the columns of a principal. */
interface PersonalRecordQueries {
  readonly put: Query
  readonly list: Query<PersonalRecordRow>
  readonly listAbout: Query<PersonalRecordRow>
  readonly remove: Query
  readonly removeOld: Query
}

interface PersonalRecordRow {
  readonly principal_id: string
  readonly record_id: string
  readonly about: string | null
  readonly body: string
  readonly stored_at: number
  readonly expires_at: number | null
}

export function personalRecordStore(queries: PersonalRecordQueries): PersonalRecordStore {
  return {
    async put(owner, { kind, id, about, body, forMs }) {
      const other = about === undefined ? null : checkName('about', about)
      const key = [...ownerColumns(owner), checkName('kind', kind), checkName('id', id)]
      await queries.put(...key, other, checkName('body', body), forMs ?? null)
    },
    async list(owner, kind) {
      return (await queries.list(...ownerColumns(owner), kind)).map(decode)
    },
    async listAbout(other, kind) {
      return (await queries.listAbout(...ownerColumns(other), kind)).map(decode)
    },
    async remove(owner, { kind, id }) {
      if (!isStorable(id)) return false
      return (await queries.remove(...ownerColumns(owner), kind, id)).length > 0
    },
    async removeOld() {
      await queries.removeOld()
    },
  }
}

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
