import { StoreError } from './store-error.ts'
import { isObject, isRecord } from '../protocol/guards.ts'

/**
 * Encodes a value as JSON text and preserves bytes.
 *
 * JSON also makes every string safe to store: it escapes NUL and lone surrogates, which text columns of SQLite and
 * PostgreSQL would cut off or replace.
 */
export function encodeJson(value: unknown): string {
  const isPlain = checkPlain(value, MAX_DEPTH)
  try {
    // With a function that looks at each value, JSON.stringify takes several times as long.
    return isPlain ? JSON.stringify(value) : JSON.stringify(value, tagBytes)
  } catch (cause) {
    throw new StoreError(
      'invalid',
      'The value cannot be stored as JSON. Store plain data without bigint values.',
      { cause },
    )
  }
}

/** Decodes text that `encodeJson` wrote. The keys `__proto__` and `constructor` become ordinary own properties. */
export function decodeJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return text.includes(BYTES) ? untagBytes(value) : value
  } catch (cause) {
    throw new StoreError(
      'corrupt',
      'A stored value is not valid JSON. Restore the database from a backup.',
      {
        cause,
      },
    )
  }
}

// JSON text can be nested deeper than recursive code, ours and ADK's, can read. One such event would make its session
// unreadable forever.
const MAX_DEPTH = 500

/** Returns whether JSON preserves a value without tags. Throws if the value is nested too deep. */
function checkPlain(value: unknown, levels: number): boolean {
  if (!isObject(value)) return true
  if (ArrayBuffer.isView(value)) return false
  if (levels === 0) throw tooDeep()
  let isPlain = typeof value['toJSON'] !== 'function' && tagOf(value) === undefined
  for (const item of Object.values(value)) isPlain = checkPlain(item, levels - 1) && isPlain
  return isPlain
}

function tooDeep(): StoreError {
  return new StoreError(
    'invalid',
    `The value is circular or nested deeper than ${MAX_DEPTH} levels. Store flatter data.`,
  )
}

const BYTES = '$bytes'

// A plain object that looks like a tag gets one more `$` and loses it when it is decoded, so no value can be mistaken
// for bytes.
const TAG = /^\$+bytes$/u

function tagBytes(this: unknown, key: string, json: unknown): unknown {
  // `toJSON` has been applied to `json` and turns a Buffer into a list of numbers. The containing object still has
  // the original.
  const value = isObject(this) ? this[key] : json
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
  if (!isObject(value)) return value
  const tag = tagOf(value)
  if (tag === undefined)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, untagBytes(item)]))
  if (tag.key !== BYTES) return { [tag.key.slice(1)]: untagBytes(tag.value) }
  return new Uint8Array(Buffer.from(String(tag.value), 'base64'))
}

function tagOf(value: unknown): { key: string; value: unknown } | undefined {
  if (!isRecord(value)) return undefined
  const keys = Object.keys(value)
  const [key] = keys
  return key !== undefined && keys.length === 1 && TAG.test(key)
    ? { key, value: value[key] }
    : undefined
}
