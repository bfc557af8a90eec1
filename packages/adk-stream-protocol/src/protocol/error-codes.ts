import { isNumber, isObjectOf, isString, optional } from './guards.ts'
import type { ShownPreview } from './preview.ts'
import { isShownPreview } from './preview.ts'

/** The codes of all errors. Apart from their messages, which a page does not need: they are 3 KB. */
export const ERROR_CODES = [
  'malformed-json',
  'bad-request',
  'unauthenticated',
  'forbidden-origin',
  'forbidden-host',
  'not-found',
  'method-not-allowed',
  'turn-running',
  'turn-lost',
  'nothing-new',
  'not-rewindable',
  'already-acted',
  'newer-messages',
  'other-agent',
  'unknown-agent',
  'unknown-chat',
  'unknown-approval',
  'not-allowed',
  'other-principal',
  'approval-decided',
  'approval-voted',
  'not-voted',
  'reply-outdated',
  'approval-expired',
  'approval-cancelled',
  'not-editable',
  'no-payload',
  'invalid-answer',
  'preview-changed',
  'preview-failed',
  'call-blocked',
  'sign-in-needed',
  'sign-in-failed',
  'unknown-sign-in',
  'unknown-record',
  'not-client-output',
  'unknown-artifact',
  'unknown-call',
  'call-completed',
  'not-completable',
  'not-live',
  'too-slow',
  'too-large',
  'unsupported-media-type',
  'upgrade-required',
  'too-fast',
  'too-many-sockets',
  'too-many-live-chats',
  'too-many-turns',
  'too-many-watchers',
  'overloaded',
  'internal',
  'unavailable',
  'store-failed',
  'model-rate-limited',
  'model-unavailable',
  'model-overloaded',
  'model-access-denied',
  'model-refused',
  'model-blocked',
  'model-mistake',
  'model-interrupted',
  'model-call-limit',
  'unknown-tool',
] as const

/**
 * The header of a response with a tag of its principal. In a request, it names the principal that decided: a decision that waited for the
 * connection may be sent after another person has signed in (SE1120).
 */
export const PRINCIPAL_HEADER = 'adk-principal'

// TypeScript prints the name of a union that a conditional type creates, and all members of one that an index reads.
/** An error code. PROTOCOL.md lists them. */
export type ErrorCode = Extract<(typeof ERROR_CODES)[number], string>

/** An error of the bridge. PROTOCOL.md lists the codes. */
export interface ErrorBody {
  readonly error: {
    readonly code: string
    readonly message: string
    readonly retryAfterSeconds?: number | undefined
    /** The current preview of a call whose approval was rejected. */
    readonly preview?: ShownPreview | undefined
  }
}

export const isServerError = isObjectOf<ErrorBody['error']>({
  code: isString,
  message: isString,
  retryAfterSeconds: optional(isNumber),
  preview: optional(isShownPreview),
})

export const isErrorBody = isObjectOf<ErrorBody>({ error: isServerError })
