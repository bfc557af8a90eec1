import { ProtocolError } from '../../protocol/errors.ts'

/**
 * Lets a page of another origin in only by name. Browsers send `Origin` with every request of a script that could do harm;
 * without it, the request is not one of a foreign page (SE3).
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
  return `Refused a page with Origin: ${page} at a server with Host: ${server}. If the page is yours, add its origin to createBridge's \`allowedOrigins\`; if both are one site, let the proxy pass the browser's Host on (nginx: proxy_set_header Host $http_host).`
}

/** The answer to a preflight of an allowed origin. */
export const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, POST, PATCH, DELETE',
  'access-control-allow-headers': 'content-type, x-api-key, authorization',
  'access-control-max-age': '600',
} as const

// The scheme is not compared: behind a proxy that ends TLS, the server sees http where the page has https.
function isOwnOrigin(origin: string, host: string | null): boolean {
  return URL.canParse(origin) && new URL(origin).host === host?.toLowerCase()
}

/** An origin as browsers send it, or what is wrong with it. A slash at the end is left out; a default port too. */
export function readOrigin(
  value: string,
): { readonly origin: string; readonly error?: never } | { readonly error: string } {
  const name = `\`allowedOrigins\` has ${JSON.stringify(value)}`
  if (value.includes('*'))
    return { error: `${name}. Name each origin in full, such as "https://app.example".` }
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (!url || url.host === '' || url.username !== '' || url.password !== '')
    return { error: `${name}, which is no origin. Write it like "https://app.example".` }
  if (!/^[^:]+:\/\/[^/?#]+\/?$/.test(value))
    return { error: `${name}. An origin has no path: write "${url.protocol}//${url.host}".` }
  return { origin: `${url.protocol}//${url.host}` }
}

/** Origins as browsers send them. They have been checked. */
export function toOrigins(values: readonly string[] = []): string[] {
  return values.flatMap((value) => {
    const read = readOrigin(value)
    return read.error === undefined ? [read.origin] : []
  })
}
