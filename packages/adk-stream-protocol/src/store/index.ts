export { openSqliteStore } from './sqlite/sqlite-store.ts'
export type { Store } from './store.ts'
export { StoreError } from './store-error.ts'
