import { StoreError } from './store-error.ts'

/**
 * The version of the first released schema. Databases with a lower one were created during the development of the library. Until the first
 * release, every change of the schema or of stored JSON raises it.
 */
export const FIRST_VERSION = 104

/** Returns the version that a database has after a number of migrations. */
export function versionAfter(migrations: number): number {
  return FIRST_VERSION + migrations - 1
}

/** Returns how many migrations a database of a version has had. Throws if the version was never released. */
export function countApplied(
  version: number,
  { name, remove }: { readonly name: string; readonly remove: string },
): number {
  if (version >= FIRST_VERSION) return version - FIRST_VERSION + 1
  throw new StoreError(
    'older-schema',
    `${name} was created by an unreleased version of this library, and cannot be migrated. ${remove}, or continue to use the version that created it.`,
  )
}
