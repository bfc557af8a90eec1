import type { BidiEvent } from '../../protocol/bidi-events.ts'
import { readBidiEvent, BIDI_SUBPROTOCOL } from '../../protocol/bidi-events.ts'
import type { Chunk } from '../../protocol/chunk.ts'
import { isResult, serialiseChunk } from '../../protocol/chunk.ts'
import type { ClientFrame, FrameFault } from '../../protocol/client-frame.ts'
import { readClientFrame } from '../../protocol/client-frame.ts'
import { ProtocolError, toProtocolError } from '../../protocol/errors.ts'
import type { ServerFrame } from '../../protocol/server-frame.ts'
import { chunkFrame, chunkFrameHead, serialiseFrame } from '../../protocol/server-frame.ts'
import { SSE_DONE, sseFrame } from '../../protocol/sse.ts'
import { ChatId } from '../../protocol/stream-request.ts'
import type { ChunkPositions } from '../../turns/chunk-positions.ts'
import type { Sink } from '../../turns/log-reader.ts'
import type { Exchange } from '../http/exchange.ts'
import { readDialect } from '../http/exchange.ts'

/** A frame of a client, in either dialect. */
export type IncomingFrame = ClientFrame | BidiEvent

/** Reads and writes the text frames of a socket. */
export interface SocketCodec {
  readonly read: (bytes: Uint8Array) => IncomingFrame | { readonly fault: FrameFault }
  /** Returns an empty list for frames that this dialect does not have. */
  readonly encode: (frame: ServerFrame) => readonly string[]
  /** Refuses a frame. */
  readonly refuse: (fault: FrameFault) => readonly string[]
  /** Reorders the chunks of a turn. `seen` is the approval or call that the client has responded to. Default: no change. */
  readonly toOrder?: (sink: Sink, seen: string | undefined) => Sink
  /** Returns the sink that writes a turn for a request. */
  readonly toSink: (requestId: string, writing: FrameWriting) => Sink
}

/** How a turn is written to a socket. */
interface FrameWriting {
  /** Writes one frame. Returns false if the socket must drain first. */
  readonly write: (frame: string) => boolean
  /** Called when the turn ends or the reader is too slow. */
  readonly onEnd: () => void
  /** The positions, if the client asks for them. */
  readonly positions: ChunkPositions | undefined
}

/** JSON frames, as in the AI SDK's `WebSocketChatTransport`. */
export const jsonCodec: SocketCodec = {
  read: readClientFrame,
  encode: (frame) => [serialiseFrame(frame)],
  refuse: ({ frame, requestId, code, message }) => [
    serialiseFrame(
      requestId === undefined
        ? { type: 'refused', frame, code, message }
        : { type: 'error', requestId, errorText: message, code },
    ),
  ],
  toSink: toJsonFrames,
}

/** Returns the number of audio bytes in a text frame, or undefined for frames without audio. */
export function audioBytesIn(frame: IncomingFrame): number | undefined {
  if (frame.type === 'audio') return Buffer.byteLength(frame.data, 'base64')
  if (frame.type === 'bidi' && frame.event === 'audio_chunk')
    return Buffer.byteLength(frame.chunk, 'base64')
  return undefined
}

/** Writes a turn as numbered frames of one request. */
function toJsonFrames(requestId: string, { write, onEnd, positions }: FrameWriting): Sink {
  const head = chunkFrameHead(requestId)
  let sequence = 0
  return {
    write: (json, entry) =>
      write(chunkFrame(head, sequence++, { json, position: positions?.next(entry) })),
    pass: (audio) => void write(chunkFrame(head, sequence++, { json: serialiseChunk(audio) })),
    end: () => {
      onEnd()
      const position = positions?.ofChat
      write(serialiseFrame({ type: 'end', requestId, ...(position && { position }) }))
    },
    // The socket was too slow for this turn; other turns on it may continue.
    abandon: () => {
      onEnd()
      const { code, message: errorText } = new ProtocolError('too-slow')
      write(serialiseFrame({ type: 'error', requestId, errorText, code }))
    },
  }
}

interface BidiCodecOptions {
  /** Whether the client reads a turn. */
  readonly isReading: () => boolean
  /** Whether a stream stays open while approvals are requested, so that several can follow each other in it. */
  readonly hasLiveModel: boolean
}

/** Text frames `data: …`, as clients of the earlier Python server expect them: one stream, with `[DONE]` at the end of a turn. */
export function openBidiCodec({ isReading, hasLiveModel }: BidiCodecOptions): SocketCodec {
  return {
    read: readBidiEvent,
    encode: toTransientFrames,
    refuse: (fault) =>
      isReading() ? [transientFrame('refused', toRefusal(fault))] : toErrorFrames(fault),
    toOrder: (sink, seen) => toCallByCall(hasLiveModel ? toTextLast(sink) : sink, seen),
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
 * Writes the text of a turn at its end (BD1080). Clients of the earlier system send no further response once their message has text and a
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
const OF_CALL = /^\{"type":"(?:tool-|data-approval"|data-browser-call")/

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
  if (chunk.type === 'data-approval' || chunk.type === 'data-browser-call') {
    const { toolCallId } = chunk.data
    return {
      toolCallId,
      approvalId: 'approvalId' in chunk.data ? chunk.data.approvalId : undefined,
    }
  }
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

const BIDI = 'bidi'

/**
 * Whether a client requests the bidi dialect: with the subprotocol, with `?dialect=bidi` (alone or with another dialect), or with
 * `?chatId=` and no subprotocol. The frames of other clients carry their chat ids.
 */
export function asksForBidi({ url }: Exchange, subprotocol: string): boolean {
  if (subprotocol !== '') return subprotocol === BIDI_SUBPROTOCOL || dialectsIn(url).includes(BIDI)
  return url.searchParams.has('chatId') || dialectsIn(url).includes(BIDI)
}

/** Returns the request without `bidi` in its dialects: bidi frames can carry turns of any dialect. */
export function withoutBidi(exchange: Exchange): Exchange {
  const rest = dialectsIn(exchange.url).filter((name) => name !== BIDI)
  const url = new URL(exchange.url)
  url.searchParams.delete('dialect')
  if (rest.length > 0) url.searchParams.set('dialect', rest.join(','))
  const { method, headers, readBody } = exchange
  return { method, headers, readBody, url }
}

/** Returns an error if the dialect or the chat id in a socket's URL is invalid. */
export function findUrlFault(exchange: Exchange): ProtocolError | undefined {
  try {
    readDialect(withoutBidi(exchange))
  } catch (thrown) {
    return toProtocolError(thrown)
  }
  const chatId = exchange.url.searchParams.get('chatId') ?? undefined
  const issue = ChatId.optional().safeParse(chatId).error?.issues[0]
  return issue && new ProtocolError('bad-request', { message: issue.message })
}

function dialectsIn(url: URL): string[] {
  return url.searchParams.getAll('dialect').flatMap((value) => value.split(','))
}
