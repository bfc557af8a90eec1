import { CALL_OFFER, readOffer } from '../../../protocol/call-offers.ts'
import type { Chunk } from '../../../protocol/chunk.ts'
import { isResult, serialiseChunk } from '../../../protocol/chunk.ts'
import type { FrameFault } from '../../../protocol/client-frame.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { ServerFrame } from '../../../protocol/server-frame.ts'
import { SSE_DONE, sseFrame } from '../../../protocol/sse.ts'
import type { Sink } from '../../../turns/log-reader.ts'
import type { FrameCodec, FrameWriting } from '../../sockets/frame-codec.ts'
import type { BidiEvent } from './bidi-events.ts'
import { readBidiEvent } from './bidi-events.ts'

interface BidiCodecOptions {
  readonly handle: (event: BidiEvent) => Promise<void>
  /** Whether the client reads a turn. */
  readonly isReading: () => boolean
  /** Whether a stream stays open while approvals are requested, so that several can follow each other in it. */
  readonly keepsTurnsOpen: boolean
}

/** Text frames `data: …`, as clients of the earlier Python server expect them: one stream, with `[DONE]` at the end of a turn. */
export function openBidiCodec({ handle, isReading, keepsTurnsOpen }: BidiCodecOptions): FrameCodec {
  return {
    read: (bytes) => {
      const event = readBidiEvent(bytes)
      if ('fault' in event) return event
      const audioBytes =
        event.event === 'audio_chunk' ? Buffer.byteLength(event.chunk, 'base64') : undefined
      return { type: 'foreign', name: event.event, audioBytes, handle: () => handle(event) }
    },
    encode: toTransientFrames,
    refuse: (fault) =>
      isReading() ? [transientFrame('refused', toRefusal(fault))] : toErrorFrames(fault),
    toOrder: (sink, seen) => toCallByCall(keepsTurnsOpen ? toTextLast(sink) : sink, seen),
    toSink: (_requestId, writing) => toTextFrames(writing),
  }
}

/** Writes a turn as bidi text frames. */
function toTextFrames({ write, onEnd }: FrameWriting): Sink {
  const writeChunk = (json: string): boolean => write(sseFrame(json))
  const started = new Set<string>()
  return {
    write: (json) => {
      // An approval request has a step of its own, which starts after the call. Bidi clients respond when that step ends (BD4).
      if (json.startsWith('{"type":"tool-approval-request"'))
        return [START_STEP, json, FINISH_STEP].map(writeChunk).every(Boolean)
      // The input of an approved browser call is sent twice (BT130). In a new step, a bidi client would take it for another call.
      return isShownAgain(json, started) || writeChunk(json)
    },
    pass: (audio) => void write(sseFrame(serialiseChunk(audio))),
    end: () => {
      onEnd()
      write(SSE_DONE)
    },
    abandon: () => {
      onEnd()
      const { message: errorText } = new ProtocolError('too-slow')
      write(sseFrame(serialiseChunk({ type: 'error', errorText })))
      write(SSE_DONE)
    },
  }
}

/** Whether a chunk repeats the input of a call. `started` holds the calls whose input has not arrived yet. */
function isShownAgain(json: string, started: Set<string>): boolean {
  if (!json.startsWith('{"type":"tool-input-')) return false
  // The log holds what `serialiseChunk` made of a chunk.
  const { type, toolCallId } = JSON.parse(json) as { type: string; toolCallId: string }
  if (type === 'tool-input-start') started.add(toolCallId)
  return type === 'tool-input-available' && !started.delete(toolCallId)
}

const START_STEP = serialiseChunk({ type: 'start-step' } satisfies Chunk)
const FINISH_STEP = serialiseChunk({ type: 'finish-step' } satisfies Chunk)

/** Converts frames that belong to no turn. A bidi client gets no acknowledgement: its stream continues instead. */
function toTransientFrames(frame: ServerFrame): readonly string[] {
  if (frame.type === 'pong') return [pongFrame(frame.nonce)]
  if (frame.type === 'user-message') return [transientFrame('user-message', frame.message)]
  if (frame.type === 'interrupted') return [transientFrame('interrupted', {})]
  return []
}

/** The format of the earlier Python server: no `data:` prefix, and the timestamp of the ping. */
function pongFrame(timestamp = 'null'): string {
  return `{"type":"pong","timestamp":${timestamp}}`
}

/** A transient data part. No message stores it, so it may arrive at any time. */
function transientFrame(name: string, data: unknown): string {
  return sseFrame(JSON.stringify({ type: `data-${name}`, data, transient: true }))
}

function toRefusal({ frame: event, code, message }: FrameFault) {
  return { event, code, message }
}

/** An `error` chunk ends the stream of an AI SDK client, so it is sent only if no stream is open. After a `message`, `[DONE]` ends it. */
function toErrorFrames({ frame: event, message }: FrameFault): readonly string[] {
  const errorText = `${event}: ${message}`
  const error = sseFrame(serialiseChunk({ type: 'error', errorText }))
  return event === 'message' ? [error, SSE_DONE] : [error]
}

/** The call that the client is shown. Only one of its ids may be known. */
interface Shown {
  readonly toolCallId: string | undefined
  readonly approvalId: string | undefined
}

type State =
  | { readonly name: 'open' }
  /** A call has no result yet. Other calls wait for it. */
  | { readonly name: 'calling'; readonly call: Shown }
  /** The call needs approval. All other chunks wait for its result. */
  | { readonly name: 'asking'; readonly call: Shown }

/**
 * Writes a turn one call at a time (BD100). Bidi clients close their stream at an approval request and drop all chunks until they have
 * responded, so only the outcome of that approval may follow it. `seen` is the approval or call that the client has responded to.
 */
function toCallByCall(sink: Sink, seen: string | undefined): Sink {
  // The id may be that of the approval or of the call.
  let state: State =
    seen === undefined
      ? { name: 'open' }
      : { name: 'asking', call: { toolCallId: seen, approvalId: seen } }
  const waiting: string[] = []

  const write = (json: string): boolean => {
    if (START.test(json)) return sink.write(json)
    const chunk = toCallChunk(json)
    const call = chunk && callIn(chunk)
    const isOther = state.name !== 'open' && call !== undefined && !isSame(state.call, call)
    const mustWait = state.name === 'asking' ? !call || isOther : isOther
    if (mustWait) {
      waiting.push(json)
      return true
    }
    const written = sink.write(json)
    if (!chunk || !call) return written
    if (isResult(chunk)) {
      state = { name: 'open' }
      return withoutDecided(waiting.splice(0)).map(write).every(Boolean) && written
    }
    state = nextState(state, chunk, call)
    return written
  }

  return {
    ...sink,
    write,
    end: () => {
      // At the end of the turn, all waiting chunks are written.
      for (const json of waiting.splice(0)) sink.write(json)
      sink.end()
    },
  }
}

// CH2: also for a client that has responded on another socket.
const START = /^\{"type":"start"/

/**
 * Writes the text of a turn at its end (BD100). Clients of the earlier system send no further response once their message has text and a
 * result, and it is not known before the end whether another approval request follows.
 */
function toTextLast(sink: Sink): Sink {
  const texts: string[] = []
  let step: 'open' | 'ending' | 'closed' = 'closed'

  const setStep = (json: string): boolean => {
    step = json === START_STEP ? 'open' : 'closed'
    return sink.write(json)
  }
  const writeTexts = (): void => {
    if (texts.length > 0 && step === 'closed') setStep(START_STEP)
    for (const json of texts.splice(0)) sink.write(json)
    if (step !== 'closed') setStep(FINISH_STEP)
  }

  return {
    ...sink,
    write: (json) => {
      if (TEXT.test(json)) {
        texts.push(json)
        return true
      }
      if (json === FINISH_STEP && texts.length > 0) {
        // The text may still belong into this step.
        step = 'ending'
        return true
      }
      if (TURN_END.test(json)) writeTexts()
      else if (step === 'ending') setStep(FINISH_STEP)
      return json === START_STEP || json === FINISH_STEP ? setStep(json) : sink.write(json)
    },
    end: () => {
      if (texts.length > 0) writeTexts()
      sink.end()
    },
  }
}

const TEXT = /^\{"type":"text-/
const TURN_END = /^\{"type":"(?:finish"|error"|abort"|message-metadata")/

/** Returns the state after a chunk of a call, other than its result, was written. */
function nextState(state: State, { type }: Chunk, call: Shown): State {
  if (type === 'tool-approval-request') return { name: 'asking', call }
  if (state.name === 'open') return { name: 'calling', call }
  // A decision carries both ids; the result carries only the id of the call.
  if (state.name === 'asking' && call.approvalId !== undefined) return { name: 'asking', call }
  return state
}

// Deltas are frequent, so they are not parsed.
const OF_CALL = new RegExp(`^\\{"type":"(?:tool-|data-approval"|${CALL_OFFER}")`)

/**
 * Removes approval requests that were decided elsewhere while they waited here. A denied call then ends with an error, because the client
 * has no decision of its own to show.
 */
function withoutDecided(waiting: readonly string[]): string[] {
  const chunks = waiting.map((json) => ({ json, chunk: toCallChunk(json) }))
  const decided = new Set(
    chunks.flatMap(({ chunk }) => (chunk && isResult(chunk) ? callIn(chunk)?.toolCallId : [])),
  )
  return chunks.flatMap(({ json, chunk }) => {
    if (!chunk || !decided.has(callIn(chunk)?.toolCallId)) return [json]
    if (chunk.type === 'tool-approval-request') return []
    if (chunk.type !== 'tool-output-denied') return [json]
    const { toolCallId } = chunk
    const errorText = 'Denied. It did not run.'
    return [serialiseChunk({ type: 'tool-output-error', toolCallId, errorText })]
  })
}

function toCallChunk(json: string): Chunk | undefined {
  // The log holds what `serialiseChunk` made of a chunk.
  return OF_CALL.test(json) ? (JSON.parse(json) as Chunk) : undefined
}

function callIn(chunk: Chunk): Shown | undefined {
  if (chunk.type === 'data-approval') return chunk.data
  const offered = readOffer(chunk)
  if (offered !== undefined) return { toolCallId: offered, approvalId: undefined }
  if (!('toolCallId' in chunk)) return undefined
  const approvalId = chunk.type === 'tool-approval-request' ? chunk.approvalId : undefined
  return { toolCallId: chunk.toolCallId, approvalId }
}

function isSame(one: Shown, other: Shown): boolean {
  return (
    one.toolCallId === other.toolCallId ||
    (one.approvalId !== undefined && one.approvalId === other.approvalId)
  )
}
