import { fileURLToPath } from 'node:url'

import sirv, { type RequestHandler } from 'sirv'

/** Where `vite build` puts the page. */
export const PAGE_DIR = fileURLToPath(new URL('../../dist', import.meta.url))

/**
 * What the page may do. Scripts and styles come from this server only; images may also be inlined by the model as data;
 * nothing is ever loaded from elsewhere, so that an answer cannot leak the conversation through a picture's address.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'self'",
  "script-src 'self'",
  "style-src 'self'",
  // Of blobs, only what the page itself makes: pictures that are about to be sent, sound that was recorded.
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  // With the socket: of the same origin, it is 'self' too. The worklet of the microphone is a worker.
  "connect-src 'self'",
  "worker-src 'self'",
  "font-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/** On every response of the server, the bridge's too. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'microphone=(self), geolocation=(self), camera=(), payment=(), usb=()',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
}

/** Serves the built page; names with a hash in them are cached for good. */
export function createPage(dir: string): RequestHandler {
  return sirv(dir, {
    etag: true,
    setHeaders(response, pathname) {
      const hashed = pathname.startsWith('/assets/')
      response.setHeader(
        'Cache-Control',
        hashed ? 'public, max-age=31536000, immutable' : 'no-cache',
      )
    },
  })
}
