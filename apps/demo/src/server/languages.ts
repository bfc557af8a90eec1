import type { Authenticate } from 'adk-stream-protocol/server'

import { createTtlCache } from '../agent/weather/ttl-cache.ts'

export type Language = 'en' | 'ja'

/** In which language people are to be addressed. */
export interface Languages {
  of(principalId: string): Language
  /** Of whoever was noted last. */
  latest(): Language
  /** Authenticates, and notes the language that the page asks for. */
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
      const known = asked.get(principal.id)
      if (known === undefined || isChosen(request.method, header)) asked.set(principal.id, language)
      latest = asked.get(principal.id) ?? language
      return principal
    },
  }
}

/** A socket and a picture have the language of the browser, with regions and weights; what the reader chose in the page counts more. */
function isChosen(method: string, header: string): boolean {
  return method === 'POST' || header === 'en' || header === 'ja'
}
