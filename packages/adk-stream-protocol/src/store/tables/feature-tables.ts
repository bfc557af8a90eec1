import type { Query, QueryValue } from './query.ts'

/** The tables of a part of a store that belongs to one feature. */
export interface FeatureTables {
  /** The SQL that creates them: a part of the first migration. It never changes once it is released. In PostgreSQL, `$schema` stands for the quoted name of the schema. */
  readonly create: string
  /** The tables with rows of a principal, in the columns `app_name` and `principal_id`. They are deleted with the principal's data. */
  readonly owned: readonly string[]
  /** Those of them whose rows belong to a chat, by the column `chat_id`. They are deleted with the chat. */
  readonly ofChats?: readonly string[]
  /** The one of these whose rows keep their chat until a `deadline`, so that it is not removed as an unused one. */
  readonly keepsChats?: string
  /** The rows that hold a lease: a table and a condition. The clock of leases runs while there is one. */
  readonly leased?: string
  /** In SQLite: where the time of the lease is stored. NULL if there is none. */
  readonly leaseTime?: { readonly table: string; readonly column: string }
}

/**
 * A database, as the statements of features see it. They are written for PostgreSQL: `$1` is a parameter, and `$schema.` stands before the
 * name of a table. SQLite gets them in its own spelling.
 */
export interface FeatureDatabase {
  /** An SQL expression, in ms. */
  readonly clock: string
  /** The column that says in which order rows were added. */
  readonly rowOrder: string
  /** Prepares a statement that changes nothing. */
  readonly read: <Row>(sql: string) => Query<Row>
  /** Prepares a write that survives the end of the process. */
  readonly write: <Row>(sql: string) => Query<Row>
  /** Prepares a write that survives a power failure. */
  readonly writeDurably: <Row>(sql: string) => Query<Row>
  /**
   * Runs statements in one transaction. Returns false if one that must have rows has none. A connection that was lost may have committed
   * them: then `isDone` has rows.
   */
  readonly transaction: (
    statements: readonly FeatureStatement[],
    isDone?: FeatureStatement,
  ) => Promise<boolean>
  /** Returns a table for a statement: the objects of a JSON array. */
  readonly jsonTable: (parameter: string, columns: JsonColumns) => string
}

/** The names of columns, and their types in PostgreSQL. */
export type JsonColumns = Readonly<Record<string, 'text' | 'integer' | 'double precision'>>

/** A statement in a transaction. If it must have rows and has none, those after it do not run. */
export interface FeatureStatement {
  readonly sql: string
  readonly values: readonly QueryValue[]
  readonly needsRows?: true
}

/** Returns the statements for the writes of a feature, by type. */
export type FeatureStatements<Write extends { readonly type: string }> = {
  readonly [Type in Write['type']]: (
    write: Extract<Write, { readonly type: Type }>,
  ) => readonly FeatureStatement[]
}

/** What a feature adds to a store, with statements for both databases. */
export interface SharedFeature<Part> extends Omit<FeatureTables, 'create'> {
  readonly open: (database: FeatureDatabase) => Part
  /** Returns the statements that a transition has in its transaction, by the type of the write. */
  readonly writes?: (
    clock: string,
  ) => Readonly<Record<string, (write: never) => readonly FeatureStatement[]>>
}
