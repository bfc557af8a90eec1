import { isArrayOf, isObjectOf, isOneOf, isRecord, isString, optional } from './guards.ts'
import type { SignInTerms } from './sign-in-terms.ts'

/** What a person is asked for that is not an approval. */
export const QUESTION_KINDS = ['input', 'sign-in', 'elicitation'] as const
export type QuestionKind = (typeof QUESTION_KINDS)[number]

/** What a question asks for. An approval has none of these fields. */
export interface QuestionTerms {
  /** What the person is asked for. Absent for an approval. */
  readonly kind?: QuestionKind
  /** The JSON Schema of the answer, if a question has one. */
  readonly schema?: Readonly<Record<string, unknown>>
  /** The sign-in that the person is asked for. */
  readonly signIn?: SignInTerms
}

export const isSignInTerms = isObjectOf<SignInTerms>({
  provider: isString,
  label: isString,
  type: isOneOf('oauth2', 'openIdConnect', 'apiKey'),
  scopes: isArrayOf(isString),
  help: optional(isString),
})

/** A guard for each field of a question. */
export const QUESTION_GUARDS = {
  kind: optional(isOneOf(...QUESTION_KINDS)),
  schema: optional(isRecord),
  signIn: optional(isSignInTerms),
}

/** Returns the fields of a question, without others. */
export function pickQuestion({ kind, schema, signIn }: QuestionTerms): QuestionTerms {
  return { ...(kind && { kind }), ...(schema && { schema }), ...(signIn && { signIn }) }
}
