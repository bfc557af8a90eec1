import type { ErrorCode } from './errors.ts'
import type { Message } from './message.ts'

/** The subprotocol of JSON frames. A client that asks for none gets these too. */
export const SUBPROTOCOL = 'adk-stream.v1'

/**
 * The request of a frame that nobody asked for. The AI SDK's client drops frames of requests that it does not know, and closes
 * its socket on a frame without one.
 */
export const NO_REQUEST = ''

/** The answers that the AI SDK's `WebSocketChatTransport` knows; a `chunk` is made by `chunkFrameHead`. */
export type StreamFrame =
  | { readonly type: 'start' | 'end' | 'no-active'; readonly requestId: string }
  | {
      readonly type: 'error'
      readonly requestId: string
      readonly errorText: string
      readonly code: ErrorCode
    }

/** What the AI SDK's client does not know, and drops. */
export type ExtensionFrame =
  | { readonly type: 'hello'; readonly protocol: string; readonly limits: AnnouncedLimits }
  | ({ readonly type: 'decided'; readonly decisionId: string } & Acknowledgement<{
      /** What the approval is now. */
      readonly state: string
    }>)
  | ({ readonly type: 'tool-output-taken'; readonly outputId: string } & Acknowledgement)
  /** A turn that no request of this socket began; its chunks follow under the `requestId` given here. */
  | {
      readonly type: 'turn'
      readonly id: string
      readonly requestId: string
      readonly messageId: string
      readonly userMessage?: Message
    }
  /** What the person said, once it is known in full. */
  | { readonly type: 'user-message'; readonly id: string; readonly message: Message }
  | {
      readonly type: 'transcript'
      readonly id: string
      readonly author: 'user' | 'model'
      readonly text: string
      readonly final: boolean
    }
  /** The person spoke over the model: what is left of its audio is to be dropped. */
  | { readonly type: 'interrupted'; readonly id: string }
  | { readonly type: 'status'; readonly id: string; readonly status: string }
  | {
      readonly type: 'refused'
      /** The type of the frame that was not taken; `binary` or `unknown` for one that has none. */
      readonly frame: string
      readonly code: ErrorCode
      readonly message: string
    }
  | { readonly type: 'pong'; readonly nonce?: string }

type Acknowledgement<Taken = unknown> =
  | ({ readonly ok: true } & Taken)
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string }

/** What a client may send, as `hello` tells it. */
export interface AnnouncedLimits {
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

/** The constant head of a request's chunks: a chunk is serialised once for all readers, and a frame is put around that text. */
export function chunkFrameHead(requestId: string): string {
  return `{"type":"chunk","requestId":${JSON.stringify(requestId)},"sequence":`
}

export function chunkFrame(head: string, sequence: number, chunkJson: string): string {
  return `${head}${sequence},"chunk":${chunkJson}}`
}
