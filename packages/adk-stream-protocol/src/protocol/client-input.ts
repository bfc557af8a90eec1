import { z } from 'zod'

import { ProtocolError } from './errors.ts'
import { isRecord } from './guards.ts'

/** The maximum nesting depth of client JSON. Real messages stay below ten, and code that reads them is recursive. */
const MAX_JSON_DEPTH = 64

/**
 * The maximum number of values in client JSON. A history of 8 MiB has about 100,000. The 4 million values that fit
 * into 8 MiB would block the process for seconds.
 */
const MAX_JSON_VALUES = 250_000

const UTF_8 = new TextDecoder('utf-8', { fatal: true })

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Parses JSON from a client. Throws if it is not valid UTF-8 or JSON, or too expensive to read (RQ3, RQ130). */
export function parseJson(bytes: Uint8Array): unknown {
  checkCost(bytes)
  try {
    return JSON.parse(UTF_8.decode(bytes)) as unknown
  } catch (cause) {
    throw new ProtocolError('malformed-json', { cause })
  }
}

// Scans bytes before parsing. In UTF-8, no byte of a multi-byte character equals one of these ASCII codes.
function checkCost(bytes: Uint8Array): void {
  let depth = 0
  let values = 0
  let inString = false
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index]
    if (inString) {
      if (byte === BACKSLASH) index += 1
      else if (byte === QUOTE) inString = false
      continue
    }
    if (byte === QUOTE) inString = true
    else if (byte === COMMA) values += 1
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      values += 1
      depth += 1
      if (depth > MAX_JSON_DEPTH) throw tooDeep()
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth -= 1
    if (values > MAX_JSON_VALUES) throw tooMany()
  }
}

function tooDeep(): ProtocolError {
  return new ProtocolError('malformed-json', {
    message: `The JSON nests deeper than ${MAX_JSON_DEPTH} levels.`,
  })
}

function tooMany(): ProtocolError {
  return new ProtocolError('too-large', {
    message: `The JSON contains more than ${MAX_JSON_VALUES} values. Send only the newest messages.`,
  })
}

/**
 * An array with unchecked elements. `z.array` checks each element and keeps an issue for each invalid one, which can
 * take half a minute for a body of 8 MiB. The elements are counted first and then checked one by one.
 */
export const UncheckedArray = z.custom<readonly unknown[]>(Array.isArray, {
  message: 'Invalid input: expected an array',
})

/** An object with unchecked fields, for the same reason. */
export const UncheckedObject = z.custom<Readonly<Record<string, unknown>>>(isRecord, {
  message: 'Invalid input: expected an object',
})

/** A message from a client with unchecked parts. */
export const RawMessage = z.object({
  id: z.string().max(128).optional(),
  role: z.string(),
  parts: UncheckedArray.optional(),
  content: z.union([z.string(), UncheckedArray]).optional(),
  metadata: z.unknown().optional(),
})
export type RawMessage = z.infer<typeof RawMessage>

/** Describes the first issue of client input with its path. `whole` names the input, for an issue of the input itself. */
export function describeIssue({ issues: [issue] }: z.ZodError, whole: string): string {
  const path = issue?.path.join('.') ?? ''
  return `${path === '' ? whole : path}: ${issue?.message ?? 'unexpected shape'}`
}

/** A message part of which only the type has been checked. */
export interface RawPart extends Readonly<Record<string, unknown>> {
  readonly type: string
}

/** Returns the parts of a message. A message that is just text has none. */
export function partsOf({ parts, content = [] }: RawMessage): readonly unknown[] {
  return parts ?? (typeof content === 'string' ? [] : content)
}

export function isRawPart(part: unknown): part is RawPart {
  return isRecord(part) && typeof part['type'] === 'string'
}
