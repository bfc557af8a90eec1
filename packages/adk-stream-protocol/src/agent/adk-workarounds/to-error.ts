import { inspect } from 'node:util'

/** What was thrown, as an error. JavaScript may throw anything. */
export function toError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown
  const message = typeof thrown === 'string' ? thrown : inspect(thrown, { depth: 2 })
  return new Error(message, { cause: thrown })
}
