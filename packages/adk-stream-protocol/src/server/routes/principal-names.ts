import { callInTime } from '../../shared/async.ts'

/** Returns the name of a principal for other people, or undefined if it has none. */
export type NamePrincipal = (
  principalId: string,
) => string | undefined | Promise<string | undefined>

/** Returns the names of principals. Leaves out a principal without a name, or whose name cannot be determined. */
export type FindNames = (principalIds: Iterable<string>) => Promise<ReadonlyMap<string, string>>

/** The maximum length of a name, in UTF-16 code units. */
const MAX_LENGTH = 200

/** Returns a function that looks up names with the application's `namePrincipal`. */
export function createNameLookup(
  namePrincipal: NamePrincipal | undefined,
  onError: (error: unknown) => void,
): FindNames {
  const find = async (id: string): Promise<[string, string][]> => {
    try {
      // The types of the application are not checked at run time.
      const name: unknown = await callInTime('`namePrincipal`', () => namePrincipal?.(id))
      return typeof name === 'string' && name !== '' ? [[id, name.slice(0, MAX_LENGTH)]] : []
    } catch (error) {
      onError(error)
      return []
    }
  }
  return async (principalIds) => {
    if (!namePrincipal) return new Map()
    const found = await Promise.all(Array.from(new Set(principalIds), find))
    return new Map(found.flat())
  }
}
