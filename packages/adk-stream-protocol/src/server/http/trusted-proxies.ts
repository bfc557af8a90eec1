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
export class Proxies {
  readonly #hops: number
  readonly #trusted = new BlockList()

  constructor(trusted: TrustedProxies = 0) {
    this.#hops = typeof trusted === 'number' ? trusted : 0
    for (const network of typeof trusted === 'number' ? [] : trusted) {
      const [address = '', bits] = network.split('/', 2)
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
      this.#trusted.addSubnet(address, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family)
    }
  }

  /** Returns the request with the scheme and address that a trusted proxy reports. */
  read(exchange: Exchange): Exchange {
    const { headers, address: peer } = exchange
    if (!this.#isProxied(peer)) return exchange
    const forwarded = list(headers.get('x-forwarded-for'))
    const address = this.#findClient([...forwarded, ...(peer === undefined ? [''] : [peer])])
    const isSecure = list(headers.get('x-forwarded-proto')).at(-1)?.toLowerCase() === 'https'
    const url = isSecure ? new URL(exchange.url.href.replace(/^http:/, 'https:')) : exchange.url
    return { ...exchange, url, ...(address !== '' && { address }) }
  }

  /**
   * Returns the client address of a request. Returns undefined for loopback and private addresses if no proxies are declared, because
   * they usually belong to a proxy.
   */
  clientOf({ address }: Exchange): string | undefined {
    if (address === undefined) return undefined
    const isDeclared = this.#hops > 0 || this.#trusted.rules.length > 0
    return isDeclared || !isIn(PRIVATE, address) ? address : undefined
  }

  #isProxied(peer: string | undefined): boolean {
    return this.#hops > 0 || (peer !== undefined && isIn(this.#trusted, peer))
  }

  /** Skips the trusted proxies from the end of the path. Entries before the result are not trustworthy: a client can write them. */
  #findClient(path: readonly string[]): string {
    if (this.#hops > 0) return path.at(-1 - this.#hops) ?? path[0] ?? ''
    return path.findLast((address) => !isIn(this.#trusted, address)) ?? path[0] ?? ''
  }
}

function list(header: string | null): string[] {
  return header === null ? [] : header.split(',').map((entry) => entry.trim().slice(0, 64))
}

const PRIVATE = new BlockList()
for (const [address, bits] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['169.254.0.0', 16],
] as const)
  PRIVATE.addSubnet(address, bits, 'ipv4')
for (const [address, bits] of [
  ['::1', 128],
  ['fc00::', 7],
  ['fe80::', 10],
] as const)
  PRIVATE.addSubnet(address, bits, 'ipv6')

function isIn(networks: BlockList, address: string): boolean {
  const family = isIP(address)
  return family !== 0 && networks.check(address, family === 6 ? 'ipv6' : 'ipv4')
}
