import type {
  FeatureDatabase,
  FeatureStatement,
  FeatureTables,
  JsonColumns,
  SharedFeature,
} from '../tables/feature-tables.ts'
import type { Connection, Statement } from './connection.ts'
import type { LeaseClock } from './leases.ts'
import { queriesOf, toSql } from './queries.ts'

/** What a feature adds to a SQLite store. */
export interface SqliteFeature<Part> extends FeatureTables {
  readonly open: (connection: Connection, clocks: SqliteClocks) => Part
  readonly writes?: SharedFeature<Part>['writes']
}

export interface SqliteClocks {
  /** An SQL expression, in ms. */
  readonly clock: string
  readonly leaseClock: LeaseClock
}

/** Adds the SQL that creates its tables to a feature whose statements are the same in both databases. */
export function inSqlite<Part>(
  { open, ...feature }: SharedFeature<Part>,
  create: string,
): SqliteFeature<Part> {
  return {
    ...feature,
    create,
    open: (connection, { clock }) => open(toDatabase(connection, clock)),
  }
}

/** Returns a database as features see it. `clock` is an SQL expression, in ms. */
export function toDatabase(connection: Connection, clock: string): FeatureDatabase {
  const { read, write, writeDurably } = queriesOf(connection)
  const run = statementRunner(connection)
  return {
    clock,
    rowOrder: 'rowid',
    read: (sql) => read(toSqlite(sql)),
    write: (sql) => write(toSqlite(sql)),
    writeDurably: (sql) => writeDurably(toSqlite(sql)),
    transaction: (statements) => connection.write(() => run(statements)),
    jsonTable,
  }
}

/** Returns a statement for PostgreSQL as SQLite spells it: without schemas, casts and row locks, and with lists as JSON. */
function toSqlite(sql: string): string {
  return sql
    .replaceAll('$schema.', '')
    .replaceAll(/= ANY ?\(\$(\d+)::text\[\]\)/g, 'IN (SELECT value FROM json_each(?$1))')
    .replaceAll(/::(?:double precision|bytea|bigint|integer)/g, '')
    .replaceAll(/\$(\d+)/g, '?$1')
    .replaceAll(' FOR SHARE', '')
}

function jsonTable(parameter: string, columns: JsonColumns): string {
  const selected = Object.keys(columns).map((name) => `value ->> '${name}' AS ${name}`)
  return `(SELECT ${selected.join(', ')} FROM json_each(${parameter}))`
}

/** Returns a function that runs statements in a transaction. It returns false if one that must have rows has none. */
export function statementRunner(
  connection: Connection,
): (statements: readonly FeatureStatement[]) => boolean {
  const prepared = new Map<string, Statement<unknown>>()
  const prepare = (sql: string): Statement<unknown> => {
    const statement = prepared.get(sql) ?? connection.prepare<unknown>(toSqlite(sql))
    prepared.set(sql, statement)
    return statement
  }
  return (statements) =>
    statements.every(({ sql, values, needsRows }) => {
      const rows = prepare(sql).rows(...toSql(values))
      return !needsRows || rows.length > 0
    })
}
