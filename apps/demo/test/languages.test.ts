import { expect, test } from 'vitest'

import { createLanguages } from '../src/server/languages.ts'

const BROWSER = 'ja-JP,ja;q=0.9,en;q=0.8'

test.each([
  ['a browser that only opened the page', [['GET', BROWSER]], 'ja'],
  [
    'a person who chose another language, with a socket',
    [
      ['GET', BROWSER],
      ['GET', 'en'],
      ['GET', BROWSER],
    ],
    'en',
  ],
  [
    'another client that sends a request',
    [
      ['GET', 'en'],
      ['POST', BROWSER],
    ],
    'ja',
  ],
  ['an unknown person', [], 'en'],
] as const)(
  '[DM34] the language of a person is read from their requests: %s',
  async (_case, requests, language) => {
    const languages = createLanguages()
    const authenticate = languages.recording(() => ({ id: 'hanako' }))
    for (const [method, header] of requests) {
      const headers = new Headers({ 'accept-language': header })
      await authenticate({ method, url: new URL('http://127.0.0.1/'), headers })
    }
    expect(languages.of('hanako')).toBe(language)
  },
)
