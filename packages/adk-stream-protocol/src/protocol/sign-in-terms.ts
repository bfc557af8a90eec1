import { isArrayOf, isObjectOf, isOneOf, isString, optional } from './guards.ts'

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

export const isSignInTerms = isObjectOf<SignInTerms>({
  provider: isString,
  label: isString,
  type: isOneOf('oauth2', 'openIdConnect', 'apiKey'),
  scopes: isArrayOf(isString),
  help: optional(isString),
})
