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
  const address = `http://host${(request.url ?? '').replace(/^\/*/, '/')}`
  const { pathname, searchParams } = new URL(URL.canParse(address) ? address : 'http://host')
  const version = METHOD.exec(pathname)?.[1]
  if (version === undefined) return undefined
  const key = searchParams.get('key') ?? searchParams.get('access_token') ?? readHeader(request)
  for (const name of ['key', 'access_token']) {
    if (searchParams.has(name)) searchParams.set(name, REDACTED)
  }
  const query = searchParams.toString().replaceAll(encodeURIComponent(REDACTED), REDACTED)
  return { version, key, path: query ? `${pathname}?${query}` : pathname }
}

const REDACTED = '[redacted]'

const METHOD =
  /^\/ws\/google\.ai\.generativelanguage\.(v1alpha|v1beta)\.GenerativeService\.BidiGenerateContent(?:Constrained)?$/

function readHeader({ headers }: IncomingMessage): string | null {
  const key = headers['x-goog-api-key'] ?? headers.authorization?.replace(/^(Token|Bearer) /, '')
  return (Array.isArray(key) ? key[0] : key) ?? null
}
