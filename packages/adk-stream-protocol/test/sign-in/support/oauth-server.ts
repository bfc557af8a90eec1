import { once } from 'node:events'
import { createServer } from 'node:http'

import { Provider } from 'oidc-provider'
import type { Configuration } from 'oidc-provider'

import { listen } from '../../../../../test/support/listen.ts'
import type { OAuthProvider } from '../../../src/modules/sign-in/sign-in-options.ts'

export interface OAuthServerOptions {
  /** The redirect URIs of the client. */
  readonly redirectUris: readonly string[]
  /** How long access tokens are valid, in seconds. Default: an hour. */
  readonly accessTokenSeconds?: number
  /** Whether refresh tokens are issued. Default true. */
  readonly refreshTokens?: boolean
  readonly more?: Partial<Configuration>
}

/** A real authorization server on a real port. */
export interface OAuthServer extends AsyncDisposable {
  readonly issuer: string
  /** The client, as the bridge configures it. */
  readonly provider: OAuthProvider
  /** The account that signs in next. */
  account: string
  /** Whether the person declines. */
  declines: boolean
  /** The authorization requests that it received. */
  readonly requests: URLSearchParams[]
  /** How often it was asked for tokens, by the type of the grant. */
  readonly grants: string[]
  /** Every token, code and refresh token that it issued. */
  readonly issued: string[]
  /** Refuses all refreshes while true. */
  isRefusing: boolean
  /** Returns the account that an access token gives access to, by the real endpoint of the server. */
  whoIs(token: string | undefined): Promise<string | undefined>
}

const CLIENT = { client_id: 'agent', client_secret: 'a secret of the client' } as const

export async function startOAuthServer(options: OAuthServerOptions): Promise<OAuthServer> {
  const server = createServer()
  const issuer = `http://127.0.0.1:${await listen(server)}`
  const provider = quietly(() => new Provider(issuer, toConfiguration(options)))
  const handle = provider.callback()
  const [requests, grants, issued]: [URLSearchParams[], string[], string[]] = [[], [], []]
  provider.on('access_token.saved', ({ jti }) => issued.push(jti))
  provider.on('refresh_token.saved', ({ jti }) => issued.push(jti))
  provider.on('authorization_code.saved', ({ jti }) => issued.push(jti))
  const state = { account: 'hanako', declines: false, isRefusing: false }
  provider.on('grant.success', ({ oidc }) => grants.push(String(oidc.params?.['grant_type'])))
  provider.on('grant.error', ({ oidc }) =>
    grants.push(`${String(oidc.params?.['grant_type'])} refused`),
  )
  server.on('request', (request, response) => {
    const url = new URL(request.url ?? '/', issuer)
    if (url.pathname === '/auth') requests.push(url.searchParams)
    if (url.pathname === '/token' && state.isRefusing) {
      response.writeHead(400, { 'content-type': 'application/json' })
      response.end('{"error":"invalid_grant"}')
    } else if (url.pathname.startsWith('/interaction/')) {
      const result = state.declines
        ? { error: 'access_denied' }
        : { login: { accountId: state.account }, consent: {} }
      void provider.interactionFinished(request, response, result)
    } else void handle(request, response)
  })
  return Object.assign(state, {
    issuer,
    requests,
    grants,
    issued,
    provider: {
      type: 'openIdConnect',
      label: 'Example',
      issuer,
      clientId: CLIENT.client_id,
      clientSecret: CLIENT.client_secret,
      scopes: ['openid', 'email', 'offline_access'],
      parameters: { prompt: 'consent' },
    } as const,
    whoIs: async (token: string | undefined) => {
      const headers = { authorization: `Bearer ${token}` }
      const response = await fetch(`${issuer}/me`, { headers })
      return response.ok ? ((await response.json()) as { sub: string }).sub : undefined
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  })
}

function toConfiguration(options: OAuthServerOptions): Configuration {
  const { redirectUris, accessTokenSeconds = 3_600, refreshTokens = true, more } = options
  return {
    clients: [
      {
        ...CLIENT,
        redirect_uris: [...redirectUris],
        grant_types: ['authorization_code', 'refresh_token'],
      },
    ],
    features: {
      devInteractions: { enabled: false },
      revocation: { enabled: true, allowedPolicy: () => true },
    },
    claims: { openid: ['sub'], email: ['email'] },
    scopes: ['openid', 'email', 'offline_access'],
    conformIdTokenClaims: false,
    cookies: { keys: ['a key of the test'] },
    ttl: {
      AccessToken: accessTokenSeconds,
      RefreshToken: 86_400,
      Grant: 86_400,
      Session: 86_400,
      Interaction: 600,
      IdToken: 600,
    },
    issueRefreshToken: async () => refreshTokens,
    rotateRefreshToken: true,
    findAccount: async (_context, sub) => ({
      accountId: sub,
      claims: async () => ({ sub, email: `${sub}@example.com` }),
    }),
    // The person consents to everything.
    loadExistingGrant: async ({ oidc }) => {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client?.clientId ?? '',
        accountId: oidc.session?.accountId ?? '',
      })
      grant.addOIDCScope('openid email offline_access')
      await grant.save()
      return grant
    },
    ...more,
  }
}

/** The provider prints that it is not configured for production. */
function quietly<Result>(create: () => Result): Result {
  const { info, warn } = console
  Object.assign(console, { info: () => undefined, warn: () => undefined })
  try {
    return create()
  } finally {
    Object.assign(console, { info, warn })
  }
}
