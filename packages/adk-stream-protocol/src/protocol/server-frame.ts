import type { ErrorCode } from './errors.ts'
import type { Message } from './message.ts'
import type { ShownPreview } from './preview.ts'
import type { ChatPositions } from './sse.ts'

/** The WebSocket subprotocol of JSON frames. It is also used for clients that request no subprotocol. */
export const SUBPROTOCOL = 'adk-stream.v1'

/**
 * The request id of frames that belong to no request. The AI SDK's client ignores frames with an unknown request id,
 * and closes its socket on a frame without one.
 */
const NO_REQUEST = ''

/** The frames that the AI SDK's `WebSocketChatTransport` understands. `chunkFrameHead` creates the `chunk` frames. */
type StreamFrame =
  | { readonly type: 'start' | 'no-active'; readonly requestId: string }
  /** `position` is for clients that ask for positions. */
  | { readonly type: 'end'; readonly requestId: string; readonly position?: ChatPositions }
  | {
      readonly type: 'error'
      readonly requestId: string
      readonly errorText: string
      readonly code: ErrorCode
    }

/** The frames that the AI SDK's client ignores. */
type ExtensionFrame =
  | {
      readonly type: 'hello'
      readonly protocol: string
      readonly limits: AnnouncedLimits
      /** The tag of the principal of the socket. */
      readonly principal: string
    }
  | ({ readonly type: 'decided'; readonly decisionId: string } & Acknowledgement<{
      /** The current state of the approval. */
      readonly state: string
    }>)
  | ({ readonly type: 'tool-output-taken'; readonly outputId: string } & Acknowledgement)
  /** A turn that was not started by a request of this socket. Its chunks follow under this `requestId`. */
  | {
      readonly type: 'turn'
      readonly id: string
      readonly requestId: string
      readonly messageId: string
      /** The id of the turn. */
      readonly turn: string
      readonly userMessage?: Message
    }
  /** The complete message of the user. */
  | { readonly type: 'user-message'; readonly id: string; readonly message: Message }
  | {
      readonly type: 'transcript'
      readonly id: string
      readonly author: 'user' | 'model'
      readonly text: string
      readonly final: boolean
    }
  /** The user interrupted the model. The client drops the audio that it has not played. */
  | { readonly type: 'interrupted'; readonly id: string }
  | { readonly type: 'status'; readonly id: string; readonly status: string }
  | {
      readonly type: 'refused'
      /** The type of the rejected frame. `binary` or `unknown` if it has none. */
      readonly frame: string
      readonly code: ErrorCode
      readonly message: string
      /** The chat and the message of a rejected `text`. */
      readonly id?: string
      readonly messageId?: string
    }
  | { readonly type: 'pong'; readonly nonce?: string }

type Acknowledgement<Taken = unknown> =
  | ({ readonly ok: true } & Taken)
  | {
      readonly ok: false
      readonly code: ErrorCode
      readonly message: string
      /** The current preview of a call whose approval was rejected. */
      readonly preview?: ShownPreview
    }

/** The limits that the server announces in `hello`. */
interface AnnouncedLimits {
  readonly maxFrameBytes: number
  readonly maxFramesPerSecond: number
  readonly maxAudioFrameBytes: number
  readonly maxAudioBytesPerSecond: number
}

/** A frame that the server sends. */
export type ServerFrame = StreamFrame | ExtensionFrame

export function serialiseFrame(frame: ServerFrame): string {
  return JSON.stringify('requestId' in frame ? frame : { ...frame, requestId: NO_REQUEST })
}

/**
 * Returns the constant beginning of a request's chunk frames. A chunk is serialised once for all readers, and each
 * frame wraps that text.
 */
export function chunkFrameHead(requestId: string): string {
  return `{"type":"chunk","requestId":${JSON.stringify(requestId)},"sequence":`
}

/** Returns a chunk frame. A position has no characters that JSON escapes. */
export function chunkFrame(
  head: string,
  sequence: number,
  { json, position }: { readonly json: string; readonly position?: string | undefined },
): string {
  const extra = position === undefined ? '' : `,"position":"${position}"`
  return `${head}${sequence}${extra},"chunk":${json}}`
}

/**
 * The codes with which the server closes a socket, and whether the client should reconnect:
 * - `yes`: immediately or after a short delay
 * - `later`: after a delay that grows with each attempt
 * - `changed`: only after a change, such as new credentials or a smaller frame
 * - `no`: never
 *
 * PROTOCOL.md contains the same table.
 */
export const CLOSE_CODES = {
  normal: { code: 1000, retry: 'no' },
  'going-away': { code: 1001, retry: 'later' },
  'protocol-error': { code: 1002, retry: 'no' },
  'invalid-text': { code: 1007, retry: 'no' },
  policy: { code: 1008, retry: 'no' },
  'too-big': { code: 1009, retry: 'changed' },
  internal: { code: 1011, retry: 'later' },
  unauthenticated: { code: 4401, retry: 'changed' },
  'dead-peer': { code: 4408, retry: 'yes' },
  'too-slow': { code: 4409, retry: 'yes' },
  'too-fast': { code: 4429, retry: 'later' },
} as const satisfies Record<string, { code: number; retry: Retry }>

/** Whether and when a client may reconnect after its socket was closed. */
export type Retry = 'yes' | 'later' | 'changed' | 'no'

/** The name of a close code. */
export type CloseReason = keyof typeof CLOSE_CODES

/**
 * Returns whether and when a client may reconnect after a close code. Returns `later` for unknown codes, such as 1006
 * (connection lost).
 */
export function mayRetry(code: number): Retry {
  const known = Object.values(CLOSE_CODES).find((entry) => entry.code === code)
  return known?.retry ?? 'later'
}
