import type { Event } from '@google/adk'

import { UNHEARD } from '../agent/history/chat-title.ts'
import type { Message } from '../protocol/message.ts'
import type { Floor } from './floor.ts'
import { LiveMessage } from './live-message.ts'

/** What a person is heard to say, as it is written down piece by piece, and which message it asks for. */
export class Hearing {
  readonly #floor: Floor<LiveMessage>
  /** The message whose question is being heard. */
  #current: LiveMessage | undefined

  constructor(floor: Floor<LiveMessage>) {
    this.#floor = floor
  }

  /** Takes a piece. */
  hear({ inputTranscription }: Event): void {
    const { text = '', finished = false } = inputTranscription ?? {}
    // The last piece repeats all of them.
    if (finished) return
    if (!this.#current || this.#current.written) this.#current = this.#begin()
    this.#current.heard += text
  }

  /** What was heard so far for a message that is being heard. Undefined before the first word, and when it has been told in full. */
  heardOf({ heard, written, userMessageId }: LiveMessage): Message | undefined {
    const text = heard.trim()
    if (written || text === '') return undefined
    return { id: userMessageId, role: 'user', parts: [{ type: 'text', text }] }
  }

  /** What was heard for a message, in full as far as it is known. */
  textOf({ heard }: LiveMessage): string {
    const text = heard.trim()
    return text === '' ? UNHEARD : text
  }

  /** The model may have begun to answer before what it heard is written down. */
  #begin(): LiveMessage {
    const { holder } = this.#floor
    if (holder && !holder.written && holder !== this.#current) {
      this.#floor.understood()
      return holder
    }
    const message = new LiveMessage()
    this.#floor.said(message)
    return message
  }
}
