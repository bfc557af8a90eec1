import { ProtocolError } from '../protocol/errors.ts'

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
