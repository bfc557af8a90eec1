import type { Chunk } from '../protocol/chunk.ts'
import { serialiseChunk } from '../protocol/chunk.ts'
import { CONFIRMATION_TOOL } from '../protocol/confirmation-tool.ts'
import type { DataParts } from '../protocol/message.ts'
import type { Sink } from '../turns/attachment.ts'

/** How a turn is written for a kind of client. `ui` is the AI SDK's own; see PROTOCOL.md, Dialects. */
export const DIALECTS = ['ui', 'confirmation'] as const
export type Dialect = (typeof DIALECTS)[number]

/** The same turn for another kind of client. */
export function toDialect(dialect: Dialect, sink: Sink): Sink {
  if (dialect === 'ui') return sink
  const confirm = new ConfirmationDialect()
  return {
    ...sink,
    write: (json) => {
      if (!CONCERNED.test(json)) return sink.write(json)
      // The log holds what `serialiseChunk` made of a chunk.
      const chunks = confirm.render(JSON.parse(json) as Chunk)
      return chunks.map((chunk) => sink.write(serialiseChunk(chunk))).every(Boolean)
    },
  }
}

// Deltas, which come by the thousand, pass as they are.
const CONCERNED = /^\{"type":"(?:tool-|data-approval)/

/** Shows the question as a call of a tool of its own, as clients of the earlier system expect it (DI1). */
class ConfirmationDialect {
  readonly #calls = new Map<string, { readonly name: string; readonly args: unknown }>()
  readonly #hints = new Map<string, string>()

  render(chunk: Chunk): Chunk[] {
    if (chunk.type === 'tool-approval-request') return this.#ask(chunk.approvalId, chunk.toolCallId)
    if (chunk.type === 'tool-output-denied') {
      const { toolCallId } = chunk
      return [{ type: 'tool-output-error', toolCallId, errorText: 'User denied execution' }]
    }
    if (chunk.type === 'data-approval') {
      this.#hear(chunk.data)
      return []
    }
    if (chunk.type === 'tool-input-available') {
      this.#calls.set(chunk.toolCallId, { name: chunk.toolName, args: chunk.input })
    }
    return [chunk]
  }

  #hear({ approvalId, hint }: DataParts['approval']): void {
    if (hint !== undefined) this.#hints.set(approvalId, hint)
  }

  #ask(approvalId: string, callId: string): Chunk[] {
    const call = this.#calls.get(callId)
    const input = {
      originalFunctionCall: { id: callId, name: call?.name ?? '', args: call?.args ?? {} },
      toolConfirmation: { hint: this.#hints.get(approvalId) ?? '', confirmed: false },
    }
    const asked = { toolCallId: approvalId, toolName: CONFIRMATION_TOOL }
    return [
      { type: 'tool-input-start', ...asked },
      { type: 'tool-input-available', ...asked, input },
    ]
  }
}
