import type { Chunk } from '../../protocol/chunk.ts'
import type { Message } from '../../protocol/message.ts'
import type { MessageView } from './chat-messages.ts'

/**
 * Why a stream was opened: a message or responses were sent, a reply is regenerated, a running turn is read, or the server started a turn by itself (`turn`).
 *
 * @inline
 */
export type WireTrigger = 'submit-message' | 'regenerate-message' | 'resume' | 'turn'

/**
 * How many people have approved, and whether this user has.
 *
 * @inline
 */
export interface VoteCount {
  readonly given: number
  readonly voted: boolean
}

/** Something that passes between a page and the server. `request` identifies a stream and all that belongs to it. */
export type WireEvent =
  | {
      readonly type: 'request'
      readonly request: string
      readonly chatId: string
      readonly trigger: WireTrigger
      /** What was sent: a user message, or the responded calls of an assistant message. */
      readonly message?: MessageView
      /** The message that is replied to, or that a `turn` writes, if it is known. */
      readonly messageId?: string
    }
  | {
      readonly type: 'chunk'
      readonly request: string
      readonly chatId: string
      readonly chunk: Chunk
    }
  | {
      readonly type: 'end'
      readonly request: string
      readonly chatId: string
      readonly error?: string
    }
  /** Speech that was transcribed, or text that was written during a reply. */
  | { readonly type: 'user-message'; readonly chatId: string; readonly message: Message }
  | { readonly type: 'frame'; readonly direction: 'in' | 'out'; readonly frame: object }
  /** How many people have approved a call, as the page shows it. No transport reports this: report it where the page reads approvals. */
  | ({ readonly type: 'votes'; readonly chatId: string; readonly approvalId: string } & VoteCount)
  /** The size of a binary audio frame. */
  | { readonly type: 'sound'; readonly direction: 'in' | 'out'; readonly bytes: number }

/**
 * Called with every {@link WireEvent}.
 *
 * @inline
 */
export type WireObserver = (event: WireEvent) => void

/** A request as `createTap` reports it. */
export interface WireRequest {
  readonly chatId: string
  readonly trigger: WireTrigger
  readonly message?: MessageView | undefined
  readonly messageId?: string | undefined
}

/** Reports one stream to a `WireObserver`. */
export interface WireTap {
  chunk(chunk: Chunk): void
  /** Further calls have no effect. */
  end(error?: unknown): void
}

/** Reports the request of a stream to an observer. Returns what reports the rest of the stream. */
export function createTap(
  observe: WireObserver,
  { chatId, trigger, message, messageId }: WireRequest,
): WireTap {
  const request = newId()
  let isOver = false
  observe({
    type: 'request',
    request,
    chatId,
    trigger,
    ...(message && { message }),
    ...(messageId !== undefined && { messageId }),
  })
  return {
    chunk: (chunk) => observe({ type: 'chunk', request, chatId, chunk }),
    end: (error) => {
      if (isOver) return
      isOver = true
      const failed = error === undefined ? {} : { error: String(error) }
      observe({ type: 'end', request, chatId, ...failed })
    },
  }
}

/** Returns a random id. `crypto.randomUUID` is missing on pages that are not served over HTTPS. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
