import { createHash, timingSafeEqual } from 'node:crypto'

import { ProtocolError } from '../protocol/errors.ts'
import type { Authenticate } from './authenticate.ts'

/**
 * Authenticates by the header `X-API-Key`. Takes the id of the principal for each key.
 *
 * @example apiKey({ [process.env.API_KEY]: 'inbox-bot' })
 */
export function apiKey(principals: Readonly<Record<string, string>>): Authenticate {
  const keys = Object.entries(principals).map(([key, id]) => ({ digest: digest(key), id }))
  if (keys.some(({ id }) => id === '') || Object.hasOwn(principals, '')) {
    throw new TypeError('apiKey needs a non-empty key and a non-empty principal id for each entry.')
  }
  return ({ headers }) => {
    const given = headers.get('x-api-key')
    if (given === null) return undefined
    const givenDigest = digest(given)
    // Digests have one length, and every key is compared: the time taken tells nothing about a key.
    const found = keys.filter((key) => timingSafeEqual(key.digest, givenDigest))[0]
    if (!found) throw new ProtocolError('unauthenticated', { message: 'The API key is not valid.' })
    return { id: found.id }
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
