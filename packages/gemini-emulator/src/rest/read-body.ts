import type { IncomingMessage } from 'node:http'

import { invalidArgument } from '../wire/google-error.ts'

/** Reads the whole body as text; refuses more than Gemini takes. */
export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Uint8Array>) {
    size += chunk.length
    // The rest is read and dropped: a client that is still sending would not see an early answer.
    if (size <= MAX_BODY_BYTES) chunks.push(chunk)
    if (size > ABSURD_BODY_BYTES) request.destroy()
  }
  if (size > MAX_BODY_BYTES) {
    throw invalidArgument(`Request payload size exceeds the limit: ${MAX_BODY_BYTES} bytes.`)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const MAX_BODY_BYTES = 20 * 1024 * 1024
const ABSURD_BODY_BYTES = 10 * MAX_BODY_BYTES
