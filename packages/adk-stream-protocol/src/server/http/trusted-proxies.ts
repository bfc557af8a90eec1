import { BlockList, isIP } from 'node:net'

import type { Exchange } from './exchange.ts'

/**
 * The proxies before the server whose `X-Forwarded-For` and `X-Forwarded-Proto` are read: how many there are, one after the
 * other, or their addresses and networks, such as `10.0.0.0/8`.
 */
export type TrustedProxies = number | readonly string[]

/** Whether a text is an address, or a network like `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  const [address = '', bits] = text.split('/', 2)
  const family = isIP(address)
  if (family === 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

/** Who a request came from, as far as the proxies before the server can be believed. */
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

  /** The request as its client sent it: with the scheme and the address that a trusted proxy tells. */
  read(exchange: Exchange): Exchange {
    const { headers, address: peer } = exchange
    if (!this.#isProxied(peer)) return exchange
    const told = list(headers.get('x-forwarded-for'))
    const address = this.#findClient([...told, ...(peer === undefined ? [''] : [peer])])
    const isSecure = list(headers.get('x-forwarded-proto')).at(-1)?.toLowerCase() === 'https'
    const url = isSecure ? new URL(exchange.url.href.replace(/^http:/, 'https:')) : exchange.url
    return { ...exchange, url, ...(address !== '' && { address }) }
  }

  /**
   * The address whose share of the server counts, if it is known to be a client's: an address of this machine or of a private
   * network is that of a proxy, unless proxies are declared.
   */
  clientOf({ address }: Exchange): string | undefined {
    if (address === undefined) return undefined
    const isDeclared = this.#hops > 0 || this.#trusted.rules.length > 0
    return isDeclared || !isIn(PRIVATE, address) ? address : undefined
  }

  #isProxied(peer: string | undefined): boolean {
    return this.#hops > 0 || (peer !== undefined && isIn(this.#trusted, peer))
  }

  /** From the nearest on: as many proxies as there are, or as many as are known. What is before them, anybody may have written. */
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
