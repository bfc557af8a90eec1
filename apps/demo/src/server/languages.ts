import type { Authenticate } from 'adk-stream-protocol/server'

import { createTtlCache } from '../agent/weather/ttl-cache.ts'

export type Language = 'en' | 'ja'

/** In which language people are to be addressed. */
export interface Languages {
  of(principalId: string): Language
  /** Of whoever was noted last. */
  latest(): Language
  /** Authenticates, and notes the language that the page asks for whenever it sends something. */
  noting(authenticate: Authenticate): Authenticate
}

export function createLanguages(): Languages {
  const asked = createTtlCache<Language>({
    ttlMs: 24 * 3_600_000,
    capacity: 1000,
    now: () => performance.now(),
  })
  let latest: Language = 'en'
  return {
    of: (principalId) => asked.get(principalId) ?? 'en',
    latest: () => latest,
    noting: (authenticate) => async (request) => {
      const principal = await authenticate(request)
      const header = request.headers.get('accept-language')
      if (!principal || header === null) return principal
      const language = header.startsWith('ja') ? 'ja' : 'en'
      if (request.method === 'POST') asked.set(principal.id, language)
      // A socket has the language of the browser; what the page asked for counts more.
      latest = asked.get(principal.id) ?? language
      return principal
    },
  }
}
