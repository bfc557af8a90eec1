import { ProtocolError } from '../../protocol/errors.ts'

/** How many times the limit is read and thrown away, so that a client that is still sending hears the refusal. */
const DISCARD_FACTOR = 8

/** Reads a body up to a limit. More than that is never held. */
export async function readBody(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.byteLength
    if (size <= maxBytes) parts.push(chunk)
    else if (size > maxBytes * DISCARD_FACTOR) break
    else parts.length = 0
  }
  if (size > maxBytes) {
    throw new ProtocolError('too-large', {
      message: `The body is larger than ${maxBytes} bytes. Send less.`,
    })
  }
  return Buffer.concat(parts, size)
}
