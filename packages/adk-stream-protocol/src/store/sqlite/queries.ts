import type { Query, QueryValue } from '../tables/query.ts'
import type { Connection, SqlValue } from './connection.ts'

export const IN_CHAT = 'app_name = ?1 AND principal_id = ?2 AND chat_id = ?3'

/** Returns functions that prepare statements as queries. */
export function queriesOf(connection: Connection) {
  const prepareWrite = <Row>(sql: string, ...durability: 'process-death'[]): Query<Row> => {
    const statement = connection.prepare<Row>(sql)
    return (...values) => connection.write(() => statement.rows(...toSql(values)), ...durability)
  }
  return {
    read: <Row>(sql: string): Query<Row> => {
      const statement = connection.prepare<Row>(sql)
      return (...values) => statement.select(...toSql(values))
    },
    write: <Row>(sql: string) => prepareWrite<Row>(sql, 'process-death'),
    /** The write survives a power failure. */
    writeDurably: <Row>(sql: string) => prepareWrite<Row>(sql),
  }
}

/** SQLite has no lists. Its function `json_each` reads them from JSON. */
export function toSql(values: readonly QueryValue[]): SqlValue[] {
  return values.map((value) => (isList(value) ? JSON.stringify(value) : value))
}

function isList(value: QueryValue): value is readonly string[] {
  return Array.isArray(value)
}
