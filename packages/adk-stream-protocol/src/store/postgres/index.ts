export type { PostgresClient, PostgresPool, PostgresQuery } from './database.ts'
export type { PostgresStoreOptions } from './postgres-store.ts'
export { openPostgresStore } from './postgres-store.ts'
