import type * as OAuthLibrary from 'openid-client'
import * as z from 'zod'

import type { OAuthProvider } from './sign-in-options.ts'
import { isLoopback } from './sign-in-options.ts'

/** The tokens of a person at a provider. They never leave the server. */
export const Tokens = z.object({
  accessToken: z.string(),
  refreshToken: z.string().optional(),
  /** When the access token expires, in ms since 1970. Undefined if the provider does not say. */
  expiresAt: z.number().optional(),
  /** Who signed in, as the provider names them. */
  account: z.string().optional(),
})
export type Tokens = z.infer<typeof Tokens>

/** What the server has to remember while the person is at the provider. */
export const PendingAuthorization = z.object({
  state: z.string(),
  verifier: z.string(),
  nonce: z.string().optional(),
})
export type PendingAuthorization = z.infer<typeof PendingAuthorization>

export interface AuthorizationRequest {
  readonly redirectUri: string
  readonly scopes: readonly string[]
  /** Asks the provider to let the person choose an account. */
  readonly prompt?: 'login' | 'select_account' | undefined
}

/** How long the provider may take to respond, in seconds. */
const TIMEOUT_SECONDS = 20

/** The authorization code flow with PKCE at one provider, with the package `openid-client`. */
export class OAuthClient {
  readonly #provider: OAuthProvider
  #opened: Promise<OAuthLibrary.Configuration> | undefined

  constructor(provider: OAuthProvider) {
    this.#provider = provider
  }

  /** Returns the URL that the person opens. */
  async begin(
    request: AuthorizationRequest,
  ): Promise<{ readonly url: string; readonly pending: PendingAuthorization }> {
    const oauth = await loadLibrary()
    const config = await this.#open()
    const { type, parameters = {} } = this.#provider
    const verifier = oauth.randomPKCECodeVerifier()
    const state = oauth.randomState()
    const nonce = type === 'openIdConnect' ? oauth.randomNonce() : undefined
    const url = oauth.buildAuthorizationUrl(config, {
      ...parameters,
      ...(request.prompt !== undefined && { prompt: request.prompt }),
      redirect_uri: request.redirectUri,
      scope: request.scopes.join(' '),
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      ...(nonce !== undefined && { nonce }),
    })
    return { url: url.href, pending: { state, verifier, ...(nonce !== undefined && { nonce }) } }
  }

  /**
   * Exchanges the code that the provider sent to `callback`. Checks `state`, `iss` and the ID token. Throws if one of them is wrong, if
   * the person declined, or if the provider refuses the code.
   */
  async finish(callback: URL, { state, verifier, nonce }: PendingAuthorization): Promise<Tokens> {
    const oauth = await loadLibrary()
    const config = await this.#open()
    const response = await oauth.authorizationCodeGrant(config, callback, {
      expectedState: state,
      pkceCodeVerifier: verifier,
      ...(nonce !== undefined && { expectedNonce: nonce, idTokenExpected: true }),
    })
    return toTokens(response, readAccount(response.claims()))
  }

  /** Returns new tokens. Throws if the provider refuses, see {@link isRefusedGrant}. */
  async refresh({ refreshToken = '', account }: Tokens): Promise<Tokens> {
    const oauth = await loadLibrary()
    const response = await oauth.refreshTokenGrant(await this.#open(), refreshToken)
    // A provider that sends no new refresh token keeps the old one.
    return { refreshToken, ...toTokens(response, account) }
  }

  /** Revokes the tokens at the provider. Returns false if it has no revocation endpoint. */
  async revoke({ accessToken, refreshToken }: Tokens): Promise<boolean> {
    const oauth = await loadLibrary()
    const config = await this.#open()
    if (config.serverMetadata().revocation_endpoint === undefined) return false
    // RFC 7009: revoking a refresh token also revokes its access tokens, where the provider can.
    if (refreshToken !== undefined)
      await oauth.tokenRevocation(config, refreshToken, { token_type_hint: 'refresh_token' })
    await oauth.tokenRevocation(config, accessToken, { token_type_hint: 'access_token' })
    return true
  }

  /** Opens the provider on first use. If that fails, the next sign-in tries again. */
  #open(): Promise<OAuthLibrary.Configuration> {
    this.#opened ??= this.#discover().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  async #discover(): Promise<OAuthLibrary.Configuration> {
    const oauth = await loadLibrary()
    const { issuer = '', authorizationUrl, tokenUrl, revocationUrl } = this.#provider
    const { clientId, type } = this.#provider
    const client = authenticateClient(oauth, this.#provider)
    // oxlint-disable-next-line typescript/no-deprecated -- The library marks it so that it stands out.
    const allowHttp: (config: OAuthLibrary.Configuration) => void = oauth.allowInsecureRequests
    const isLocal = isLoopback(new URL(tokenUrl ?? issuer))
    if (authorizationUrl !== undefined && tokenUrl !== undefined) {
      const server = {
        issuer,
        authorization_endpoint: authorizationUrl,
        token_endpoint: tokenUrl,
        ...(revocationUrl !== undefined && { revocation_endpoint: revocationUrl }),
      }
      const config = new oauth.Configuration(server, clientId, undefined, client)
      config.timeout = TIMEOUT_SECONDS
      if (isLocal) allowHttp(config)
      return config
    }
    const config = await oauth.discovery(new URL(issuer), clientId, undefined, client, {
      timeout: TIMEOUT_SECONDS,
      algorithm: type === 'openIdConnect' ? 'oidc' : 'oauth2',
      ...(isLocal && { execute: [allowHttp] }),
    })
    const { code_challenge_methods_supported: methods } = config.serverMetadata()
    if (methods && !methods.includes('S256'))
      throw new Error(`The provider ${issuer} does not support PKCE with S256.`)
    return config
  }
}

function authenticateClient(
  oauth: typeof OAuthLibrary,
  { clientSecret, clientAuthentication }: OAuthProvider,
): OAuthLibrary.ClientAuth {
  if (clientSecret === undefined) return oauth.None()
  return clientAuthentication === 'client_secret_post'
    ? oauth.ClientSecretPost(clientSecret)
    : oauth.ClientSecretBasic(clientSecret)
}

/** Whether the provider refused a refresh token, so that the person has to sign in again. */
export async function isRefusedGrant(error: unknown): Promise<boolean> {
  const { ResponseBodyError } = await loadLibrary()
  return error instanceof ResponseBodyError && error.status >= 400 && error.status < 500
}

/** Whether the person declined at the provider. */
export async function isDeclined(error: unknown): Promise<boolean> {
  const { AuthorizationResponseError } = await loadLibrary()
  return error instanceof AuthorizationResponseError && error.error === 'access_denied'
}

interface TokenResponse {
  readonly access_token: string
  readonly refresh_token?: string | undefined
  readonly expires_in?: number | undefined
}

function toTokens(response: TokenResponse, account: string | undefined): Tokens {
  const { access_token: accessToken, refresh_token: refreshToken, expires_in: lifetime } = response
  return {
    accessToken,
    ...(refreshToken !== undefined && { refreshToken }),
    ...(lifetime !== undefined && { expiresAt: Date.now() + lifetime * 1_000 }),
    ...(account !== undefined && { account }),
  }
}

function readAccount(claims: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const names = [
    claims?.['email'],
    claims?.['preferred_username'],
    claims?.['name'],
    claims?.['sub'],
  ]
  return names.find((name): name is string => typeof name === 'string' && name !== '')
}

/** An optional peer: only applications with OAuth providers need it. */
async function loadLibrary(): Promise<typeof OAuthLibrary> {
  try {
    return await import('openid-client')
  } catch (cause) {
    throw new Error(
      'Sign-ins with OAuth need the package openid-client: npm install openid-client',
      {
        cause,
      },
    )
  }
}
