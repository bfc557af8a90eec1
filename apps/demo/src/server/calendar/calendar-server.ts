import { generateKeyPairSync, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'

import { type Configuration, Provider } from 'oidc-provider'

import type { Language } from '../languages.ts'
import { isAccount, listEvents } from './sample-events.ts'
import { renderSignIn } from './sign-in-page.ts'

interface CalendarServerOptions {
  readonly issuer: string
  readonly client: { readonly id: string; readonly secret: string; readonly redirectUri: string }
}

/** The authorization server and the API of the calendar. */
export interface CalendarServer {
  handle(
    request: IncomingMessage,
    response: ServerResponse,
    options: { readonly path: string; readonly language: Language },
  ): Promise<void>
}

/** Creates the calendar. Its sessions and tokens are in memory and end with the process. */
export function createCalendarServer({ issuer, client }: CalendarServerOptions): CalendarServer {
  const provider = quietly(() => new Provider(issuer, configure(issuer, client)))
  const authorize = provider.callback()
  return {
    async handle(request, response, { path, language }) {
      // The library finds the path under which it is served from both.
      Object.assign(request, { originalUrl: request.url, url: request.url?.slice(path.length) })
      const route = `${request.method} ${request.url?.split('?', 1)[0]}`
      if (route === 'GET /events') return sendEvents(provider, request, response)
      if (route.startsWith('GET /interaction/')) {
        await provider.interactionDetails(request, response)
        response.writeHead(200, {
          'content-type': 'text/html; charset=utf-8',
          'cache-control': 'no-store',
        })
        response.end(renderSignIn(language))
      } else if (route.startsWith('POST /interaction/')) {
        const account = new URLSearchParams(await readBody(request)).get('account')
        const result = isAccount(account)
          ? { login: { accountId: account }, consent: {} }
          : { error: 'access_denied' }
        await provider.interactionFinished(request, response, result)
      } else await authorize(request, response)
    },
  }
}

async function sendEvents(
  provider: Provider,
  { headers }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1]
  const { accountId, isValid } = (await provider.AccessToken.find(token ?? '')) ?? {}
  const isKnown = isValid === true && isAccount(accountId)
  response.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json; charset=utf-8' })
  const language = headers['accept-language'] === 'ja' ? 'ja' : 'en'
  response.end(JSON.stringify(isKnown ? listEvents(accountId, language) : { error: 'sign in' }))
}

function configure(issuer: string, client: CalendarServerOptions['client']): Configuration {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        redirect_uris: [client.redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'demo', alg: 'ES256' }] },
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    features: {
      devInteractions: { enabled: false },
      revocation: { enabled: true, allowedPolicy: () => true },
    },
    scopes: ['openid', 'email', 'calendar.read'],
    claims: { openid: ['sub'], email: ['email'] },
    // The account is in the ID token, which saves a request.
    conformIdTokenClaims: false,
    interactions: { url: (_context, { uid }) => `${new URL(issuer).pathname}/interaction/${uid}` },
    ttl: {
      AccessToken: 3_600,
      RefreshToken: 86_400,
      Grant: 86_400,
      Session: 86_400,
      Interaction: 600,
      IdToken: 600,
    },
    issueRefreshToken: async () => true,
    findAccount: async (_context, sub) => ({
      accountId: sub,
      claims: async () => ({ sub, email: `${sub}@example.com` }),
    }),
    // A person who chooses an account allows everything that the page of the sign-in lists.
    loadExistingGrant: async ({ oidc }) => {
      const grant = new oidc.provider.Grant({
        clientId: client.id,
        accountId: oidc.session?.accountId ?? '',
      })
      grant.addOIDCScope('openid email calendar.read')
      await grant.save()
      return grant
    },
  }
}

/** A form of the sign-in page is small. */
const MAX_FORM_BYTES = 1_000

async function readBody(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const piece of request) {
    body += String(piece)
    if (body.length > MAX_FORM_BYTES) return ''
  }
  return body
}

/** The library prints that Node 20 is old, and that its sessions are in memory. */
function quietly<Result>(create: () => Result): Result {
  const { info, warn } = console
  Object.assign(console, { info: () => undefined, warn: () => undefined })
  try {
    return create()
  } finally {
    Object.assign(console, { info, warn })
  }
}
