import type { FeatureWrite } from '../approvals/feature-parts.ts'
import type { Relay, Signals } from '../relay/relay.ts'
import type { Clocks, RunStatement } from './postgres/database.ts'
import type { PostgresFeature, PostgresParts } from './postgres/feature-tables.ts'
import { statementRunner as runInPostgres } from './postgres/feature-tables.ts'
import { relayTables } from './postgres/postgres-relay.ts'
import { postgresBrowserCalls } from './postgres/tables/browser-calls.ts'
import { postgresCredentials } from './postgres/tables/credentials.ts'
import { postgresGrants } from './postgres/tables/grants.ts'
import { postgresLiveSessions } from './postgres/tables/live-sessions.ts'
import { postgresNotices } from './postgres/tables/notices.ts'
import { postgresPersonalRecords } from './postgres/tables/personal-records.ts'
import type { Connection } from './sqlite/connection.ts'
import type { SqliteClocks, SqliteFeature } from './sqlite/feature-tables.ts'
import { statementRunner as runInSqlite } from './sqlite/feature-tables.ts'
import { sqliteBrowserCalls } from './sqlite/tables/browser-calls.ts'
import { sqliteCredentials } from './sqlite/tables/credentials.ts'
import { sqliteGrants } from './sqlite/tables/grants.ts'
import { sqliteLiveSessions } from './sqlite/tables/live-sessions.ts'
import { sqliteNotices } from './sqlite/tables/notices.ts'
import { sqlitePersonalRecords } from './sqlite/tables/personal-records.ts'
import { sqliteSignals } from './sqlite/tables/signals.ts'
import type { FeatureReport, ReportOptions } from './describe.ts'
import type { BrowserCallStore } from './tables/browser-calls.ts'
import { reportBrowserCalls } from './tables/browser-calls.ts'
import type { FeatureStatement } from './tables/feature-tables.ts'
import type { CredentialStore } from './tables/credentials.ts'
import type { GrantStore } from './tables/grants.ts'
import type { LiveSessionStore } from './tables/live-sessions.ts'
import type { NoticeStore } from './tables/notices.ts'
import { reportNotices } from './tables/notices.ts'
import type { PersonalRecordStore } from './tables/personal-records.ts'

// The only file of the stores that names the features.

/** The parts of a store that belong to features. */
export interface FeatureParts {
  readonly browserCalls: BrowserCallStore
  /** Makes running turns readable on every server. Without it, a turn can be read only on the server that runs it. */
  readonly relay?: Relay
  /** Signals between the processes of a store without a relay. Without both, a live session does not move to another process, and a turn is stopped only at its own. */
  readonly signals?: Signals
  /** The state of live sessions. Without it, a live session that moves is restored from its messages. */
  readonly liveSessions?: LiveSessionStore
  /** Encrypted credentials of people who signed in. Without it, the bridge rejects the option `signIn`. */
  readonly credentials?: CredentialStore
  /** What people are told about approvals. Without it, the bridge rejects the option `notify`. */
  readonly notices?: NoticeStore
  /** Small records of people. Without it, the bridge rejects options that need them. Its approval store also checks the `writes` of transitions that name one. */
  readonly personalRecords?: PersonalRecordStore
  /** Decisions of people for calls that follow. Without it, policies cannot offer any. Its approval store also stores the `writes` of transitions. */
  readonly grants?: GrantStore
}

/** The order of both is that of the tables in the first migration. */
const SQLITE = {
  browserCalls: sqliteBrowserCalls,
  liveSessions: sqliteLiveSessions,
  signals: sqliteSignals,
  credentials: sqliteCredentials,
  notices: sqliteNotices,
  grants: sqliteGrants,
  personalRecords: sqlitePersonalRecords,
} satisfies { [Name in keyof FeatureParts]?: SqliteFeature<FeatureParts[Name]> }

const POSTGRES = {
  browserCalls: postgresBrowserCalls,
  liveSessions: postgresLiveSessions,
  credentials: postgresCredentials,
  relay: relayTables,
  notices: postgresNotices,
  grants: postgresGrants,
  personalRecords: postgresPersonalRecords,
} satisfies { [Name in keyof FeatureParts]?: PostgresFeature<FeatureParts[Name]> }

export const SQLITE_FEATURES: readonly SqliteFeature<unknown>[] = Object.values(SQLITE)

export const POSTGRES_FEATURES: readonly PostgresFeature<unknown>[] = Object.values(POSTGRES)

export function openSqliteFeatures(connection: Connection, clocks: SqliteClocks) {
  return mapParts(SQLITE, (feature) => feature.open(connection, clocks))
}

export function openPostgresFeatures(parts: PostgresParts) {
  return mapParts(POSTGRES, (feature) => feature.open(parts))
}

type Opened<Features> = {
  readonly [Name in keyof Features]: Features[Name] extends {
    readonly open: (...given: never) => infer Part
  }
    ? Part
    : never
}

function mapParts<Features extends Readonly<Record<string, unknown>>>(
  features: Features,
  open: (feature: Features[keyof Features]) => unknown,
): Opened<Features> {
  const parts = Object.entries(features as Readonly<Record<string, Features[keyof Features]>>).map(
    ([name, feature]) => [name, open(feature)] as const,
  )
  // Each feature has opened its part.
  return Object.fromEntries(parts) as Opened<Features>
}

type Writes = SqliteFeature<unknown>['writes']

/** Returns a function that returns the statements with which a transaction stores what a feature adds to it. */
function prepareWrites(
  features: readonly { readonly writes?: Writes }[],
  clock: string,
): (write: FeatureWrite) => readonly FeatureStatement[] | undefined {
  const writes = new Map(
    features.flatMap((feature) => Object.entries(feature.writes?.(clock) ?? {})),
  )
  // Each function gets the writes of its type.
  return (write) => writes.get(write.type)?.(write as never)
}

/** Returns a function that stores what a feature adds to a transaction. It returns false if that is not possible. */
export function prepareSqliteWrites(
  connection: Connection,
  clock: string,
): (write: FeatureWrite) => boolean {
  const statementsOf = prepareWrites(SQLITE_FEATURES, clock)
  const run = runInSqlite(connection)
  return (write) => {
    const statements = statementsOf(write)
    return statements !== undefined && run(statements)
  }
}

/** The same for PostgreSQL. */
export function preparePostgresWrites(
  schema: string,
  { clock }: Clocks,
): (run: RunStatement, write: FeatureWrite) => Promise<boolean> {
  const statementsOf = prepareWrites(POSTGRES_FEATURES, clock)
  const runAll = runInPostgres(schema)
  return async (run, write) => {
    const statements = statementsOf(write)
    return statements !== undefined && runAll(run, statements)
  }
}

/** Returns what `doctor` prints about the parts of features. */
export async function reportFeatures(
  { browserCalls, notices, relay }: FeatureParts,
  options: ReportOptions,
): Promise<Required<FeatureReport>> {
  const reports = [
    await reportBrowserCalls(browserCalls, options),
    ...(notices ? [await reportNotices(notices, options)] : []),
  ]
  return {
    sections: reports.flatMap(({ sections }) => sections),
    clientCalls: reports.flatMap(({ clientCalls = [] }) => clientCalls),
    findRunning: async (chat) => (await relay?.find(chat))?.messageId,
    describeApproval: async (...approval) => {
      const lines: string[] = []
      for (const { describeApproval } of reports)
        lines.push(...((await describeApproval?.(...approval)) ?? []))
      return lines
    },
  }
}
