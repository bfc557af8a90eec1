import { BlockList, isIP } from 'node:net'

import type { Exchange } from './exchange.ts'

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
