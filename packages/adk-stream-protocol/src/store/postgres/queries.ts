import type { Query } from '../tables/query.ts'
import type { Database } from './database.ts'

export const IN_CHAT = 'app_name = $1 AND principal_id = $2 AND chat_id = $3'

export const CHAT_KEY = '(app_name, principal_id, chat_id)'

export function queryOf(database: Database): <Row>(sql: string) => Query<Row> {
  return (sql) =>
    (...values) =>
      database.query(sql, values)
}
