import * as z from 'zod'

import { Method } from '../../server/settings/option-schemas.ts'

/** The option of `createBridge` for sign-ins. */
export interface SignInBridgeOptions {
  /**
   * The services that people can sign in to for tools that call `toolContext.requestCredential()`. Default: none, and such a call ends
   * with an error.
   */
  readonly signIn?: SignInOptions
}

/** Options for tools that need a person to sign in to another service: `toolContext.requestCredential()`. */
export interface SignInOptions {
  /**
   * The public URL of the bridge, including `basePath`, such as `https://chat.example.com/api/agent`. Register
   * `<baseUrl>/sign-in/<provider>/callback` at each OAuth provider as the redirect URI.
   */
  readonly baseUrl: string
  /** The services that people can sign in to. The name is the `credentialKey` of the tool's auth config. */
  readonly providers: Readonly<Record<string, SignInProvider>>
  /**
   * The key that encrypts credentials in the store: 32 bytes, or their base64 text. With a key from outside the database, a copy of
   * the database contains no usable token. Default: a secret of the store.
   */
  readonly encryptionKey?: string | Uint8Array
  /** How long a person may take at the provider, in ms. Default: 10 minutes. */
  readonly attemptMs?: number
  /** Credentials that were not used for this long are removed, in ms. Default: 90 days. */
  readonly unusedMs?: number
}

/** A service that people can sign in to: with OAuth 2.0, OpenID Connect, or an API key. */
export type SignInProvider = OAuthProvider | ApiKeyProvider

interface ProviderTexts {
  /** What people read, such as `GitHub`. Default: the name in `providers`. */
  readonly label?: string
}

/** A service with an API key that the person enters. */
interface ApiKeyProvider extends ProviderTexts {
  readonly type: 'apiKey'
  /** Where the person finds the key. */
  readonly help?: string
  /** Returns whether the service accepts the key. Default: every key is accepted. */
  readonly check?: (apiKey: string) => boolean | Promise<boolean>
}

/** An authorization server. The bridge uses the authorization code flow with PKCE (S256). */
export interface OAuthProvider extends ProviderTexts {
  readonly type: 'oauth2' | 'openIdConnect'
  /** The issuer, such as `https://accounts.google.com`. Without `authorizationUrl`, the endpoints are discovered from it. */
  readonly issuer?: string
  /** The endpoints, for servers without discovery. Need each other and `issuer`. */
  readonly authorizationUrl?: string
  readonly tokenUrl?: string
  readonly revocationUrl?: string
  readonly clientId: string
  /** Default: none, for a public client. */
  readonly clientSecret?: string
  /** How the client authenticates. Default `client_secret_basic`. */
  readonly clientAuthentication?: 'client_secret_basic' | 'client_secret_post'
  /** All scopes that tools may ask for. A tool that names none asks for all of them. */
  readonly scopes: readonly string[]
  /** More parameters of the authorization request, such as `{ access_type: 'offline' }`. */
  readonly parameters?: Readonly<Record<string, string>>
}

const Label = z.string({ error: 'a text' }).min(1, { error: 'a text' }).max(100).optional()

const HttpsUrl = z
  .string({ error: 'a URL' })
  .refine(isSecureUrl, { error: 'an https URL (http is allowed for localhost only)' })

const Name = z.string({ error: 'a string that is not empty' }).min(1, {
  error: 'a string that is not empty',
})

/** The parameters of the request that the bridge sets itself. */
const RESERVED = [
  'client_id',
  'code_challenge',
  'code_challenge_method',
  'nonce',
  'redirect_uri',
  'response_mode',
  'response_type',
  'scope',
  'state',
]

const OAuth = z
  .strictObject({
    type: z.enum(['oauth2', 'openIdConnect']),
    label: Label,
    issuer: HttpsUrl.optional(),
    authorizationUrl: HttpsUrl.optional(),
    tokenUrl: HttpsUrl.optional(),
    revocationUrl: HttpsUrl.optional(),
    clientId: Name,
    clientSecret: Name.optional(),
    clientAuthentication: z
      .enum(['client_secret_basic', 'client_secret_post'], {
        error: "'client_secret_basic' or 'client_secret_post'",
      })
      .optional(),
    scopes: z.array(z.string().regex(/^[\x21\x23-\x5B\x5D-\x7E]+$/, { error: 'a scope' }), {
      error: 'a list of scopes',
    }),
    parameters: z
      .record(
        z.string().refine((name) => !RESERVED.includes(name), {
          error: `parameters that the bridge does not set itself (it sets ${RESERVED.join(', ')})`,
        }),
        z.string(),
      )
      .optional(),
  } satisfies Record<keyof OAuthProvider, z.ZodType>)
  .refine(
    ({ issuer, authorizationUrl, tokenUrl }) =>
      issuer !== undefined && (authorizationUrl === undefined) === (tokenUrl === undefined),
    {
      error: 'a provider with `issuer`, and with both `authorizationUrl` and `tokenUrl` or neither',
    },
  )

const ApiKey = z.strictObject({
  type: z.literal('apiKey'),
  label: Label,
  help: z.string({ error: 'a text' }).max(500).optional(),
  check: Method.optional(),
} satisfies Record<keyof ApiKeyProvider, z.ZodType>)

const Options = z.strictObject({
  baseUrl: HttpsUrl.refine((url) => /^[^?#]*[^/?#]$/.test(url), {
    error: 'a URL without a slash at its end, without query and fragment',
  }),
  providers: z.record(
    z.string().regex(/^[a-z][\w-]{0,63}$/i, {
      error: 'names of letters, digits, `_` and `-` that start with a letter',
    }),
    z.discriminatedUnion('type', [OAuth, ApiKey], {
      error: "providers with the type 'oauth2', 'openIdConnect' or 'apiKey'",
    }),
    { error: 'an object with a provider for each name' },
  ),
  encryptionKey: z
    .custom((value) => toKey(value)?.length === KEY_BYTES, {
      error: '32 bytes, or their base64 text',
    })
    .optional(),
  attemptMs: z.number({ error: 'a number of milliseconds' }).positive().optional(),
  unusedMs: z.number({ error: 'a number of milliseconds' }).positive().optional(),
} satisfies Record<keyof SignInOptions, z.ZodType>)

export const SignInBridgeOptionsSchema = { signIn: Options.optional() }

const KEY_BYTES = 32

/** Returns the bytes of an encryption key. */
export function toKey(value: unknown): Buffer | undefined {
  if (value instanceof Uint8Array) return Buffer.from(value)
  return typeof value === 'string' ? Buffer.from(value, 'base64') : undefined
}

function isSecureUrl(value: string): boolean {
  if (!URL.canParse(value)) return false
  const url = new URL(value)
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url))
}

/** Whether a URL is on this machine, where http is safe. */
export function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]'
}
