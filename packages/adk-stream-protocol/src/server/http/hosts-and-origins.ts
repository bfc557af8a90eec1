import { isIP } from 'node:net'

import { ProtocolError } from '../../protocol/errors.ts'

/**
 * Host names of a server: `chat.example.com`, with a port `chat.example.com:8443`, or with a leading dot `.example.com` for a domain
 * and its subdomains. `any` allows every host.
 */
export type AllowedHosts = readonly string[] | 'any'

/**
 * Returns true if a `Host` header is allowed: `localhost` and its subdomains, IP addresses, and the given hosts. This prevents DNS
 * rebinding, where a page of another site resolves its own host name to this server and so becomes same-origin. Requests without a
 * `Host` header do not come from browsers and are allowed.
 */
export function isAllowedHost(host: string | null | undefined, allowed: AllowedHosts): boolean {
  if (allowed === 'any' || host === null || host === undefined) return true
  const parsed = readHost(host)
  if (!parsed) return false
  const { name, port } = parsed
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  if (isIP(name.replace(/^\[|\]$/g, '')) !== 0) return true
  return allowed.some((entry) => {
    if (entry.startsWith('.')) return name === entry.slice(1) || name.endsWith(entry)
    const [entryName, entryPort] = entry.toLowerCase().split(':', 2)
    return name === entryName && (entryPort === undefined || entryPort === port)
  })
}

/** Throws if an entry can never match, such as an origin instead of a host. */
export function checkAllowedHosts(allowed: AllowedHosts): void {
  if (allowed === 'any') return
  const bad = allowed.find((entry) => !/^\.?[a-z\d_-]+(?:\.[a-z\d_-]+)*(?::\d+)?$/i.test(entry))
  if (bad === undefined) return
  throw new TypeError(
    `createBridge: \`allowedHosts\` contains ${JSON.stringify(bad)}, which is not a host. Use names like "chat.example.com", ".example.com" for all subdomains, or pass 'any'.`,
  )
}

function readHost(host: string): { name: string; port: string } | undefined {
  const match = /^(\[[\da-f:.]+\]|[^\s/?#@\\:[\]]+?)\.?(?::(\d*))?$/i.exec(host)
  const url = `http://${match?.[1]}`
  if (!match || !URL.canParse(url)) return undefined
  return { name: new URL(url).hostname, port: match[2] ?? '' }
}

/**
 * Throws if the request comes from a page of an origin that is not allowed. Returns the CORS headers of the response. Browsers send
 * `Origin` with every cross-origin request that could change something, so a request without it is allowed (SE3).
 */
export function checkOrigin(
  headers: Headers,
  allowedOrigins: readonly string[],
): Record<string, string> {
  const origin = headers.get('origin')
  if (origin === null) return {}
  if (allowedOrigins.includes(origin)) {
    return {
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
      vary: 'Origin',
    }
  }
  const host = headers.get('host')
  if (isOwnOrigin(origin, host)) return {}
  const cause = new ProtocolError('forbidden-origin', { message: adviseOn(origin, host) })
  throw new ProtocolError('forbidden-origin', { cause })
}

function adviseOn(origin: string, host: string | null): string {
  const [page, server] = [origin, host ?? ''].map((text) => JSON.stringify(text.slice(0, 200)))
  return `Refused a page with Origin: ${page} at a server with Host: ${server}. If the page is yours, add its origin to createBridge's \`allowedOrigins\`. If both are the same site, configure the proxy to forward the Host header (nginx: proxy_set_header Host $http_host).`
}

/** The headers of the response to a preflight of an allowed origin. */
export const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, POST, PATCH, DELETE',
  'access-control-allow-headers': 'content-type, x-api-key, authorization',
  'access-control-max-age': '600',
} as const

// The scheme is not compared: behind a proxy that terminates TLS, the server sees http instead of https.
function isOwnOrigin(origin: string, host: string | null): boolean {
  return URL.canParse(origin) && new URL(origin).host === host?.toLowerCase()
}

/** Normalizes an origin to the form that browsers send, without a trailing slash or default port. Returns an error if it is invalid. */
export function readOrigin(
  value: string,
): { readonly origin: string; readonly error?: never } | { readonly error: string } {
  const name = `\`allowedOrigins\` has ${JSON.stringify(value)}`
  if (value.includes('*'))
    return {
      error: `${name}. Wildcards are not supported: list each origin, such as "https://app.example".`,
    }
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (!url || url.host === '' || url.username !== '' || url.password !== '')
    return { error: `${name}, which is not an origin. Use a form like "https://app.example".` }
  if (!/^[^:]+:\/\/[^/?#]+\/?$/.test(value))
    return { error: `${name}. An origin has no path: use "${url.protocol}//${url.host}".` }
  return { origin: `${url.protocol}//${url.host}` }
}

/** Normalizes origins that `checkOptions` has checked. */
export function toOrigins(values: readonly string[] = []): string[] {
  return values.flatMap((value) => {
    const read = readOrigin(value)
    return read.error === undefined ? [read.origin] : []
  })
}
