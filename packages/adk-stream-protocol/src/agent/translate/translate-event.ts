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
  const telling = new ChunkWriter(state)
  // A report of cost comes after the fact, when somebody else may be speaking.
  if (event.author !== 'user' && (event.content || event.outputTranscription)) {
    telling.switchTo(event.author ?? '', event.branch ?? '')
  }
  translateParts(telling, event)
  const notes = readNotes(event)
  translateHandover(telling, notes)
  translateTranscriptions(telling, event)
  if (event.groundingMetadata) translateGrounding(telling, event.groundingMetadata)
  if (event.citationMetadata) translateCitations(telling, event.citationMetadata)
  if (!event.partial) translateActions(telling, event, options)
  noteCost(telling, event)
  noteAudio(telling, notes)
  noteEnd(telling, event)
  return [telling.state, telling.chunks]
}

/** Calls that are the client's now. */
function translateHandover(
  telling: ChunkWriter,
  { handedOver = [], offered = [] }: EventNotes,
): void {
  for (const toolCallId of handedOver) telling.handOver(toolCallId)
  for (const toolCallId of offered) telling.offer(toolCallId)
}

function translateTranscriptions(
  telling: ChunkWriter,
  { inputTranscription, outputTranscription }: Event,
): void {
  if (inputTranscription) {
    const { text = '', finished = false } = inputTranscription
    const data = { text, finished }
    telling.chunks.push({ type: 'data-input-transcription', data, transient: true })
  }
  if (outputTranscription) {
    const { text = '', finished = false } = outputTranscription
    telling.say('text', finished ? text.slice(telling.alreadyStreamed('text', text)) : text)
    if (finished) telling.forgetStreamed()
    else telling.noteStreamed('text', text)
  }
}

function translateActions(telling: ChunkWriter, event: Event, options: TranslationOptions): void {
  const { stateDelta, artifactDelta, transferToAgent } = event.actions
  const shown = Object.entries(stateDelta).filter(([key]) => options.exposeState(key))
  if (shown.length > 0) {
    telling.addPart({ type: 'data-state-delta', data: { delta: Object.fromEntries(shown) } })
  }
  if (Object.keys(artifactDelta).length > 0) {
    telling.addPart({ type: 'data-artifact-delta', data: { artifacts: artifactDelta } })
  }
  if (transferToAgent) {
    telling.addPart({ type: 'data-agent-transfer', data: { to: transferToAgent } })
  }
  if (event.output !== undefined && !event.content) {
    telling.addPart({ type: 'data-output', data: { value: event.output } })
  }
}

function noteCost(telling: ChunkWriter, { usageMetadata, modelVersion }: Event): void {
  if (usageMetadata) telling.note({ usage: countUsage(telling.state.usage, usageMetadata) })
  if (modelVersion && modelVersion !== telling.state.modelVersion) telling.note({ modelVersion })
}

/** A stored event says how much was spoken; of one that is told now, its speech was counted as it came. */
function noteAudio(telling: ChunkWriter, { audio }: EventNotes): void {
  if (audio) telling.note({ audio })
}

function noteEnd(telling: ChunkWriter, { errorCode, errorMessage, finishReason }: Event): void {
  if (finishReason) telling.note({ finishReason: readFinishReason(finishReason) })
  if (!errorCode) return
  // ADK marks every answer that ends otherwise than by STOP as an error. What was said of it still stands, so only an answer
  // without a word is one for the person who reads it.
  if (isFinishReason(errorCode) && (errorCode === 'MAX_TOKENS' || telling.state.textCount > 0)) {
    telling.note({ finishReason: readFinishReason(errorCode) })
  } else {
    telling.note({ error: describeModelError(errorCode, errorMessage) })
  }
}
