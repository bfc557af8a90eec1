import type { FeatureWrite } from '../../approvals/feature-write.ts'
import type { FeatureTables } from '../tables/feature-tables.ts'
import type { Clocks, Database, RunStatement } from './database.ts'
import { postgresRelay } from './postgres-relay.ts'
import { BROWSER_CALL_TABLES, postgresBrowserCalls } from './tables/browser-calls.ts'
import { CREDENTIAL_TABLES, postgresCredentials } from './tables/credentials.ts'
import { GRANT_TABLES, postgresGrants, postgresGrantWrites } from './tables/grants.ts'
import { LIVE_SESSION_TABLES, postgresLiveSessions } from './tables/live-sessions.ts'
import { NOTICE_TABLES, postgresNotices } from './tables/notices.ts'
import {
  PERSONAL_RECORD_TABLES,
  postgresPersonalRecords,
  postgresRequiredRecord,
} from './tables/personal-records.ts'
import { RELAY_TABLES } from './tables/relay.ts'

/** The tables of features. This file is the only one of the PostgreSQL store that names the features. */
export const FEATURE_TABLES: readonly FeatureTables[] = [
  BROWSER_CALL_TABLES,
  LIVE_SESSION_TABLES,
  CREDENTIAL_TABLES,
  RELAY_TABLES,
  NOTICE_TABLES,
  GRANT_TABLES,
  PERSONAL_RECORD_TABLES,
]

/** Opens the parts of a store that belong to features. */
export function openFeatureTables(
  { turns, decisions, createClient }: FeatureDatabases,
  schema: string,
  clocks: Clocks,
) {
  return {
    browserCalls: postgresBrowserCalls(turns, schema, clocks),
    liveSessions: postgresLiveSessions(turns, schema, clocks),
    credentials: postgresCredentials(turns, schema, clocks),
    notices: postgresNotices(turns, schema, clocks),
    grants: postgresGrants(turns, schema, clocks),
    personalRecords: postgresPersonalRecords(turns, schema, clocks),
    relay: postgresRelay({ database: turns, signals: decisions, schema, clocks, createClient }),
  }
}

interface FeatureDatabases {
  readonly turns: Database
  readonly decisions: Database
  readonly createClient: Parameters<typeof postgresRelay>[0]['createClient']
}

/** Returns a function that stores what a feature adds to a transaction. It returns false if that is not possible. */
export function featureWrites(
  schema: string,
  clocks: Clocks,
): (run: RunStatement, write: FeatureWrite) => Promise<boolean> {
  const writeGrant = postgresGrantWrites(schema, clocks)
  const checkRecord = postgresRequiredRecord(schema, clocks)
  return (run, write) =>
    write.type === 'require-record' ? checkRecord(run, write) : writeGrant(run, write)
}
