/** The most digits after the point of a decimal string. */
const MAX_DECIMALS = 9
const DECIMAL = /^(?:0|[1-9]\d*)(?:\.(\d+))?$/

/** The unit in which amounts are summed: integers, or decimal strings with a number of digits after the point. */
export type AmountUnit = 'integer' | { readonly decimals: number }

/** Returns the unit of a limit. Returns undefined if it is neither an integer nor a decimal string. */
export function unitOf(max: unknown): AmountUnit | undefined {
  if (typeof max === 'number') return 'integer'
  const decimals = typeof max === 'string' ? readDecimals(max) : undefined
  return decimals === undefined ? undefined : { decimals }
}

/**
 * Returns an amount as an integer number of the smallest part of a unit, without rounding. Returns undefined for a value that is not
 * positive, has another type than the unit, has more digits after the point, or is too large to be exact.
 */
export function toExactAmount(value: unknown, unit: AmountUnit): number | undefined {
  const amount = unit === 'integer' ? value : shift(value, unit.decimals)
  return typeof amount === 'number' && Number.isSafeInteger(amount) && amount > 0
    ? amount
    : undefined
}

/** Returns an exact amount in the form of its unit. */
export function fromExactAmount(amount: number, unit: AmountUnit): number | string {
  if (unit === 'integer') return amount
  const digits = String(amount).padStart(unit.decimals + 1, '0')
  const point = digits.length - unit.decimals
  return unit.decimals === 0 ? digits : `${digits.slice(0, point)}.${digits.slice(point)}`
}

function readDecimals(text: string): number | undefined {
  const found = DECIMAL.exec(text)
  const decimals = found?.[1]?.length ?? 0
  return found && decimals <= MAX_DECIMALS ? decimals : undefined
}

/** Moves the point of a decimal string behind its last digit. */
function shift(text: unknown, decimals: number): number | undefined {
  const own = typeof text === 'string' ? readDecimals(text) : undefined
  if (typeof text !== 'string' || own === undefined || own > decimals) return undefined
  return Number(`${text.replace('.', '')}${'0'.repeat(decimals - own)}`)
}
