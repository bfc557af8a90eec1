import { createHash } from 'node:crypto'

import { decodeDelta, type SessionState, type StateDelta, applyDelta } from '../session-state.ts'
import { encodeJson } from '../stored-json.ts'

/** The columns of state to write: ids, keys and values to set, and ids to remove. */
export type StateColumns = [ids: string[], keys: string[], values: string[], removed: string[]]

/** Splits writes into columns. All writers use one order of ids, so that none waits for another in a circle. */
export function toColumns(delta: StateDelta): StateColumns {
  const columns: StateColumns = [[], [], [], []]
  const [ids, keys, values, removed] = columns
  const rows = delta.map(([key, value]) => ({ key: JSON.stringify(key), value }))
  for (const { id, key, value } of rows
    .map((row) => ({ ...row, id: idOf(row.key) }))
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))) {
    // Only what JSON can express is stored. A function, for example, is not.
    const text: string | undefined = value === undefined ? undefined : encodeJson(value)
    if (text === undefined) {
      removed.push(id)
      continue
    }
    ids.push(id)
    keys.push(key)
    values.push(text)
  }
  return columns
}

/** Decodes state that a statement has joined to a list of keys and values. Without rows it is empty. */
export function readState(pairs: string | null): SessionState {
  return pairs === null ? {} : applyDelta({}, decodeDelta(pairs))
}

/** PostgreSQL does not index long text. */
const MAX_INDEXED = 500

function idOf(key: string): string {
  return key.length <= MAX_INDEXED ? key : createHash('sha256').update(key).digest('hex')
}
