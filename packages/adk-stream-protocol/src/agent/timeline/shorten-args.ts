/** The maximum length of a text in shortened arguments, and of all of them as JSON. */
const MAX_TEXT = 200
const MAX_JSON = 2_000
const MAX_ITEMS = 20
const MAX_DEPTH = 4

/** Returns the arguments of a call with long texts and lists cut, so that a timeline stays small. */
export function shortenArgs(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const short = shortenRecord(args, 0)
  if (JSON.stringify(short).length <= MAX_JSON) return short
  return { '…': `${JSON.stringify(short).slice(0, MAX_JSON)}…` }
}

/** Cuts a text and marks the cut. */
export function shortenText(text: string, length = MAX_TEXT): string {
  return text.length <= length ? text : `${text.slice(0, length).toWellFormed()}…`
}

function shortenRecord(record: object, depth: number): Record<string, unknown> {
  const entries = Object.entries(record).slice(0, MAX_ITEMS)
  // `fromEntries` defines properties, so that `__proto__` is a key like any other.
  return Object.fromEntries(
    entries.map(([key, value]: [string, unknown]) => [shortenText(key), shorten(value, depth + 1)]),
  )
}

function shorten(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return shortenText(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth > MAX_DEPTH) return '…'
  if (Array.isArray(value))
    return value.slice(0, MAX_ITEMS).map((item: unknown) => shorten(item, depth + 1))
  return shortenRecord(value, depth)
}
