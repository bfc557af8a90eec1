import { isDeepStrictEqual } from 'node:util'

import type { Event } from '@google/adk'

import type { Chunk } from '../../protocol/chunk.ts'
import type { ErrorCode } from '../../protocol/errors.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { MessageMetadata, StepProgress, TurnError } from '../../protocol/message.ts'
import { STOPPED } from '../call-responses.ts'
import type { EventNotes, ProgressNote } from '../events/event-notes.ts'
import { findInner, readNotes } from '../events/event-notes.ts'
import { ChunkWriter } from './chunk-writer.ts'
import { countUsage, totalUsage } from './count-usage.ts'
import { describeModelError, isReplyEnd, readReplyEnd } from './model-outcome.ts'
import {
  translateInner,
  translateParts,
  translateCitations,
  translateGrounding,
} from './translate-parts.ts'
import type { Translation } from './translation.ts'
import { isCallWaiting, isWaiting } from './translation.ts'

export interface TranslationOptions {
  /** Whether the client may see a key of a state delta. */
  readonly exposeState: (key: string) => boolean
}

/**
 * Translates an ADK event into chunks. It writes, in this order: the author, the content, the sources, the state
 * changes, the usage and the end.
 */
export function translateEvent(
  writer: ChunkWriter,
  event: Event,
  options: TranslationOptions,
): void {
  if (writer.state.error) return
  // A usage report may arrive when another agent is already speaking.
  if (event.author !== 'user' && (event.content || event.outputTranscription)) {
    writer.switchTo(event.author ?? '', event.branch ?? '')
  }
  const notes = readNotes(event)
  for (const { madeBy, ...question } of notes.askedDuringCalls ?? [])
    writer.askDuringCall(question, madeBy)
  for (const { asked, decided } of notes.unasked ?? []) writer.noteUnasked(asked, decided)
  const inner = findInner(event)
  if (inner) translateInner(writer, inner)
  translateParts(writer, event)
  translateHandover(writer, notes)
  translateSteps(writer, notes)
  if (notes.replied) writer.addPart({ type: 'data-decision', data: notes.replied })
  translateTranscriptions(writer, event)
  if (event.groundingMetadata) translateGrounding(writer, event.groundingMetadata)
  if (event.citationMetadata) translateCitations(writer, event.citationMetadata)
  if (!event.partial) translateActions(writer, event, options)
  recordUsage(writer, event)
  recordAudio(writer, notes)
  recordStop(writer, event, notes)
  recordEnd(writer, event)
}

/** Writes the calls that the client has to run. */
function translateHandover(
  writer: ChunkWriter,
  { checked = [], handedOver = [], offered = [] }: EventNotes,
): void {
  for (const toolCallId of checked) writer.setWaiting(toolCallId)
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

/** A stored event contains the audio count. The audio of a streamed event is counted when its parts are written. */
function recordAudio(writer: ChunkWriter, { audio }: EventNotes): void {
  if (audio) writer.update({ audio })
}

/**
 * A response continues a stopped turn. In a live session, output of the model shows that, or a call that the client has to run now:
 * results of calls follow also without a response.
 */
function recordStop(
  writer: ChunkWriter,
  { interrupted, partial, author, content }: Event,
  { handedOver, offered }: EventNotes,
): void {
  const isContinued =
    author === 'user' || hasModelOutput(content) || (handedOver ?? offered) !== undefined
  // The model of a live session marks partial events when a person speaks.
  if (interrupted && !partial) writer.update({ stop: 'stopped' })
  else if (writer.state.stop === 'stopped' && isContinued) writer.update({ stop: 'continued' })
}

function hasModelOutput(content: Event['content']): boolean {
  return content?.parts?.some(({ functionResponse }) => !functionResponse) === true
}

function recordEnd(writer: ChunkWriter, event: Event): void {
  const { errorCode, errorMessage, finishReason } = event
  if (finishReason) recordReplyEnd(writer, finishReason)
  const { step, hasResults } = writer.state
  const isSilent = step === 'closed' || hasResults
  if (isSilent && isBlockedCall(event)) writer.update({ error: toError('model-blocked') })
  if (errorCode && !isReplyEnd(event))
    writer.update({ error: describeModelError(errorCode, errorMessage) })
}

/** Records how a reply of the model ended. A partial reply is still useful, so only one that says nothing becomes an error. */
function recordReplyEnd(writer: ChunkWriter, reason: string): void {
  const replyEnd = readReplyEnd(reason)
  const isComplete = replyEnd.finishReason === 'stop'
  writer.update({ replyEnd, wasIncomplete: writer.state.wasIncomplete || !isComplete })
  // Another branch may reply after one that is complete, and a result may need no reply.
  if (!isComplete && replyEnd.ifSilent && isSilentSince(writer.state))
    writer.update({ error: toError(replyEnd.ifSilent) })
}

/** Whether the model has not replied since the last results of its calls. */
function isSilentSince({ step, stepCount, hasResults, repliedStep }: Translation): boolean {
  return step === 'closed' || hasResults || repliedStep !== stepCount
}

/** How the run of a turn ended. `left` means that its calls are still running and their results follow later. */
type TurnEnd = 'completed' | 'stopped' | 'left'

/** Closes open parts and steps, and writes the end of the turn. */
export function finishTranslation(state: Translation, end: TurnEnd): Chunk[] {
  const writer = new ChunkWriter(state)
  writer.closeText()
  const runs = settleRunning(writer, end)
  const waiting = isWaiting(state) || runs
  if (!waiting) stopSteps(writer)
  const { hasResults } = writer.state
  writer.closeStep()
  const error = state.error ?? (end === 'completed' ? findSilence(state) : undefined)
  if (error) return [...writer.chunks, ...createErrorChunks(state, error)]
  if (hasResults && !waiting) writer.chunks.push(...EMPTY_STEP)
  if (end === 'stopped') writer.chunks.push({ type: 'abort' })
  const finishReason = waiting ? 'tool-calls' : (state.replyEnd?.finishReason ?? 'stop')
  // Clients merge metadata, so a message that was incomplete and has continued since says so.
  const isNoted = !waiting && end !== 'stopped' && state.wasIncomplete
  writer.chunks.push({
    type: 'finish',
    finishReason,
    messageMetadata: {
      ...readMetadata(state),
      ...(isNoted && { finishReason }),
      ...readStop(state, end),
    },
  })
  return writer.chunks
}

/** TU880: clients merge metadata, so a turn that has continued after a stop says so. */
function readStop({ stop }: Translation, end: TurnEnd): MessageMetadata {
  if (end === 'stopped') return { stopped: true }
  return stop === 'none' ? {} : { stopped: stop === 'stopped' }
}

/** Settles calls without a result, unless they are left running. Returns whether calls are left running. */
function settleRunning(writer: ChunkWriter, end: TurnEnd): boolean {
  const open = [...writer.state.calls].filter(([, call]) => call.state === 'running')
  if (end === 'left') return open.length > 0
  for (const [toolCallId] of open) writer.settle(toolCallId, { errorText: NO_RESULT[end] })
  return false
}

/**
 * CH4: clients that send automatically would resend a message that ends with a tool result. An empty step after it
 * prevents that. The metadata of `finish` makes clients notice the step.
 */
const EMPTY_STEP = [{ type: 'start-step' }, { type: 'finish-step' }] as const

const NO_RESULT: Record<Exclude<TurnEnd, 'left'>, string> = {
  completed: 'The call ended without a result.',
  stopped: STOPPED.error,
}

function toError(code: ErrorCode): TurnError {
  return new ProtocolError(code).toJSON().error
}

/**
 * Whether Gemini blocked the prompt of a model call, for example because of the result of a tool. ADK 2.0.0 drops the reason: the last
 * event of the streamed call only has its usage, without any output, content or finish reason. Events of remote agents may have the
 * usage of a call that has output.
 */
function isBlockedCall({
  partial,
  content,
  usageMetadata,
  finishReason,
  errorCode,
}: Event): boolean {
  const hasEnded = partial === false && usageMetadata !== undefined
  const hasOutput = Boolean(content) || Boolean(usageMetadata?.candidatesTokenCount)
  return hasEnded && !hasOutput && finishReason === undefined && errorCode === undefined
}

/**
 * Returns the error of a turn in which the model has ended its reply and has said nothing. The usage of a call without a finish reason
 * is a blocked prompt: a call that is not streamed has no event that says it has ended.
 */
function findSilence({ repliedStep, calls, usage, replyEnd }: Translation): TurnError | undefined {
  if (repliedStep !== undefined || calls.size > 0) return undefined
  if (replyEnd) return replyEnd.ifSilent && toError(replyEnd.ifSilent)
  return usage.current === undefined ? undefined : toError('model-blocked')
}

// Clients abandon the stream at the error chunk, so the metadata comes first.
function createErrorChunks(state: Translation, error: TurnError): Chunk[] {
  return [
    { type: 'message-metadata', messageMetadata: { ...readMetadata(state), error } },
    { type: 'error', errorText: error.message },
  ]
}

function readMetadata({ usage, modelVersion, citations, audio }: Translation): MessageMetadata {
  const total = totalUsage(usage)
  return {
    ...(total && { usage: total }),
    ...(modelVersion !== undefined && { modelVersion }),
    ...(citations.length > 0 && { citations }),
    ...(audio && { audio }),
  }
}

/** Writes the progress of agents with steps, if an event has changed it. */
function translateSteps(writer: ChunkWriter, { progress: note }: EventNotes): void {
  const { progress } = writer.state
  if (note) {
    const known = progress.get(note.id)
    // Only the first note of a run has the edges, and an AI SDK client replaces the whole part.
    const edges = note.edges ?? known?.note.edges
    const next = { note: { ...note, ...(edges && { edges }) }, written: known?.written }
    writer.update({ progress: new Map(progress).set(note.id, next) })
  }
  for (const [id, known] of writer.state.progress) {
    const data = toPart(known.note, writer.state)
    if (isDeepStrictEqual(data, known.written)) continue
    const chunk = { type: 'data-steps', id, data } as const
    if (known.written) writer.replacePart(chunk)
    else writer.addPart(chunk)
    const next = { note: known.note, written: data }
    writer.update({ progress: new Map(writer.state.progress).set(id, next) })
  }
}

/** MP1020: a step that runs when the turn ends does not go on. The turn has failed, was stopped, or its server was killed. */
function stopSteps(writer: ChunkWriter): void {
  for (const [id, { written }] of writer.state.progress) {
    if (!written?.steps.some(({ state }) => state === 'running')) continue
    const steps = written.steps.map((step) =>
      step.state === 'running' ? { ...step, state: 'stopped' as const } : step,
    )
    writer.replacePart({ type: 'data-steps', id, data: { ...written, steps } })
  }
}

function toPart({ id: _id, steps, ...rest }: ProgressNote, state: Translation): StepProgress {
  const { agent } = rest
  return {
    ...rest,
    steps: steps.map((step) =>
      step.state === 'running' && isWaitingIn(state, agent, step.name)
        ? { ...step, state: 'waiting' }
        : step,
    ),
  }
}

/** Whether a call waits in a step of an agent. */
function isWaitingIn({ calls }: Translation, agentName: string, stepName: string): boolean {
  return [...calls.values()].some(
    (call) =>
      isCallWaiting(call) &&
      call.steps?.some(({ agent, step }) => agent === agentName && step === stepName),
  )
}
