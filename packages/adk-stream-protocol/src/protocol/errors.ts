import type { ErrorCode } from './error-codes.ts'
import type { ShownPreview } from './preview.ts'

export type { ErrorCode } from './error-codes.ts'

/**
 * Every error that the server reports to a client, with its HTTP status and a neutral message (ER1). Errors with the prefix
 * `model-` occur in a stream that has already started; their status is the one that a request would have.
 */
const ERRORS: Readonly<Record<ErrorCode, readonly [status: number, message: string]>> = {
  'malformed-json': [400, 'The body is not valid JSON. Send UTF-8 JSON.'],
  'bad-request': [400, 'The request does not have the expected shape.'],
  unauthenticated: [401, 'Sign in, or send valid credentials, and try again.'],
  'forbidden-origin': [403, 'Requests from this origin are not allowed.'],
  'forbidden-host': [403, 'This host name is not allowed.'],
  'not-found': [404, 'There is no such endpoint.'],
  'method-not-allowed': [405, 'This endpoint does not support this method.'],
  'turn-running': [409, 'A reply is still being written in this chat. Wait for it, or stop it.'],
  'turn-lost': [
    409,
    'Another server has taken over this conversation. Reload to see what happened.',
  ],
  'nothing-new': [409, 'The request contains nothing new. Send a user message last.'],
  'not-rewindable': [409, 'This chat cannot be rewound to an earlier message.'],
  'already-acted': [
    409,
    'An approved call has run since that message, or is about to run. Send a new message instead.',
  ],
  'newer-messages': [
    409,
    'The chat has newer messages than the page showed. They would be lost. Read them, then try again.',
  ],
  'other-agent': [409, 'This chat belongs to another agent. Start a new chat.'],
  'unknown-agent': [
    409,
    'The agent of this chat is not available. You can read the chat. To write, start a new one.',
  ],
  'unknown-chat': [404, 'There is no such chat.'],
  'unknown-approval': [404, 'There is no such approval request.'],
  'other-principal': [
    403,
    'Another person was signed in when this was decided or written. It was not accepted, and nothing was changed.',
  ],
  'not-allowed': [403, 'Another person decides this approval.'],
  'approval-decided': [409, 'This approval has already been decided.'],
  'approval-voted': [409, 'You have already approved this call. Other people must approve it too.'],
  'not-voted': [409, 'You have not approved this call, so there is no vote to withdraw.'],
  'reply-outdated': [
    409,
    'The question that this message answers is no longer open, or another question was asked since. The message was not sent. Look at the chat, and answer again.',
  ],
  'approval-expired': [410, 'The deadline of this approval has passed. The call did not run.'],
  'approval-cancelled': [410, 'This approval was cancelled. The call did not run.'],
  'not-editable': [
    409,
    'The arguments cannot be edited in this way, because other people must approve the edited call too. Approve the call as shown, or deny it and ask for another one.',
  ],
  'no-payload': [409, 'This call was requested without a payload. Decide it without one.'],
  'invalid-answer': [
    422,
    'The answer does not match what was asked. The question is still open: correct the answer and send it again.',
  ],
  'preview-changed': [
    409,
    'What this call would do has changed, or the approval does not name the preview that was shown. Read the current preview and approve again.',
  ],
  'preview-failed': [
    503,
    'It cannot be determined right now what this call would do. Try again in a moment, or deny the call.',
  ],
  'call-blocked': [409, 'This call would fail, so it cannot be approved. Edit it or deny it.'],
  'sign-in-needed': [
    409,
    'This call waits for a sign-in, which an approval cannot replace. Sign in, or decline.',
  ],
  'sign-in-failed': [422, 'The sign-in did not succeed. Try again.'],
  'unknown-sign-in': [404, 'You are not signed in to this service.'],
  'unknown-record': [404, 'This does not exist, or it has ended.'],
  'not-client-output': [
    409,
    'A page cannot send the result of this call. The application on the server completes it.',
  ],
  'unknown-artifact': [404, 'There is no such artifact in this chat.'],
  'unknown-call': [404, 'There is no such call that you may complete.'],
  'call-completed': [409, 'This call is already complete. Its result does not change.'],
  'not-completable': [
    409,
    'This call cannot be completed in this way. Its result does not come from the application.',
  ],
  'not-live': [409, 'This request needs a live session, which this server does not support.'],
  'too-slow': [408, 'The reply was not read in time. Resume to read it.'],
  'too-large': [413, 'The request is too large. Send less.'],
  'unsupported-media-type': [415, 'Send the body as application/json.'],
  'upgrade-required': [426, 'Open a WebSocket at this URL.'],
  'too-fast': [429, 'Too much was sent at once. Send less per second.'],
  'too-many-sockets': [429, 'Too many connections are open. Close some.'],
  'too-many-live-chats': [
    429,
    'Too many live sessions are open. Close some of their pages and try again in a minute.',
  ],
  'too-many-turns': [429, 'Too many replies are being written. Try again in a moment.'],
  'too-many-watchers': [429, 'Too many pages are watching your chats. Close some.'],
  overloaded: [503, 'The server is overloaded. Try again in a moment.'],
  internal: [500, 'Something went wrong on the server. Try again.'],
  unavailable: [503, 'The server is not available. Try again in a moment.'],
  'store-failed': [503, 'The server cannot use its database until an operator repairs it.'],
  'model-rate-limited': [429, 'The model is receiving too many requests. Try again later.'],
  'model-unavailable': [503, 'The model cannot be reached right now. Try again in a moment.'],
  'model-overloaded': [503, 'The model is overloaded. Try again in a moment.'],
  'model-access-denied': [
    502,
    'The server has no access to the model. Its operator must check the API key and the name of the model.',
  ],
  'model-refused': [502, 'The model refused the request. Change the message, or start a new chat.'],
  'model-blocked': [422, 'The model declined to answer this.'],
  'model-mistake': [
    502,
    'The model made a mistake and gave no usable reply. Try again, or say it differently.',
  ],
  'model-interrupted': [502, 'The connection to the model was lost during the reply. Try again.'],
  'model-call-limit': [
    422,
    'The agent reached the limit of model calls for one message and stopped before it was done. Ask for less at a time, or say how to continue.',
  ],
  'unknown-tool': [502, 'The model called a tool that does not exist. Try again.'],
}

export interface ProtocolErrorOptions {
  /** A message for the client instead of the default one of the code. It must not contain anything secret. */
  readonly message?: string
  readonly retryAfterSeconds?: number
  /** The current preview of a call whose approval is rejected. */
  readonly preview?: ShownPreview | undefined
  /** The original error. It never leaves the server. */
  readonly cause?: unknown
}

/**
 * An error that the server may report to a client: a code and a neutral message. Throw it in `authenticate` or `chooseAgent` to reject a
 * request.
 */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  readonly code: ErrorCode
  readonly status: number
  readonly retryAfterSeconds: number | undefined
  readonly preview: ShownPreview | undefined

  constructor(code: ErrorCode, options: ProtocolErrorOptions = {}) {
    super(options.message ?? ERRORS[code][1], { cause: options.cause })
    this.code = code
    this.status = ERRORS[code][0]
    this.retryAfterSeconds = options.retryAfterSeconds
    this.preview = options.preview
  }

  /** The body of the response. */
  toJSON(): {
    error: {
      code: ErrorCode
      message: string
      retryAfterSeconds?: number
      preview?: ShownPreview
    }
  } {
    const { code, message, retryAfterSeconds, preview } = this
    return {
      error: {
        code,
        message,
        ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
        ...(preview && { preview }),
      },
    }
  }
}

/** Returns a {@link ProtocolError} unchanged, and `internal` for anything else that was thrown. */
export function toProtocolError(thrown: unknown): ProtocolError {
  return thrown instanceof ProtocolError ? thrown : new ProtocolError('internal', { cause: thrown })
}
