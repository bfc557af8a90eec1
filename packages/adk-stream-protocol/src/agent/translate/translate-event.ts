import type { Event } from '@google/adk'

import type { Chunk } from '../../protocol/chunk.ts'
import { countUsage } from './count-usage.ts'
import type { EventNotes } from '../history/event-notes.ts'
import { readNotes } from '../history/event-notes.ts'
import { isFinishReason, readFinishReason } from './finish-reason.ts'
import { describeModelError } from './model-error.ts'
import { ChunkWriter } from './chunk-writer.ts'
import { translateParts } from './translate-parts.ts'
import { translateCitations, translateGrounding } from './translate-sources.ts'
import type { Translation } from './translation.ts'

export interface TranslationOptions {
  /** Which keys of a state delta the client may see. */
  readonly exposeState: (key: string) => boolean
}

/**
 * Tells one ADK event to the client: the pure heart of the bridge. In the order: who speaks, what is said and done, what it rests
 * on, what it changed, what it cost, how it ended.
 */
export function translateEvent(
  state: Translation,
  event: Event,
  options: TranslationOptions,
): [Translation, Chunk[]] {
  if (state.error) return [state, []]
  const writer = new ChunkWriter(state)
  // A report of cost comes after the fact, when somebody else may be speaking.
  if (event.author !== 'user' && (event.content || event.outputTranscription)) {
    writer.switchTo(event.author ?? '', event.branch ?? '')
  }
  translateParts(writer, event)
  const notes = readNotes(event)
  translateHandover(writer, notes)
  translateTranscriptions(writer, event)
  if (event.groundingMetadata) translateGrounding(writer, event.groundingMetadata)
  if (event.citationMetadata) translateCitations(writer, event.citationMetadata)
  if (!event.partial) translateActions(writer, event, options)
  recordUsage(writer, event)
  recordAudio(writer, notes)
  recordEnd(writer, event)
  return [writer.state, writer.chunks]
}

/** Calls that are the client's now. */
function translateHandover(
  writer: ChunkWriter,
  { handedOver = [], offered = [] }: EventNotes,
): void {
  for (const toolCallId of handedOver) writer.handOver(toolCallId)
  for (const toolCallId of offered) writer.offer(toolCallId)
}

function translateTranscriptions(
  writer: ChunkWriter,
  { inputTranscription, outputTranscription }: Event,
): void {
  if (inputTranscription) {
    const { text = '', finished = false } = inputTranscription
    const data = { text, finished }
    writer.chunks.push({ type: 'data-input-transcription', data, transient: true })
  }
  if (outputTranscription) {
    const { text = '', finished = false } = outputTranscription
    writer.writeText('text', finished ? text.slice(writer.alreadyStreamed('text', text)) : text)
    if (finished) writer.forgetStreamed()
    else writer.recordStreamed('text', text)
  }
}

function translateActions(writer: ChunkWriter, event: Event, options: TranslationOptions): void {
  const { stateDelta, artifactDelta, transferToAgent } = event.actions
  const shown = Object.entries(stateDelta).filter(([key]) => options.exposeState(key))
  if (shown.length > 0) {
    writer.addPart({ type: 'data-state-delta', data: { delta: Object.fromEntries(shown) } })
  }
  if (Object.keys(artifactDelta).length > 0) {
    writer.addPart({ type: 'data-artifact-delta', data: { artifacts: artifactDelta } })
  }
  if (transferToAgent) {
    writer.addPart({ type: 'data-agent-transfer', data: { to: transferToAgent } })
  }
  if (event.output !== undefined && !event.content) {
    writer.addPart({ type: 'data-output', data: { value: event.output } })
  }
}

function recordUsage(writer: ChunkWriter, { usageMetadata, modelVersion }: Event): void {
  if (usageMetadata) writer.update({ usage: countUsage(writer.state.usage, usageMetadata) })
  if (modelVersion && modelVersion !== writer.state.modelVersion) writer.update({ modelVersion })
}

/** A stored event says how much was spoken; of one that is told now, its speech was counted as it came. */
function recordAudio(writer: ChunkWriter, { audio }: EventNotes): void {
  if (audio) writer.update({ audio })
}

function recordEnd(writer: ChunkWriter, { errorCode, errorMessage, finishReason }: Event): void {
  if (finishReason) writer.update({ finishReason: readFinishReason(finishReason) })
  if (!errorCode) return
  // ADK marks every answer that ends otherwise than by STOP as an error. What was said of it still stands, so only an answer
  // without a word is one for the person who reads it.
  if (isFinishReason(errorCode) && (errorCode === 'MAX_TOKENS' || writer.state.textCount > 0)) {
    writer.update({ finishReason: readFinishReason(errorCode) })
  } else {
    writer.update({ error: describeModelError(errorCode, errorMessage) })
  }
}
