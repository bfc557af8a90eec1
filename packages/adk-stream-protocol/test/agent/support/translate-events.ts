import type { CreateEventParams } from '@google/adk'
import { createEvent } from '@google/adk'
import type { Part } from '@google/genai'

import { ChunkWriter } from '../../../src/agent/translate/chunk-writer.ts'
import { finishTranslation, translateEvent } from '../../../src/agent/translate/translate-event.ts'
import type { Chunk } from '../../../src/protocol/chunk.ts'

/** An event of the agent `assistant`. */
export function event(params: CreateEventParams) {
  return createEvent({ author: 'assistant', invocationId: 'e-1', ...params })
}

export function partial(...parts: Part[]) {
  return event({ partial: true, content: { role: 'model', parts } })
}

export function whole(...parts: Part[]) {
  return event({ content: { role: 'model', parts } })
}

export function call(id: string, name = 'look', args: Record<string, unknown> = {}): Part {
  return { functionCall: { id, name, args } }
}

export function response(id: string, result: Record<string, unknown> = {}, name = 'look'): Part {
  return { functionResponse: { id, name, response: result } }
}

/** Returns the chunks of these events, without the end of the turn. */
export function translate(
  events: readonly ReturnType<typeof createEvent>[],
  exposeState: (key: string) => boolean = () => true,
): Chunk[] {
  return follow(events, exposeState).chunks
}

/** Returns the chunks of a whole turn. */
export function translateTurn(
  events: readonly ReturnType<typeof createEvent>[],
  end: 'completed' | 'stopped' = 'completed',
): Chunk[] {
  const { state, chunks } = follow(events, () => true)
  return [...chunks, ...finishTranslation(state, end)]
}

function follow(
  events: readonly ReturnType<typeof createEvent>[],
  exposeState: (key: string) => boolean,
) {
  const writer = new ChunkWriter()
  for (const next of events) translateEvent(writer, next, { exposeState })
  return writer
}

/** Chunks as short lines: `text-delta text-1 "Hello"`. */
export function lines(chunks: readonly Chunk[]): string[] {
  return chunks.map(({ type, ...rest }) => {
    const fields = Object.entries(rest).map(([key, value]) =>
      key === 'id' || key === 'toolCallId' ? String(value) : JSON.stringify(value),
    )
    return [type, ...fields].join(' ')
  })
}
