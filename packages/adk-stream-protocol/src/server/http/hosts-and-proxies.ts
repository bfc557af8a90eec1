import { BlockList, isIP } from 'node:net'

import { PRINCIPAL_HEADER } from '../../protocol/error-codes.ts'
import { MESSAGE_HEADER } from '../../protocol/sse.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { Exchange } from './exchange.ts'

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
      // The client counts down to deadlines by the clock of the server, binds decisions to the principal, and names the message of a stop.
      'access-control-expose-headers': `date, ${PRINCIPAL_HEADER}, ${MESSAGE_HEADER}`,
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
  'access-control-allow-headers': `content-type, x-api-key, authorization, ${PRINCIPAL_HEADER}`,
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

/**
 * The proxies in front of the server whose `X-Forwarded-For` and `X-Forwarded-Proto` headers are trusted: the number of proxies in the
 * chain, or their addresses and networks, such as `10.0.0.0/8`.
 *
 * @inline
 */
export type TrustedProxies = number | readonly string[]

/** Whether a string is an IP address, or a network like `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  const [address = '', bits] = text.split('/', 2)
  const family = isIP(address)
  if (family === 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

/** Finds the client address and scheme of requests that pass through trusted proxies. */
export interface Proxies {
  /** Returns the request with the scheme and address that a trusted proxy reports. */
  read(exchange: Exchange): Exchange
  /**
   * Returns the client address of a request. Returns undefined for loopback and private addresses if no proxies are declared, because
   * they usually belong to a proxy.
   */
  clientOf(exchange: Exchange): string | undefined
}

export function trustProxies(trusted: TrustedProxies = 0): Proxies {
  const hops = typeof trusted === 'number' ? trusted : 0
  const networks = toBlockList(typeof trusted === 'number' ? [] : trusted)
  const isDeclared = hops > 0 || networks.rules.length > 0
  const isProxied = (peer: string | undefined): boolean =>
    isDeclared && (hops > 0 || (peer !== undefined && isIn(networks, peer)))
  // Skips the trusted proxies from the end of the path. A client can write the entries before the result.
  const findClient = (path: readonly string[]): string => {
    const client =
      hops > 0 ? path.at(-1 - hops) : path.findLast((address) => !isIn(networks, address))
    return client ?? path[0] ?? ''
  }
  return {
    read(exchange) {
      const { headers, address: peer } = exchange
      if (!isProxied(peer)) return exchange
      const forwarded = list(headers.get('x-forwarded-for'))
      const address = findClient([...forwarded, peer ?? ''])
      const isSecure = list(headers.get('x-forwarded-proto')).at(-1)?.toLowerCase() === 'https'
      const url = isSecure ? new URL(exchange.url.href.replace(/^http:/, 'https:')) : exchange.url
      return { ...exchange, url, ...(address !== '' && { address }) }
    },
    clientOf: ({ address }) =>
      address !== undefined && (isDeclared || !isIn(PRIVATE, address)) ? address : undefined,
  }
}

function toBlockList(networks: readonly string[]): BlockList {
  const result = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/', 2)
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    result.addSubnet(address, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family)
  }
  return result
}

function list(header: string | null): string[] {
  return header === null ? [] : header.split(',').map((entry) => entry.trim().slice(0, 64))
}

const PRIVATE = toBlockList([
  '127.0.0.0/8',
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '169.254.0.0/16',
  '::1/128',
  'fc00::/7',
  'fe80::/10',
])

function isIn(networks: BlockList, address: string): boolean {
  const family = isIP(address)
  return family !== 0 && networks.check(address, family === 6 ? 'ipv6' : 'ipv4')
}
