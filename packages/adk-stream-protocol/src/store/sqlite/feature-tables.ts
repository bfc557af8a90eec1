import type { FeatureWrite } from '../../approvals/feature-write.ts'
import type { FeatureTables } from '../tables/feature-tables.ts'
import type { Connection } from './connection.ts'
import type { LeaseClock } from './leases.ts'
import { BROWSER_CALL_TABLES, sqliteBrowserCalls } from './tables/browser-calls.ts'
import { CREDENTIAL_TABLES, sqliteCredentials } from './tables/credentials.ts'
import { GRANT_TABLES, sqliteGrants, sqliteGrantWrites } from './tables/grants.ts'
import { LIVE_SESSION_TABLES, sqliteLiveSessions } from './tables/live-sessions.ts'
import { NOTICE_TABLES, sqliteNotices } from './tables/notices.ts'
import {
  PERSONAL_RECORD_TABLES,
  sqlitePersonalRecords,
  sqliteRequiredRecord,
} from './tables/personal-records.ts'
import { SIGNAL_TABLES, sqliteSignals } from './tables/signals.ts'

/** The tables of features. This file is the only one of the SQLite store that names the features. */
export const FEATURE_TABLES: readonly FeatureTables[] = [
  BROWSER_CALL_TABLES,
  LIVE_SESSION_TABLES,
  SIGNAL_TABLES,
  CREDENTIAL_TABLES,
  NOTICE_TABLES,
  GRANT_TABLES,
  PERSONAL_RECORD_TABLES,
]

/** Opens the parts of a store that belong to features. */
export function openFeatureTables(connection: Connection, clock: string, leaseClock: LeaseClock) {
  return {
    browserCalls: sqliteBrowserCalls(connection, clock, leaseClock),
    liveSessions: sqliteLiveSessions(connection, clock),
    signals: sqliteSignals(connection, clock),
    credentials: sqliteCredentials(connection, clock),
    notices: sqliteNotices(connection, clock),
    grants: sqliteGrants(connection, clock),
    personalRecords: sqlitePersonalRecords(connection, clock),
  }
}

/** Returns a function that stores what a feature adds to a transaction. It returns false if that is not possible. */
export function prepareFeatureWrites(
  connection: Connection,
  clock: string,
): (write: FeatureWrite) => boolean {
  const writeGrant = sqliteGrantWrites(connection, clock)
  const checkRecord = sqliteRequiredRecord(connection, clock)
  return (write) => (write.type === 'require-record' ? checkRecord(write) : writeGrant(write))
}
