import { createHash, timingSafeEqual } from 'node:crypto'

import { ProtocolError } from '../../protocol/errors.ts'
import type { Authenticate, Principal } from './authenticate.ts'

/**
 * Authenticates requests by the header `X-API-Key`. `principals` maps each key to a principal or its id.
 *
 * @example apiKey({ [process.env.API_KEY]: 'inbox-bot' })
 */
export function apiKey(principals: Readonly<Record<string, string | Principal>>): Authenticate {
  const keys = Object.entries(principals).map(([key, principal]) => ({
    digest: digest(key),
    principal: typeof principal === 'string' ? { id: principal } : principal,
  }))
  if (keys.some(({ principal }) => principal.id === '') || Object.hasOwn(principals, '')) {
    throw new TypeError('apiKey needs a non-empty key and a non-empty principal id for each entry.')
  }
  return ({ headers }) => {
    const sent = headers.get('x-api-key')
    if (sent === null) return undefined
    const sentDigest = digest(sent)
    // All digests have the same length and every key is compared, so the time reveals nothing about a key.
    const found = keys.filter((key) => timingSafeEqual(key.digest, sentDigest))[0]
    if (!found) throw new ProtocolError('unauthenticated', { message: 'The API key is not valid.' })
    return found.principal
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
