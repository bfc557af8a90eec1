import type { Authenticate } from 'adk-stream-protocol/server'

import { createTtlCache } from '../agent/weather/ttl-cache.ts'

export type Language = 'en' | 'ja'

/** In which language people are to be addressed. */
export interface Languages {
  of(principalId: string): Language
  /** Of whoever was noted last. */
  latest(): Language
  /** Authenticates, and notes the language that the page asks for; until it does, that of the browser. */
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
      if (isOfPage(request) || !asked.get(principal.id)) asked.set(principal.id, language)
      latest = asked.get(principal.id) ?? language
      return principal
    },
  }
}

/** Whether a script of the page wrote the request: documents and sockets have the language of the browser. */
function isOfPage({ method, headers }: Parameters<Authenticate>[0]): boolean {
  const isFetched =
    headers.get('sec-fetch-dest') === 'empty' && headers.get('sec-fetch-mode') !== 'websocket'
  return method === 'POST' || isFetched
}
