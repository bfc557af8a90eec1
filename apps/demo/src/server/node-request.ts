import type { IncomingMessage } from 'node:http'

import type { AuthenticateRequest } from 'adk-stream-protocol/server'
import { ProtocolError } from 'adk-stream-protocol/server'

const MAX_BODY_BYTES = 8 * 1_048_576

/** What of a request says who is asking. */
export function toAuthenticateRequest(request: IncomingMessage): AuthenticateRequest {
  const { method = 'GET', url = '/' } = request
  const headers = new Headers()
  for (const name of ['cookie', 'x-api-key', 'accept-language']) {
    const value = request.headers[name]
    if (typeof value === 'string') headers.set(name, value)
  }
  const base = 'http://localhost'
  return { method, headers, url: URL.canParse(url, base) ? new URL(url, base) : new URL(base) }
}

/** The body of a request of our own page: JSON of a bounded size. A foreign page cannot send such a thing unasked. */
export async function readJsonBody(request: IncomingMessage): Promise<string> {
  const { origin, host, 'content-type': type = '' } = request.headers
  if (origin !== undefined && !isOwn(origin, host)) throw new ProtocolError('forbidden-origin')
  if (!/^application\/json\s*(?:;|$)/i.test(type)) {
    throw new ProtocolError('unsupported-media-type')
  }
  const pieces: Buffer[] = []
  let bytes = 0
  // The body is left to node when it is refused half-way, or the refusal could not be sent.
  for await (const piece of request.iterator({ destroyOnReturn: false })) {
    // Without an encoding, node gives bytes.
    const buffer = piece as Buffer
    bytes += buffer.length
    if (bytes > MAX_BODY_BYTES) throw new ProtocolError('too-large')
    pieces.push(buffer)
  }
  return Buffer.concat(pieces).toString('utf8')
}

function isOwn(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && new URL(origin).host === host?.toLowerCase()
}
