/**
 * Every error that leaves the server, with its HTTP status and the sentence a stranger may read (ER1). Codes of the `model-`
 * family travel inside a stream that has already begun; their status is what a request would have got.
 */
const ERRORS = {
  'malformed-json': [400, 'The body is not valid JSON. Send UTF-8 JSON.'],
  'bad-request': [400, 'The request does not have the expected shape.'],
  unauthenticated: [401, 'Sign in, or send valid credentials, and try again.'],
  'forbidden-origin': [403, 'Requests from this origin are not allowed.'],
  'forbidden-host': [403, 'This server does not answer to this host name.'],
  'not-found': [404, 'There is nothing at this address.'],
  'method-not-allowed': [405, 'This address does not answer to this method.'],
  'turn-running': [409, 'An answer is still being written in this chat. Wait for it, or stop it.'],
  'turn-lost': [
    409,
    'Another server has taken over this conversation. Reload to see what happened.',
  ],
  'nothing-new': [409, 'The request holds nothing new to answer. Send a message of the user last.'],
  'not-rewindable': [409, 'This chat cannot be taken back to an earlier message.'],
  'already-acted': [
    409,
    'A call that a person approved has run since that message, or is about to. Write a new message instead.',
  ],
  'unknown-chat': [404, 'There is no such chat.'],
  'unknown-approval': [404, 'There is no such approval request.'],
  'not-allowed': [403, 'This approval is for somebody else to decide.'],
  'approval-decided': [409, 'This approval has been decided already.'],
  'approval-voted': [409, 'You have approved this already. It waits for others.'],
  'not-voted': [409, 'You have not approved this, so there is nothing to take back.'],
  'approval-expired': [410, 'The time for this decision is over. The call did not run.'],
  'approval-cancelled': [410, 'This approval was cancelled. The call did not run.'],
  'not-editable': [
    409,
    'The arguments cannot be changed like this, because others have to decide that too. Approve the call as shown, or deny it and ask for another one.',
  ],
  'no-payload': [409, 'This call asked for no payload. Decide it without one.'],
  'not-client-output': [
    409,
    'A page cannot give the result of this call: the application on the server completes it.',
  ],
  'unknown-artifact': [404, 'There is no such artifact in this chat.'],
  'unknown-call': [404, 'There is no such call that you may complete.'],
  'call-completed': [409, 'This call was completed before. Its result stays as it is.'],
  'not-completable': [
    409,
    'This call cannot be completed from outside: its result does not come from the application.',
  ],
  'not-live': [409, 'This needs a live session, and this server answers turn by turn.'],
  'too-slow': [408, 'The answer was not read in time. Resume to read it.'],
  'too-large': [413, 'The request is too large. Send less.'],
  'unsupported-media-type': [415, 'Send the body as application/json.'],
  'upgrade-required': [426, 'Open a WebSocket at this address.'],
  'too-fast': [429, 'Too much was sent at once. Send less per second.'],
  'too-many-sockets': [429, 'Too many connections are open at once. Close some.'],
  'too-many-live-chats': [
    429,
    'Too many live conversations are open at once. Close the pages of some, and try again in a minute.',
  ],
  'too-many-turns': [429, 'Too many answers are being written at once. Try again in a moment.'],
  'too-many-watchers': [429, 'Too many pages watch your chats at once. Close some.'],
  overloaded: [503, 'The server has as much to do as it can. Try again in a moment.'],
  internal: [500, 'Something went wrong on the server. Try again.'],
  unavailable: [503, 'The server is not ready to answer. Try again in a moment.'],
  'model-rate-limited': [429, 'The model is receiving too many requests. Try again later.'],
  'model-unavailable': [503, 'The model cannot be reached right now. Try again in a moment.'],
  'model-refused': [502, 'The model refused the request.'],
  'model-blocked': [422, 'The model declined to answer this.'],
  'model-interrupted': [502, 'The connection to the model broke in mid-answer. Try again.'],
  'unknown-tool': [502, 'The model asked for a tool that does not exist. Try again.'],
} as const satisfies Record<string, readonly [status: number, message: string]>

/** An error code. PROTOCOL.md lists them. */
export type ErrorCode = keyof typeof ERRORS

// The keys are those of `ERRORS`.
export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[]

export interface ProtocolErrorOptions {
  /** A sentence for the client in place of the code's own. It must hold nothing secret. */
  readonly message?: string
  readonly retryAfterSeconds?: number
  /** What really happened; never leaves the server. */
  readonly cause?: unknown
}

/** An error that may be told to a client: a code and a neutral sentence. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  readonly code: ErrorCode
  readonly status: number
  readonly retryAfterSeconds: number | undefined

  constructor(code: ErrorCode, options: ProtocolErrorOptions = {}) {
    super(options.message ?? ERRORS[code][1], { cause: options.cause })
    this.code = code
    this.status = ERRORS[code][0]
    this.retryAfterSeconds = options.retryAfterSeconds
  }

  /** The body that the client gets. */
  toJSON(): { error: { code: ErrorCode; message: string; retryAfterSeconds?: number } } {
    const { code, message, retryAfterSeconds } = this
    return {
      error: { code, message, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) },
    }
  }
}

/** What a client may know of any thrown thing: a {@link ProtocolError} as it is, all else as `internal`. */
export function toProtocolError(thrown: unknown): ProtocolError {
  return thrown instanceof ProtocolError ? thrown : new ProtocolError('internal', { cause: thrown })
}
