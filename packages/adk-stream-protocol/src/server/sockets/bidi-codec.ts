import { readBidiEvent } from '../../protocol/bidi-events.ts'
import type { Chunk } from '../../protocol/chunk.ts'
import { serialiseChunk } from '../../protocol/chunk.ts'
import type { FrameFault } from '../../protocol/client-frame.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ServerFrame } from '../../protocol/server-frame.ts'
import { SSE_DONE, sseFrame } from '../../protocol/sse.ts'
import type { SocketCodec, WriteFrame } from './socket-codec.ts'
import type { Sink } from '../../turns/attachment.ts'

/** Text frames `data: …`, as the clients of the earlier system speak them: one stream, and `[DONE]` at the end of a turn. */
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

/** Where a socket reads a turn as text frames. */
function toTextFrames(write: WriteFrame, onEnd: () => void): Sink {
  const writeChunk = (json: string): boolean => write(sseFrame(json))
  const begun = new Set<string>()
  return {
    write: (json) => {
      // Seed 004: a question stands in a step of its own, which begins behind the call and ends with the question. Clients of that
      // kind take its end for the moment from which they may answer (BD4).
      if (json.startsWith('{"type":"tool-approval-request"'))
        return [START_STEP, json, FINISH_STEP].map(writeChunk).every(Boolean)
      // A call that is handed to the client is not shown again (BT130): behind the step of its question it would be another call.
      return isShownAgain(json, begun) || writeChunk(json)
    },
    pass: (sound) => void write(sseFrame(serialiseChunk(sound))),
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

/** Whether a chunk is the input of a call that was shown before. `begun` holds the calls whose input is still to come. */
function isShownAgain(json: string, begun: Set<string>): boolean {
  if (!json.startsWith('{"type":"tool-input-')) return false
  // The log holds what `serialiseChunk` made of a chunk.
  const { type, toolCallId } = JSON.parse(json) as { type: string; toolCallId: string }
  if (type === 'tool-input-start') begun.add(toolCallId)
  return type === 'tool-input-available' && !begun.delete(toolCallId)
}

const START_STEP = serialiseChunk({ type: 'start-step' } satisfies Chunk)
const FINISH_STEP = serialiseChunk({ type: 'finish-step' } satisfies Chunk)

/** What is told beside the turns. A client of this kind waits for no acknowledgement: the stream goes on, and that is the answer. */
function toTransientFrames(frame: ServerFrame): readonly string[] {
  if (frame.type === 'pong') return [pongFrame(frame.nonce)]
  if (frame.type === 'user-message') return [transientFrame('user-message', frame.message)]
  if (frame.type === 'interrupted') return [transientFrame('interrupted', {})]
  return []
}

/** As the earlier server answered: bare, and with the time that it was given. */
function pongFrame(timestamp = 'null'): string {
  return `{"type":"pong","timestamp":${timestamp}}`
}

/** A part that no message keeps, so that it may come at any time. */
function transientFrame(name: string, data: unknown): string {
  return sseFrame(JSON.stringify({ type: `data-${name}`, data, transient: true }))
}

function toRefusal({ frame: event, code, message }: FrameFault) {
  return { event, code, message }
}

/** An `error` ends the stream of a client of the AI SDK, so it is only told where none is open; who sent a message waits for its end. */
function toErrorFrames({ frame: event, message }: FrameFault): readonly string[] {
  const errorText = `${event}: ${message}`
  const error = sseFrame(serialiseChunk({ type: 'error', errorText }))
  return event === 'message' ? [error, SSE_DONE] : [error]
}

/** The call that a client is shown now, by what is known of it. */
interface Shown {
  readonly toolCallId: string | undefined
  readonly approvalId: string | undefined
}

type State =
  | { readonly name: 'open' }
  /** A call has no result yet: other calls wait for it. */
  | { readonly name: 'calling'; readonly call: Shown }
  /** A person is asked about the call: everything else waits for its result. */
  | { readonly name: 'asking'; readonly call: Shown }

/**
 * Shows a turn call by call (BD100). Clients of text frames close their stream at a question and drop what comes before their answer, so
 * nothing but the question's own outcome may follow it. `seen` is the question or call that the client has answered already.
 */
export function toCallByCall(sink: Sink, seen: string | undefined): Sink {
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

// Deltas, which come by the thousand, are not parsed.
const OF_CALL = /^\{"type":"(?:tool-|data-approval"|data-browser-call")/

class CallByCall {
  readonly #write: (json: string) => boolean
  #state: State = { name: 'open' }
  #waiting: string[] = []

  constructor(write: (json: string) => boolean, seen: string | undefined) {
    this.#write = write
    // Which of the two it names is seen by its outcome.
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
    // A decision names both: the result has the id of the call alone.
    else if (state.name === 'asking' && call.approvalId !== undefined)
      this.#state = { name: 'asking', call }
    return written
  }

  /** The turn is over: nothing that waits would come later. */
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
 * Leaves out questions that were decided elsewhere while they waited here. A denied call ends as an error then: the client has no decision
 * of its own to show.
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
