import { ProtocolError } from './errors.ts'

/** How deep client JSON may nest. Real messages stay under ten; libraries further in recurse. */
const MAX_JSON_DEPTH = 64

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPENING = new Set([0x5b, 0x7b])
const CLOSING = new Set([0x5d, 0x7d])

/** Parses client bytes, refusing invalid UTF-8, invalid JSON and nesting that would overflow a recursive reader (RQ3). */
export function parseJson(bytes: Uint8Array): unknown {
  if (nestsTooDeep(bytes)) {
    throw new ProtocolError('malformed-json', {
      message: `The JSON nests deeper than ${MAX_JSON_DEPTH} levels.`,
    })
  }
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown
  } catch (cause) {
    throw new ProtocolError('malformed-json', { cause })
  }
}

// Works on bytes before anything is parsed: in UTF-8 no byte of a longer character equals one of these ASCII codes.
function nestsTooDeep(bytes: Uint8Array): boolean {
  let depth = 0
  let inString = false
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index] ?? 0
    if (inString) {
      if (byte === BACKSLASH) index += 1
      else if (byte === QUOTE) inString = false
    } else if (byte === QUOTE) inString = true
    else if (OPENING.has(byte) && ++depth > MAX_JSON_DEPTH) return true
    else if (CLOSING.has(byte)) depth -= 1
  }
  return false
}
