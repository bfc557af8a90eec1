import { LiveRequestQueue } from '@google/adk'
import type { Blob, Content, FunctionResponse } from '@google/genai'
import { FunctionResponseScheduling } from '@google/genai'

import { AWAITING_APPROVAL } from '../../../agent/call-responses.ts'
import { AUDIO_END } from '../gemini/reconnecting-model.ts'
import type { LiveMessage } from './live-message.ts'
import type { TurnTaking } from './turn-taking.ts'

/** A call that has ended. */
export interface EndedCall {
  readonly id: string
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  readonly response: Readonly<Record<string, unknown>>
}

/** What the input needs of its conversation. */
interface LiveInputOptions {
  readonly turnTaking: TurnTaking<LiveMessage>
  /** Whether the model continues to speak while its calls wait. */
  readonly hasNonBlockingCalls: boolean
  /** Parks the calls that wait for people. Called before input reaches a model that would cancel them. */
  park(): void
}

/** Sends the messages, media and results of a live conversation to the model. */
export class LiveInput {
  /** What ADK sends to the model. */
  readonly queue = new LiveRequestQueue()
  /** Whether media or an activity of the person were sent. */
  hasMedia = false
  readonly #options: LiveInputOptions
  /** Results of parked calls that the model has not received. A text would cancel its other calls, or interrupt its reply. */
  readonly #unsentResults: { readonly message: LiveMessage; readonly text: string }[] = []

  constructor(options: LiveInputOptions) {
    this.#options = options
  }

  sendMessage(message: LiveMessage, content: Content): void {
    this.#park()
    this.#sendUnsentResults()
    this.#options.turnTaking.apply({ type: 'message-sent', message })
    this.queue.sendContent(content)
  }

  /** Sends a chunk of audio, or an image. */
  sendMedia(blob: Blob): void {
    this.hasMedia = true
    this.#park()
    this.queue.sendRealtime(blob)
  }

  sendActivity(activity: 'start' | 'end'): void {
    if (activity === 'end') return this.queue.sendActivityEnd()
    this.hasMedia = true
    this.#park()
    this.queue.sendActivityStart()
  }

  endAudio(): void {
    this.queue.sendRealtime(AUDIO_END)
  }

  /** Sends the result of a call, or its status, as its function response. */
  sendResult(
    message: LiveMessage,
    { id, name, response }: Pick<EndedCall, 'id' | 'name'> & { response: Record<string, unknown> },
  ): void {
    const functionResponse: FunctionResponse = { id, name, response }
    if (this.#options.hasNonBlockingCalls)
      functionResponse.scheduling = FunctionResponseScheduling.WHEN_IDLE
    this.queue.sendContent({ role: 'user', parts: [{ functionResponse }] })
    this.#options.turnTaking.apply({ type: 'result-sent', toolCallId: id, message })
    this.flushResults()
  }

  /** Sends the result of a parked call as text. Other calls of the model stay unaffected. */
  sendParkedResult(message: LiveMessage, call: EndedCall): void {
    this.#park()
    this.#options.turnTaking.apply({ type: 'result-held', message })
    this.#unsentResults.push({ message, text: describeParkedResult(call) })
    this.flushResults()
  }

  /** Tells the model that a call waits for a person. A model that waits for its calls is silent meanwhile, so it needs no status. */
  sendPending(id: string, name: string): void {
    if (!this.#options.hasNonBlockingCalls) return
    const functionResponse: FunctionResponse = {
      id,
      name,
      response: { ...AWAITING_APPROVAL },
      willContinue: true,
      scheduling: FunctionResponseScheduling.SILENT,
    }
    this.queue.sendContent({ role: 'user', parts: [{ functionResponse }] })
  }

  /** The model waits for the result of a call no longer. `ignoring`: the message whose result it has received and does not reply to. */
  cancelCall(toolCallId: string, ignoring: LiveMessage | undefined): void {
    const { turnTaking } = this.#options
    turnTaking.apply({ type: 'call-cancelled', toolCallId })
    if (ignoring) turnTaking.apply({ type: 'result-ignored', message: ignoring })
  }

  /** Sends the first result of a parked call, if it interrupts no reply (LV602) and the model waits for no other result. */
  flushResults(): void {
    if (this.#options.turnTaking.isIdle) this.#sendUnsentResults(1)
  }

  #sendUnsentResults(count = this.#unsentResults.length): void {
    for (const { message, text } of this.#unsentResults.splice(0, count)) {
      this.#options.turnTaking.apply({ type: 'held-result-sent', message })
      this.queue.sendContent({ role: 'user', parts: [{ text }] })
    }
  }

  #park(): void {
    if (!this.#options.hasNonBlockingCalls) this.#options.park()
  }
}

/** Returns the text that gives the model the result of a parked call. It names the call, because several may be parked. */
function describeParkedResult({ id, name, args, response }: EndedCall): string {
  const call = `${name}(${JSON.stringify(args)})`
  return `[Result of the call ${id}, ${call}, which waited for a person: ${JSON.stringify(response)}]`
}
