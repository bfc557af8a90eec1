import type { Chunk } from '../../protocol/chunk.ts'
import type { Message } from '../../protocol/message.ts'
import type { MessageView } from '../sync/response-states.ts'
import { newId } from '../../shared/new-id.ts'

/** Why an answer was begun: a message or answers were sent, one is made anew, one is read from its start, or nobody asked (`turn`). */
export type WireTrigger = 'submit-message' | 'regenerate-message' | 'resume' | 'turn'

/** Something that passes between a page and the server, as it passes. `request` names an answer and all that belongs to it. */
export type WireEvent =
  | {
      readonly type: 'request'
      readonly request: string
      readonly chatId: string
      readonly trigger: WireTrigger
      /** What was sent, or said: a message of the person, or the answered calls of one of the assistant. */
      readonly message?: MessageView
      /** The message that is answered, or that a `turn` writes, where it is known. */
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
  /** What a person was heard to say, or wrote while an answer was given. */
  | { readonly type: 'user-message'; readonly chatId: string; readonly message: Message }
  | { readonly type: 'frame'; readonly direction: 'in' | 'out'; readonly frame: object }
  /** Sound as bytes: how many. */
  | { readonly type: 'sound'; readonly direction: 'in' | 'out'; readonly bytes: number }

/** Sees all that passes, see {@link WireEvent}. */
export type WireObserver = (event: WireEvent) => void

interface Begun {
  readonly chatId: string
  readonly trigger: WireTrigger
  readonly message?: MessageView | undefined
  readonly messageId?: string | undefined
}

/** Tells an observer of one answer. */
export class WireTap {
  readonly #observe: WireObserver | undefined
  readonly #request = newId()
  readonly #chatId: string
  #isOver = false

  constructor(observe: WireObserver | undefined, { chatId, trigger, message, messageId }: Begun) {
    this.#observe = observe
    this.#chatId = chatId
    observe?.({
      type: 'request',
      request: this.#request,
      chatId,
      trigger,
      ...(message && { message }),
      ...(messageId !== undefined && { messageId }),
    })
  }

  chunk(chunk: Chunk): void {
    this.#observe?.({ type: 'chunk', request: this.#request, chatId: this.#chatId, chunk })
  }

  /** Once. */
  end(error?: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    const failed = error === undefined ? {} : { error: String(error) }
    this.#observe?.({ type: 'end', request: this.#request, chatId: this.#chatId, ...failed })
  }
}
