import { createHash, timingSafeEqual } from 'node:crypto'

import { ProtocolError } from '../../protocol/errors.ts'
import type { Authenticate, Principal } from './authenticate.ts'

/**
 * Authenticates by the header `X-API-Key`. Takes the principal, or its id, for each key.
 *
 * @example apiKey({ [process.env.API_KEY]: 'inbox-bot' })
 */
export function apiKey(principals: Readonly<Record<string, string | Principal>>): Authenticate {
  const keys = Object.entries(principals).map(([key, given]) => ({
    digest: digest(key),
    principal: typeof given === 'string' ? { id: given } : given,
  }))
  if (keys.some(({ principal }) => principal.id === '') || Object.hasOwn(principals, '')) {
    throw new TypeError('apiKey needs a non-empty key and a non-empty principal id for each entry.')
  }
  return ({ headers }) => {
    const given = headers.get('x-api-key')
    if (given === null) return undefined
    const givenDigest = digest(given)
    // Digests have one length, and every key is compared: the time taken tells nothing about a key.
    const found = keys.filter((key) => timingSafeEqual(key.digest, givenDigest))[0]
    if (!found) throw new ProtocolError('unauthenticated', { message: 'The API key is not valid.' })
    return found.principal
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
