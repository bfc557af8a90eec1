import { isIP } from 'node:net'

/**
 * Names under which a server is reached: `chat.example.com`, with a port `chat.example.com:8443`, or with a leading dot
 * `.example.com` for a domain and everything below it. `any` accepts every name.
 */
export type AllowedHosts = readonly string[] | 'any'

/**
 * Tells whether a request's `Host` header may be served. A page of any site can make its own name resolve to this machine (DNS
 * rebinding): its requests are then of the server's own origin, and only their `Host` shows where they came from. Accepted are
 * `localhost`, names below it, IP addresses, and the given names. A request without `Host` is not one of a browser.
 */
export function isAllowedHost(host: string | null | undefined, allowed: AllowedHosts): boolean {
  if (allowed === 'any' || host === null || host === undefined) return true
  const given = readHost(host)
  if (!given) return false
  const { name, port } = given
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  if (isIP(name.replace(/^\[|\]$/g, '')) !== 0) return true
  return allowed.some((entry) => {
    if (entry.startsWith('.')) return name === entry.slice(1) || name.endsWith(entry)
    const [entryName, entryPort] = entry.toLowerCase().split(':', 2)
    return name === entryName && (entryPort === undefined || entryPort === port)
  })
}

/** Throws for an entry that could never match, such as an origin in place of a host. */
export function checkAllowedHosts(allowed: AllowedHosts): void {
  if (allowed === 'any') return
  const bad = allowed.find((entry) => !/^\.?[a-z\d_-]+(?:\.[a-z\d_-]+)*(?::\d+)?$/i.test(entry))
  if (bad === undefined) return
  throw new TypeError(
    `createBridge: \`allowedHosts\` holds ${JSON.stringify(bad)}, which is not a host. Write names like "chat.example.com", or ".example.com" for all below it, or pass 'any'.`,
  )
}

function readHost(host: string): { name: string; port: string } | undefined {
  const match = /^(\[[\da-f:.]+\]|[^\s/?#@\\:[\]]+?)\.?(?::(\d*))?$/i.exec(host)
  const url = `http://${match?.[1]}`
  if (!match || !URL.canParse(url)) return undefined
  return { name: new URL(url).hostname, port: match[2] ?? '' }
}
