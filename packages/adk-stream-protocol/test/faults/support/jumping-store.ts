import Database from 'libsql'

import { type Store, openSqliteStore } from '../../../src/store/index.ts'
import { DATABASE_CLOCK } from '../../../src/store/sqlite/approval-sql.ts'
import { openWithClocks } from '../../../src/store/sqlite/sqlite-store.ts'

/** The table with the offset of the wall clock of all processes, in ms. */
export const JUMP_TABLE = 'test_jump'

/** Opens a store. If its database has a table `test_jump`, its value is the offset of the wall clock. */
export async function openJumpingStore(path: string): Promise<Store> {
  const database = new Database(path, { timeout: 30_000 })
  const tables = database.prepare('SELECT name FROM sqlite_schema WHERE name = ?')
  if (tables.all(JUMP_TABLE).length === 0) {
    database.close()
    return openSqliteStore({ path })
  }
  const read = database.prepare(`SELECT ms FROM ${JUMP_TABLE}`)
  const realNow = Date.now.bind(Date)
  Date.now = () => realNow() + (read.get() as { ms: number }).ms
  const clock = `(${DATABASE_CLOCK} + (SELECT ms FROM ${JUMP_TABLE}))`
  return openWithClocks({ path }, { clock })
}
