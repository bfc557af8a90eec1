import { type Store, openSqliteStore } from '../../../src/store/index.ts'
import { DATABASE_CLOCK } from '../../../src/store/sqlite/approval-statements.ts'
import { openDatabase } from '../../../src/store/sqlite/open-database.ts'
import { SqliteApprovalStore } from '../../../src/store/sqlite/sqlite-approval-store.ts'
import { SqliteBrowserCallStore } from '../../../src/store/sqlite/sqlite-browser-call-store.ts'

/** Where the clock of the day is set for all processes at once, in ms beside the real one. */
export const JUMP_TABLE = 'test_jump'

/** A store as any; when there is a `test_jump` in its database, the clock of the day is off by what it says. */
export async function openJumpingStore(path: string): Promise<Store> {
  const store = await openSqliteStore({ path })
  const connection = await openDatabase(path)
  const tables = connection.prepare<{ name: string }>(
    'SELECT name FROM sqlite_schema WHERE name = ?',
  )
  if ((await tables.select(JUMP_TABLE)).length === 0) {
    connection.close()
    return store
  }
  const clock = `(${DATABASE_CLOCK} + (SELECT ms FROM ${JUMP_TABLE}))`
  const ms = connection.prepare<{ ms: number }>(`SELECT ms FROM ${JUMP_TABLE}`)
  const realNow = Date.now.bind(Date)
  Date.now = () => realNow() + (ms.rows()[0]?.ms ?? 0)
  return {
    sessions: store.sessions,
    chats: store.chats,
    approvals: new SqliteApprovalStore(connection, { clock, path }),
    browserCalls: new SqliteBrowserCallStore(connection, clock),
    secret: (name) => store.secret(name),
    close: () => store.close(),
    [Symbol.asyncDispose]: () => store.close(),
  }
}
