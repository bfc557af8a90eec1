import type { LiveServerContent, LiveServerMessage } from '@google/genai'

import { toMessage } from './split-message.ts'

/**
 * Words that ADK 2.0.0 holds until the model has said all: those of a transcript, and thoughts. What came before something else is told
 * and stored before it, so ADK is given a message that has it let go of them.
 */
export class HeldWords {
  #isTranscribing = false
  #isThinking = false

  /** Notes what the model tells; gives what ADK is to be told before it. */
  note(content: LiveServerContent): LiveServerMessage | undefined {
    const wasThinking = this.#isThinking
    const isSpoken = this.#noteThoughts(content)
    if (content.outputTranscription?.text) this.#isTranscribing = true
    if (endsTranscript(content)) this.#isTranscribing = false
    return wasThinking && isSpoken
      ? toMessage({ serverContent: { modelTurn: { parts: [] } } })
      : undefined
  }

  /** Whether something is spoken, in words or sound. */
  #noteThoughts({ modelTurn, outputTranscription }: LiveServerContent): boolean {
    const parts = modelTurn?.parts ?? []
    const isSpoken =
      Boolean(outputTranscription?.text) || parts.some(({ inlineData }) => inlineData)
    if (isSpoken || parts.length > 0) this.#isThinking = parts.at(-1)?.thought === true
    return isSpoken
  }

  /** What ADK is to be told before a call. */
  beforeCall(): LiveServerMessage | undefined {
    if (!this.#isTranscribing) return undefined
    this.#isTranscribing = false
    return toMessage({ serverContent: { outputTranscription: { finished: true } } })
  }
}

function endsTranscript(content: LiveServerContent): boolean {
  const { outputTranscription, interrupted, turnComplete, generationComplete } = content
  return Boolean(outputTranscription?.finished || interrupted || turnComplete || generationComplete)
}
