import type { IncomingMessage } from 'node:http'

/** Where a client wants to connect, and with which key. */
export interface Target {
  /** `v1alpha` or `v1beta`. */
  readonly version: string
  /** Path and query, the key replaced by `[redacted]`. */
  readonly path: string
  readonly key: string | null
}

/** Reads the address of an upgrade; nothing if it is not Gemini Live's. */
export function readTarget(request: IncomingMessage): Target | undefined {
  // The Gen AI SDK puts two slashes before `ws` when its base URL ends in one.
  const url = new URL(`http://host${(request.url ?? '').replace(/^\/+/, '/')}`)
  const version = METHOD.exec(url.pathname)?.[1]
  if (version === undefined) return undefined
  const { searchParams } = url
  const key = searchParams.get('key') ?? searchParams.get('access_token') ?? readHeader(request)
  for (const name of ['key', 'access_token']) {
    if (searchParams.has(name)) searchParams.set(name, '[redacted]')
  }
  return { version, key, path: decodeURIComponent(url.pathname + url.search) }
}

const METHOD =
  /^\/ws\/google\.ai\.generativelanguage\.(v1alpha|v1beta)\.GenerativeService\.BidiGenerateContent(?:Constrained)?$/

function readHeader({ headers }: IncomingMessage): string | null {
  const key = headers['x-goog-api-key'] ?? headers.authorization?.replace(/^(Token|Bearer) /, '')
  return (Array.isArray(key) ? key[0] : key) ?? null
}
