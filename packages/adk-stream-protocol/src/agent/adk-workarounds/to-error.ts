import { inspect } from 'node:util'

/** Returns a thrown value as an `Error`. JavaScript can throw any value. */
export function toError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown
  const message = typeof thrown === 'string' ? thrown : inspect(thrown, { depth: 2 })
  return new Error(message, { cause: thrown })
}
