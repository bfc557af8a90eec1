import { isPriorDecision } from '../../../protocol/decision-evidence.ts'
import type { Chunk } from '../../../protocol/chunk.ts'
import { serialiseChunk } from '../../../protocol/chunk.ts'
import type { DataParts } from '../../../protocol/message.ts'
import { CONFIRMATION_TOOL } from '../../../protocol/message.ts'
import { SSE_DONE, UI_STREAM_HEADERS } from '../../../protocol/sse.ts'
import type { Sink } from '../../../turns/log-reader.ts'
import type { ReadFrom } from '../../../turns/turn-log.ts'
import type { TurnFormat } from '../../http/turn-format.ts'

/** Turns in which an approval request is a call of a confirmation tool. */
export const CONFIRMATION_FORMAT: TurnFormat = {
  hasPositions: false,
  headers: UI_STREAM_HEADERS,
  end: SSE_DONE,
  convert: toConfirmations,
}

function toConfirmations(sink: Sink, from: ReadFrom): Sink {
  const confirm = new ConfirmationDialect({ resumes: from !== 'start' })
  return {
    hold: () => sink.hold?.(),
    flush: () => sink.flush?.() !== false,
    pass: (sound) => sink.pass?.(sound),
    end: () => sink.end(),
    abandon: () => sink.abandon(),
    write: (json) => {
      if (!CONCERNED.test(json)) return sink.write(json)
      // The log holds what `serialiseChunk` made of a chunk.
      const chunks = confirm.render(JSON.parse(json) as Chunk)
      return chunks.map((chunk) => sink.write(serialiseChunk(chunk))).every(Boolean)
    },
  }
}

// Deltas are frequent, so they pass unparsed.
const CONCERNED = /^\{"type":"(?:tool-|data-approval|start-step|finish-step)/

/** Sends an approval request as a call of a confirmation tool, as clients of the earlier Python server expect it (DI1). */
class ConfirmationDialect {
  /** Whether the client has received the approval requests before this stream. */
  readonly #resumes: boolean
  readonly #calls = new Map<string, { readonly name: string; readonly args: unknown }>()
  readonly #hints = new Map<string, string>()
  /** Calls whose input has not arrived yet. */
  readonly #startedCalls = new Set<string>()
  readonly #questions = new Map<string, 'open' | 'ended'>()
  #step: 'none' | 'model' | 'questions' = 'none'

  constructor({ resumes }: { resumes: boolean }) {
    this.#resumes = resumes
  }

  render(chunk: Chunk): Chunk[] {
    if (chunk.type === 'tool-approval-request') return this.#ask(chunk.approvalId, chunk.toolCallId)
    if (chunk.type === 'tool-input-available') return this.#show(chunk)
    if (chunk.type === 'data-approval') return this.#update(chunk.data)
    if (chunk.type === 'tool-output-denied') {
      const { toolCallId } = chunk
      return [{ type: 'tool-output-error', toolCallId, errorText: 'User denied execution' }]
    }
    if (chunk.type === 'tool-input-start') this.#startedCalls.add(chunk.toolCallId)
    if (chunk.type === 'start-step') this.#step = 'model'
    if (chunk.type === 'finish-step') this.#step = 'none'
    return [chunk]
  }

  #show(chunk: Extract<Chunk, { type: 'tool-input-available' }>): Chunk[] {
    const { toolCallId, toolName: name, input: args } = chunk
    const isShown = !this.#startedCalls.delete(toolCallId)
    this.#calls.set(toolCallId, { name, args })
    // The input of an approved browser call is sent again, in a new step after its approval request (BT130).
    return isShown ? [...this.#startStep('model'), chunk, ...this.#finishStep()] : [chunk]
  }

  /** DI130: ends the confirmation call when the approval is decided, by any client, or expires. */
  #update(approval: DataParts['approval']): Chunk[] {
    const { approvalId, hint, state, kind } = approval
    // The client answers a question with the output of its call, and is not asked about a call that a grant decided.
    if (kind || isPriorDecision(approval)) return []
    if (hint !== undefined) this.#hints.set(approvalId, hint)
    const asked = this.#questions.get(approvalId) ?? (this.#resumes ? 'open' : 'ended')
    if (state === 'requested' || asked === 'ended') return []
    this.#questions.set(approvalId, 'ended')
    const output = { confirmed: state === 'approved' || state === 'unknown' }
    return [{ type: 'tool-output-available', toolCallId: approvalId, output }]
  }

  /** DI131: confirmation calls have a step of their own. Otherwise the open tool calls would keep a client from sending its responses. */
  #ask(approvalId: string, callId: string): Chunk[] {
    const { name, args } = this.#calls.get(callId) ?? { name: '', args: {} }
    const hint = this.#hints.get(approvalId) ?? `Please approve or reject the tool call ${name}().`
    this.#questions.set(approvalId, 'open')
    const input = {
      originalFunctionCall: { id: callId, name, args },
      toolConfirmation: { hint, confirmed: false },
    }
    const asked = { toolCallId: approvalId, toolName: CONFIRMATION_TOOL }
    return [
      ...(this.#step === 'questions' ? [] : this.#startStep('questions')),
      { type: 'tool-input-start', ...asked },
      { type: 'tool-input-available', ...asked, input },
    ]
  }

  #startStep(kind: 'questions' | 'model'): Chunk[] {
    const before = this.#finishStep()
    this.#step = kind
    return [...before, { type: 'start-step' }]
  }

  #finishStep(): Chunk[] {
    if (this.#step === 'none') return []
    this.#step = 'none'
    return [{ type: 'finish-step' }]
  }
}
