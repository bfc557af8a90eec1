import { isIP } from 'node:net'
import type { NetworkInterfaceInfo } from 'node:os'

type Interfaces = Readonly<
  Record<
    string,
    readonly Pick<NetworkInterfaceInfo, 'address' | 'family' | 'internal'>[] | undefined
  >
>

/** Returns whether a server with this `HOST` listens on all addresses of the machine. */
export function isEverywhere(host: string): boolean {
  return isIP(host) !== 0 && /^[0:.]+$/.test(host)
}

/**
 * Returns the URL of the server for other devices in the network, if it listens on all addresses and the machine has one. Docker's and
 * similar bridges come last: they lead to this machine only.
 */
export function findNetworkUrl(
  { host, port }: { readonly host: string; readonly port: string },
  interfaces: Interfaces,
): string | undefined {
  if (!isEverywhere(host)) return undefined
  const found = Object.entries(interfaces).flatMap(([name, addresses = []]) =>
    addresses
      // `fe80::` addresses work only with the name of an interface, and global IPv6 is often blocked between devices.
      .filter(({ family, internal, address }) => {
        return family === 'IPv4' && !internal && !address.startsWith('169.254.')
      })
      .map(({ address }) => ({ address, isBridge: BRIDGE.test(name) })),
  )
  const [best] = found.toSorted((a, b) => Number(a.isBridge) - Number(b.isBridge))
  return best && `http://${best.address}:${port}`
}

const BRIDGE = /^(?:docker|br-|veth|virbr|vmnet|vboxnet|utun|vEthernet)/
