import { isArrayOf, isBoolean, isNumber, isObjectOf, isString, optional } from './guards.ts'

/** A sign-in that a call needs. It contains nothing secret. */
export interface SignInTerms {
  /** The name of the provider in `signIn.providers`. */
  readonly provider: string
  /** The name of the provider for people. */
  readonly label: string
  readonly type: 'oauth2' | 'openIdConnect' | 'apiKey'
  readonly scopes: readonly string[]
  /** Where the person finds the API key. */
  readonly help?: string | undefined
}

/** A service that a user is signed in to. */
export interface SignedInService {
  readonly provider: string
  /** The name of the service for people. */
  readonly label: string
  readonly scopes: readonly string[]
  /** In ms since 1970. */
  readonly signedInAt: number
  /** Who signed in, as the service names them. */
  readonly account?: string | undefined
}

export const isSignInList = isObjectOf<{ readonly signIns: SignedInService[] }>({
  signIns: isArrayOf(
    isObjectOf<SignedInService>({
      provider: isString,
      label: isString,
      scopes: isArrayOf(isString),
      signedInAt: isNumber,
      account: optional(isString),
    }),
  ),
})

export const isStartedSignIn = isObjectOf<{ readonly url?: string | undefined }>({
  url: optional(isString),
})

export const isRevocation = isObjectOf<{ readonly revoked: boolean }>({ revoked: isBoolean })
