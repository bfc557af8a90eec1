import type {
  FeatureDatabase,
  FeatureStatement,
  FeatureTables,
  JsonColumns,
  SharedFeature,
} from '../tables/feature-tables.ts'
import type { Clocks, Database, ListenClient, RunStatement } from './database.ts'
import { queryOf } from './queries.ts'

/** What a feature adds to a PostgreSQL store. */
export interface PostgresFeature<Part> extends FeatureTables {
  readonly open: (parts: PostgresParts) => Part
  readonly writes?: SharedFeature<Part>['writes']
}

export interface PostgresParts {
  readonly turns: Database
  readonly decisions: Database
  /** The quoted name of the schema. */
  readonly schema: string
  readonly clocks: Clocks
  /** Creates a connection that is not one of a pool. */
  readonly createClient: (() => ListenClient) | undefined
}

/** Adds the SQL that creates its tables to a feature whose statements are the same in both databases. */
export function inPostgres<Part>(
  { open, ...feature }: SharedFeature<Part>,
  create: string,
): PostgresFeature<Part> {
  return {
    ...feature,
    create,
    open: (parts) => open(toDatabase(parts)),
  }
}

/** Returns a database as features see it. */
export function toDatabase({
  turns,
  schema,
  clocks: { clock },
}: Pick<PostgresParts, 'turns' | 'schema' | 'clocks'>): FeatureDatabase {
  const query = queryOf(turns)
  const prepare = <Row>(sql: string) => query<Row>(sql.replaceAll('$schema', schema))
  const runAll = statementRunner(schema)
  return {
    clock,
    rowOrder: 'seq',
    read: prepare,
    write: prepare,
    writeDurably: prepare,
    transaction: (statements, isDone) =>
      turns.transaction(
        async (run, attempt) =>
          (await runAll(run, statements)) ||
          (attempt > 0 && isDone !== undefined && (await runAll(run, [isDone]))),
      ),
    jsonTable,
  }
}

function jsonTable(parameter: string, columns: JsonColumns): string {
  const listed = Object.entries(columns).map((column) => column.join(' '))
  return `json_to_recordset(${parameter}::json) AS listed (${listed.join(', ')})`
}

/** Returns a function that runs statements in a transaction. It returns false if one that must have rows has none. */
export function statementRunner(
  schema: string,
): (run: RunStatement, statements: readonly FeatureStatement[]) => Promise<boolean> {
  return async (run, statements) => {
    for (const { sql, values, needsRows } of statements) {
      const rows = await run(sql.replaceAll('$schema', schema), values)
      if (needsRows && rows.length === 0) return false
    }
    return true
  }
}
