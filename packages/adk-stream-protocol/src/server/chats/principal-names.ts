/** Returns the name of a principal for other people, or undefined if it has none. */
export type NamePrincipal = (
  principalId: string,
) => string | undefined | Promise<string | undefined>

/** The maximum length of a name, in UTF-16 code units. */
const MAX_LENGTH = 200

/** Looks up the names of principals with the application's `namePrincipal`. */
export class PrincipalNames {
  readonly #name: NamePrincipal | undefined
  readonly #onError: (error: unknown) => void

  constructor(name: NamePrincipal | undefined, onError: (error: unknown) => void) {
    this.#name = name
    this.#onError = onError
  }

  /** Returns the names of these principals. A principal without a name, or whose name cannot be determined, is left out. */
  async of(principalIds: Iterable<string>): Promise<ReadonlyMap<string, string>> {
    if (!this.#name) return new Map()
    const ids = [...new Set(principalIds)]
    const names = await Promise.all(ids.map(async (id) => [id, await this.#find(id)] as const))
    return new Map(names.flatMap(([id, name]) => (name === undefined ? [] : [[id, name]])))
  }

  async #find(principalId: string): Promise<string | undefined> {
    try {
      // The types of the application are not checked at run time.
      const name: unknown = await this.#name?.(principalId)
      return typeof name === 'string' && name !== '' ? name.slice(0, MAX_LENGTH) : undefined
    } catch (error) {
      this.#onError(error)
      return undefined
    }
  }
}
