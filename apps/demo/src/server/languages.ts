import type { Authenticate } from 'adk-stream-protocol/server'

import { createTtlCache } from '../agent/weather/ttl-cache.ts'

export type Language = 'en' | 'ja'

/** In which language people are to be addressed. */
export interface Languages {
  of(principalId: string): Language
  /** Authenticates, and notes the language that the page asks for whenever it sends something. */
  noting(authenticate: Authenticate): Authenticate
}

export function createLanguages(): Languages {
  const asked = createTtlCache<Language>({
    ttlMs: 24 * 3_600_000,
    capacity: 1000,
    now: () => performance.now(),
  })
  return {
    of: (principalId) => asked.get(principalId) ?? 'en',
    noting: (authenticate) => async (request) => {
      const principal = await authenticate(request)
      const header = request.headers.get('accept-language')
      if (principal && header !== null && request.method === 'POST') {
        asked.set(principal.id, header.startsWith('ja') ? 'ja' : 'en')
      }
      return principal
    },
  }
}
