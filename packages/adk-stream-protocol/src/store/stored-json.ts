import { StoreError } from './store-error.ts'

/**
 * Writes a value as JSON text that keeps bytes.
 *
 * JSON text is also what makes any string safe to store: NUL and lone surrogates become escapes, which SQLite's and
 * PostgreSQL's text columns would cut or replace.
 */
export function encodeJson(value: unknown): string {
  if (isDeeperThan(value, MAX_DEPTH)) {
    throw new StoreError(
      'invalid',
      `The value is nested in more than ${MAX_DEPTH} levels, or in itself; pass flatter data.`,
    )
  }
  try {
    return JSON.stringify(value, tagBytes)
  } catch (cause) {
    throw new StoreError(
      'invalid',
      'The value cannot be stored as JSON; pass plain data without bigint values.',
      { cause },
    )
  }
}

/** Reads text written by `encodeJson`; the keys `__proto__` and `constructor` come back as ordinary own keys. */
export function decodeJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return text.includes(BYTES) ? untagBytes(value) : value
  } catch (cause) {
    throw new StoreError(
      'corrupt',
      'A stored value is not the JSON that was written; restore the database from a backup.',
      {
        cause,
      },
    )
  }
}

// JSON text can be written deeper than recursive readers, ours and ADK's, can follow; one such event would make its
// session unreadable for ever.
const MAX_DEPTH = 500

function isDeeperThan(value: unknown, levels: number): boolean {
  if (!isRecord(value) || ArrayBuffer.isView(value)) return false
  return levels === 0 || Object.values(value).some((item) => isDeeperThan(item, levels - 1))
}

const BYTES = '$bytes'

// A plain object that looks like a tag gets one more `$`, and loses it on the way back, so no value can pose as bytes.
const TAG = /^\$+bytes$/u

function tagBytes(this: unknown, key: string, json: unknown): unknown {
  // `json` has been through `toJSON`, which turns a Buffer into a list of numbers; the holder still has the original.
  const value = isRecord(this) ? this[key] : json
  if (value instanceof Uint8Array) {
    return {
      [BYTES]: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64'),
    }
  }
  const tag = tagOf(json)
  return tag === undefined ? json : { [`$${tag.key}`]: tag.value }
}

function untagBytes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(untagBytes)
  if (!isRecord(value)) return value
  const tag = tagOf(value)
  if (tag === undefined)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, untagBytes(item)]))
  if (tag.key !== BYTES) return { [tag.key.slice(1)]: untagBytes(tag.value) }
  return new Uint8Array(Buffer.from(String(tag.value), 'base64'))
}

function tagOf(value: unknown): { key: string; value: unknown } | undefined {
  if (!isRecord(value) || Array.isArray(value)) return undefined
  const [key, ...others] = Object.keys(value)
  return key !== undefined && others.length === 0 && TAG.test(key)
    ? { key, value: value[key] }
    : undefined
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
