import { ApprovalError } from './approval-error.ts'

/** The maximum nesting depth of arguments and outputs. Code that reads them later is recursive. */
export const MAX_DEPTH = 200

/** Returns a copy of a value as JSON carries it. Throws if JSON cannot carry it. */
export function plainJson<Value>(what: string, value: Value): Value {
  if (isDeeperThan(value, MAX_DEPTH)) {
    throw new ApprovalError(
      'invalid',
      `${what} is circular or nested deeper than ${MAX_DEPTH} levels.`,
    )
  }
  try {
    // JSON has no `undefined`. If the type of a value allows it, the stored record contains `null`.
    return JSON.parse(JSON.stringify(value) ?? 'null') as Value
  } catch (cause) {
    throw new ApprovalError('invalid', `${what} cannot be encoded as JSON.`, { cause })
  }
}

export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return false
  return levels === 0 || Object.values(value).some((item) => isDeeperThan(item, levels - 1))
}
