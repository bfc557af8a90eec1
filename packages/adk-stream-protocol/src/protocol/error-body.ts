import { isNumber, isObjectOf, isString, optional } from './guards.ts'

/** An error of the bridge. PROTOCOL.md lists the codes. */
export interface ErrorBody {
  readonly error: {
    readonly code: string
    readonly message: string
    readonly retryAfterSeconds?: number | undefined
  }
}

export const isErrorBody = isObjectOf<ErrorBody>({
  error: isObjectOf<ErrorBody['error']>({
    code: isString,
    message: isString,
    retryAfterSeconds: optional(isNumber),
  }),
})
