import { fileURLToPath } from 'node:url'

import sirv, { type RequestHandler } from 'sirv'

/** The built page without a plug-in. */
export const PAGE_DIR = fileURLToPath(new URL('../../dist/page', import.meta.url))

/**
 * Scripts and styles come from this server only. Images and audio may also be `data:` URLs of the model. Nothing is loaded from other servers,
 * so that a reply cannot leak the conversation through the URL of a picture.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'self'",
  "script-src 'self'",
  "style-src 'self'",
  // The page creates blobs for pictures to send and for recorded audio.
  "img-src 'self' data: blob:",
  "media-src 'self' data: blob:",
  // 'self' includes the WebSocket of the same origin. The audio worklet of the microphone is a worker.
  "connect-src 'self'",
  "worker-src 'self'",
  "font-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/** The headers of every response, including those of the bridge. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'microphone=(self), geolocation=(self), camera=(), payment=(), usb=()',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
}

/** Serves the built page, compressed. Browsers cache files with a hash in their name permanently. */
export function createPage(dir: string): RequestHandler {
  return sirv(dir, {
    etag: true,
    brotli: true,
    gzip: true,
    setHeaders(response, pathname) {
      const hashed = pathname.startsWith('/assets/')
      response.setHeader(
        'Cache-Control',
        hashed ? 'public, max-age=31536000, immutable' : 'no-cache',
      )
    },
  })
}
