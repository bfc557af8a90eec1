import type { FeatureTables, WriteOf } from '../tables/feature-tables.ts'
import type { Clocks, Database, ListenClient, RunStatement } from './database.ts'

/** What a feature adds to a PostgreSQL store. */
export interface PostgresFeature<Part> extends FeatureTables {
  readonly open: (parts: PostgresParts) => Part
  /** Prepares functions that store what the feature adds to a transaction, by the type of the write. */
  readonly prepareWrites?: (
    parts: Pick<PostgresParts, 'schema' | 'clocks'>,
  ) => Readonly<Record<string, (run: RunStatement, write: never) => Promise<boolean>>>
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

/** Functions for the writes of a feature, by type. They return false if that is not possible. */
export type PostgresWrites<Write extends { readonly type: string }> = {
  readonly [Type in Write['type']]: (
    run: RunStatement,
    write: WriteOf<Write, Type>,
  ) => Promise<boolean>
}
