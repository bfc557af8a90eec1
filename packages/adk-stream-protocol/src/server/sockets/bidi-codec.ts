import { readBidiEvent } from '../../protocol/bidi-events.ts'
import type { Chunk } from '../../protocol/chunk.ts'
import { serialiseChunk } from '../../protocol/chunk.ts'
import type { FrameFault } from '../../protocol/client-frame.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ServerFrame } from '../../protocol/server-frame.ts'
import { SSE_DONE, sseFrame } from '../../protocol/sse.ts'
import type { SocketCodec, WriteFrame } from './socket-codec.ts'
import type { Sink } from '../../turns/log-reader.ts'

/** Text frames `data: …`, as clients of the earlier Python server expect them: one stream, with `[DONE]` at the end of a turn. */
export function openBidiCodec(isReading: () => boolean): SocketCodec {
  return {
    name: 'bidi',
    read: readBidiEvent,
    encode: toTransientFrames,
    refuse: (fault) =>
      isReading() ? [transientFrame('refused', toRefusal(fault))] : toErrorFrames(fault),
    toOrder: toCallByCall,
    toSink: (_requestId, write, onEnd) => toTextFrames(write, onEnd),
  }
}

/** Writes a turn as bidi text frames. */
function toTextFrames(write: WriteFrame, onEnd: () => void): Sink {
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
  const calls = new CallByCall((json) => sink.write(json), seen)
  return {
    ...sink,
    write: (json) => calls.write(json),
    end: () => {
      calls.flush()
      sink.end()
    },
  }
}

// Deltas are frequent, so they are not parsed.
const OF_CALL = /^\{"type":"(?:tool-|data-approval"|data-browser-call")/

class CallByCall {
  readonly #write: (json: string) => boolean
  #state: State = { name: 'open' }
  #waiting: string[] = []

  constructor(write: (json: string) => boolean, seen: string | undefined) {
    this.#write = write
    // The id may be that of the approval or of the call.
    if (seen !== undefined)
      this.#state = { name: 'asking', call: { toolCallId: seen, approvalId: seen } }
  }

  write(json: string): boolean {
    const state = this.#state
    const chunk = toCallChunk(json)
    const call = chunk && callIn(chunk)
    const isOther = state.name !== 'open' && call !== undefined && !isSame(state.call, call)
    const mustWait = state.name === 'asking' ? !call || isOther : isOther
    if (mustWait) {
      this.#waiting.push(json)
      return true
    }
    const written = this.#write(json)
    if (!chunk || !call) return written
    if (isResult(chunk)) {
      this.#state = { name: 'open' }
      return this.#writeWaiting() && written
    }
    if (chunk.type === 'tool-approval-request') this.#state = { name: 'asking', call }
    else if (state.name === 'open') this.#state = { name: 'calling', call }
    // A decision carries both ids; the result carries only the id of the call.
    else if (state.name === 'asking' && call.approvalId !== undefined)
      this.#state = { name: 'asking', call }
    return written
  }

  /** Writes all waiting chunks at the end of the turn. */
  flush(): void {
    for (const json of this.#waiting.splice(0)) this.#write(json)
  }

  #writeWaiting(): boolean {
    return withoutDecided(this.#waiting.splice(0))
      .map((json) => this.write(json))
      .every(Boolean)
  }
}

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

function isResult({ type }: Chunk): boolean {
  return type.startsWith('tool-output-')
}
