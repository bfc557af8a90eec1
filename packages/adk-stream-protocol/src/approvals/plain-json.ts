import { ApprovalError } from './approval-error.ts'

/** How deep arguments and outputs may nest; what reads them later recurses. */
export const MAX_DEPTH = 200

/** Copies a value as JSON would carry it, and refuses what JSON cannot carry. */
export function plainJson<Value>(what: string, value: Value): Value {
  if (isDeeperThan(value, MAX_DEPTH)) {
    throw new ApprovalError(
      'invalid',
      `${what} is nested in more than ${MAX_DEPTH} levels, or in itself.`,
    )
  }
  try {
    // `undefined` has no JSON; a value whose type allows it allows `null` to stand for it in a stored record.
    return JSON.parse(JSON.stringify(value) ?? 'null') as Value
  } catch (cause) {
    throw new ApprovalError('invalid', `${what} cannot be written as JSON.`, { cause })
  }
}

export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return false
  return levels === 0 || Object.values(value).some((item) => isDeeperThan(item, levels - 1))
}
