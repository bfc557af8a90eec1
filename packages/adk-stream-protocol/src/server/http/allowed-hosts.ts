import { isIP } from 'node:net'

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
