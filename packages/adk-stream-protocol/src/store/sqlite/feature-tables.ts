import type { FeatureTables, WriteOf } from '../tables/feature-tables.ts'
import type { Connection } from './connection.ts'
import type { LeaseClock } from './leases.ts'

/** What a feature adds to a SQLite store. */
export interface SqliteFeature<Part> extends FeatureTables {
  readonly open: (connection: Connection, clocks: SqliteClocks) => Part
  /** Prepares functions that store what the feature adds to a transaction, by the type of the write. */
  readonly prepareWrites?: (
    connection: Connection,
    clocks: SqliteClocks,
  ) => Readonly<Record<string, (write: never) => boolean>>
}

export interface SqliteClocks {
  /** An SQL expression, in ms. */
  readonly clock: string
  readonly leaseClock: LeaseClock
}

/** Functions for the writes of a feature, by type. They return false if that is not possible. */
export type SqliteWrites<Write extends { readonly type: string }> = {
  readonly [Type in Write['type']]: (write: WriteOf<Write, Type>) => boolean
}
