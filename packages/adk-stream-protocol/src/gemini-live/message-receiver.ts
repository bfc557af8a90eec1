import type {
  Content,
  FunctionCall,
  FunctionResponse,
  LiveServerContent,
  LiveServerMessage,
} from '@google/genai'

import { HeldWords } from './buffered-transcript.ts'
import { LiveConnectionError } from './live-connection-error.ts'
import type { LiveHooks } from './live-hooks.ts'
import type { LiveJournal } from './replay-buffer.ts'
import { isPlain, isWellFormed, sortMessage, toMessage } from './split-message.ts'

export interface InboxOptions {
  readonly journal: LiveJournal
  readonly hooks: LiveHooks
  readonly isTool: (name: string) => boolean
  /** Takes what ADK is to be told. */
  readonly forward: (message: LiveServerMessage) => void
  /** Something came of the connection. */
  readonly onProgress: () => void
  /** Answers that need no tool. */
  readonly answer: (responses: readonly FunctionResponse[]) => void
  /** Gemini gave a handle. */
  readonly onHandle: () => void
  readonly onGoAway: (timeLeft: string | undefined) => void
}

/** Reads what Gemini tells: what concerns the connection is dealt with here, the rest is ADK's. */
export class LiveInbox {
  readonly #options: InboxOptions
  /** Calls that ADK has not taken from its queue yet. */
  readonly #undelivered = new Set<FunctionCall>()
  readonly #withdrawn = new WeakSet<FunctionCall>()
  readonly #heldWords = new HeldWords()

  constructor(options: InboxOptions) {
    this.#options = options
  }

  take(message: LiveServerMessage): void {
    if (!isWellFormed(message)) {
      const reason = 'A message has fields of the wrong kind.'
      const error = new LiveConnectionError({ code: 'odd-frame', reason, phase: 'open' })
      return this.#options.hooks.onError(error)
    }
    if (message.serverContent) {
      this.#takeContent(message.serverContent)
      this.#letGo(this.#heldWords.note(message.serverContent))
    }
    if (isPlain(message)) this.#options.forward(message)
    else this.#takeRare(message)
  }

  /** Whether a call that ADK takes from its queue has not been taken back meanwhile. */
  admits(call: FunctionCall): boolean {
    this.#undelivered.delete(call)
    return !this.#withdrawn.has(call)
  }

  /** The connection was lost while the model spoke: it will begin its answer anew, and this one is over. */
  breakOff(): void {
    const { journal, hooks, forward } = this.#options
    if (!journal.isSpeaking) return
    hooks.onInterrupted()
    hooks.onCutOff()
    forward(toMessage({ serverContent: { interrupted: true, turnComplete: true } }))
  }

  #takeContent(content: LiveServerContent): void {
    const { journal, hooks, onProgress } = this.#options
    const { modelTurn, inputTranscription, outputTranscription } = content
    onProgress()
    if (inputTranscription?.text) journal.hear(inputTranscription.text)
    if (modelTurn?.parts) {
      hooks.onSpoken(modelTurn.parts)
      journal.say(toSpoken(modelTurn))
    }
    if (outputTranscription?.text) journal.say(outputTranscription.text)
    if (content.interrupted) hooks.onInterrupted()
    if (content.turnComplete) journal.endTurn()
  }

  #takeRare(message: LiveServerMessage): void {
    const { isTool, forward: tell, answer, journal } = this.#options
    const { forward, calls, unknownCalls } = sortMessage(message, isTool)
    if (calls.length > 0) this.#letGo(this.#heldWords.beforeCall())
    for (const call of calls) this.#takeCall(call)
    if (forward) tell(forward)
    for (const call of unknownCalls) journal.noteCall(call)
    if (unknownCalls.length > 0) answer(unknownCalls.map(toRefusal))
    const cancelled = message.toolCallCancellation?.ids ?? []
    if (cancelled.length > 0) this.#withdraw(cancelled)
    this.#takeNotice(message)
  }

  /** What concerns the connection alone. */
  #takeNotice({ sessionResumptionUpdate, goAway }: LiveServerMessage): void {
    const { journal, onHandle, onGoAway } = this.#options
    const { newHandle, resumable } = sessionResumptionUpdate ?? {}
    if (newHandle && resumable !== false) {
      journal.checkpoint(newHandle)
      onHandle()
    }
    if (goAway) onGoAway(goAway.timeLeft)
  }

  #letGo(message: LiveServerMessage | undefined): void {
    if (message) this.#options.forward(message)
  }

  #takeCall(call: FunctionCall): void {
    this.#options.onProgress()
    this.#options.journal.call(call)
    this.#undelivered.add(call)
  }

  #withdraw(toolCallIds: readonly string[]): void {
    for (const call of this.#undelivered) {
      if (toolCallIds.includes(call.id ?? '')) this.#withdrawn.add(call)
    }
    this.#options.hooks.onCancelled(toolCallIds)
  }
}

function toSpoken({ parts = [] }: Content): string {
  return parts.map(({ text, thought }) => (thought ? '' : (text ?? ''))).join('')
}

function toRefusal({ id, name }: FunctionCall): FunctionResponse {
  return {
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
    response: { error: `There is no tool ${name}.` },
  }
}
