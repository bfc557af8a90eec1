import { ProtocolError } from './errors.ts'

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
