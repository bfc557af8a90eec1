import type { Event } from '@google/adk'

import { UNTRANSCRIBED } from '../agent/history/chat-title.ts'
import type { Message } from '../protocol/message.ts'
import { LiveMessage } from './live-message.ts'
import type { TurnTaking } from './turn-taking.ts'

/** Collects the transcript of the user's speech, and assigns it to the message that replies to it. */
export class SpeechTranscript {
  readonly #turnTaking: TurnTaking<LiveMessage>
  /** The message that receives the transcript. */
  #current: LiveMessage | undefined

  constructor(turnTaking: TurnTaking<LiveMessage>) {
    this.#turnTaking = turnTaking
  }

  /** Adds a piece of the transcript. */
  add({ inputTranscription }: Event): void {
    const { text = '', finished = false } = inputTranscription ?? {}
    // The last piece repeats the whole transcript.
    if (finished) {
      if (this.#current) this.#current.isPromptKnown = true
      return
    }
    if (!this.#current || this.#current.isUserMessageStored) this.#current = this.#findMessage()
    this.#current.transcript += text
  }

  /** Finds the message for new speech. The model may have started its reply before the transcript arrives. */
  #findMessage(): LiveMessage {
    const { speaker } = this.#turnTaking
    if (speaker && !speaker.isUserMessageStored && speaker !== this.#current) {
      this.#turnTaking.apply({ type: 'prompt-recognized' })
      return speaker
    }
    const message = new LiveMessage()
    this.#turnTaking.apply({ type: 'message-sent', message })
    return message
  }
}

/** Returns the user message as transcribed so far. Returns undefined before the first word, and once the message is stored. */
export function partialUserMessage(message: LiveMessage): Message | undefined {
  const text = message.transcript.trim()
  if (message.isUserMessageStored || text === '') return undefined
  return { id: message.userMessageId, role: 'user', parts: [{ type: 'text', text }] }
}

/** Returns the transcript of the user's speech, or a placeholder if there is none. */
export function transcriptOf({ transcript }: LiveMessage): string {
  return transcript.trim() || UNTRANSCRIBED
}
