import type { Authenticate } from 'adk-stream-protocol/server'

import { createTtlCache } from '../agent/weather/ttl-cache.ts'
import type { Language } from '../demo-info.ts'

/** The language of each person. */
export interface Languages {
  /** Of a person who has sent no language, such as one with a link, it is that of `other`. Default: English. */
  of(principalId: string, other?: string): Language
  /** The language of the last authenticated request. */
  latest(): Language
  /** Returns an `authenticate` that also records the requested language. */
  recording(authenticate: Authenticate): Authenticate
}

export function createLanguages(): Languages {
  const languages = createTtlCache<Language>({
    ttlMs: 24 * 3_600_000,
    capacity: 1000,
    now: () => performance.now(),
  })
  let latest: Language = 'en'
  return {
    of: (principalId, other = '') => languages.get(principalId) ?? languages.get(other) ?? 'en',
    latest: () => latest,
    recording: (authenticate) => async (request) => {
      const principal = await authenticate(request)
      const header = request.headers.get('accept-language')
      if (!principal || header === null) return principal
      const language = header.startsWith('ja') ? 'ja' : 'en'
      const known = languages.get(principal.id)
      if (known === undefined || isChosen(request.method, header))
        languages.set(principal.id, language)
      latest = languages.get(principal.id) ?? language
      return principal
    },
  }
}

/** Sockets and images send the browser's languages, with regions and weights. The language that was chosen in the page takes precedence. */
function isChosen(method: string, header: string): boolean {
  return method === 'POST' || header === 'en' || header === 'ja'
}
