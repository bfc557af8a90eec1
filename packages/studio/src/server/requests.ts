import type { IncomingMessage, ServerResponse } from 'node:http'

import { type AuthenticateRequest, ProtocolError } from 'adk-stream-protocol/server'

const MAX_BODY_BYTES = 8 * 1_048_576

/** Converts a request for `authenticate`. */
export function toAuthenticateRequest(request: IncomingMessage): AuthenticateRequest {
  const { method = 'GET', url = '/' } = request
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers))
    if (typeof value === 'string') headers.set(name, value)
  const base = 'http://localhost'
  return { method, headers, url: URL.canParse(url, base) ? new URL(url, base) : new URL(base) }
}

/** Reads a JSON body of limited size. Rejects requests of other origins. */
export async function readJsonBody(request: IncomingMessage): Promise<string> {
  const { origin, host, 'content-type': type = '' } = request.headers
  if (origin !== undefined && !isOwn(origin, host)) throw new ProtocolError('forbidden-origin')
  if (!/^application\/json\s*(?:;|$)/i.test(type)) {
    throw new ProtocolError('unsupported-media-type')
  }
  const pieces: Buffer[] = []
  let bytes = 0
  // `destroyOnReturn` would close the connection before the error response is sent.
  for await (const piece of request.iterator({ destroyOnReturn: false })) {
    // Without an encoding, Node returns buffers.
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

/** Sends JSON that no cache keeps. */
export function writeJson(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
  })
  response.end(JSON.stringify(body))
}
