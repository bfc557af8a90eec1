import { readBidiEvent } from '../../protocol/bidi-events.ts'
import type { Chunk } from '../../protocol/chunk.ts'
import { serialiseChunk } from '../../protocol/chunk.ts'
import type { FrameFault } from '../../protocol/client-frame.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ServerFrame } from '../../protocol/server-frame.ts'
import { SSE_DONE, sseFrame } from '../../protocol/sse.ts'
import type { Sink } from '../../turns/attachment.ts'
import { toCallByCall } from './call-by-call.ts'
import type { SocketCodec } from './socket-codec.ts'
import type { WriteFrame } from './turn-frames.ts'

/** Text frames `data: …`, as the clients of the earlier system speak them: one stream, and `[DONE]` at the end of a turn. */
export function openBidiCodec(isReading: () => boolean): SocketCodec {
  return {
    name: 'bidi',
    read: readBidiEvent,
    tell: tellBeside,
    refuse: (fault) =>
      isReading() ? [besideFrame('refused', toRefusal(fault))] : toErrorFrames(fault),
    toOrder: toCallByCall,
    toSink: (_requestId, write, onOver) => toTextFrames(write, onOver),
  }
}

/** Where a socket reads a turn as text frames. */
function toTextFrames(write: WriteFrame, onOver: () => void): Sink {
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
      onOver()
      write(SSE_DONE)
    },
    abandon: () => {
      onOver()
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
function tellBeside(frame: ServerFrame): readonly string[] {
  if (frame.type === 'pong') return [pongFrame(frame.nonce)]
  if (frame.type === 'user-message') return [besideFrame('user-message', frame.message)]
  if (frame.type === 'interrupted') return [besideFrame('interrupted', {})]
  return []
}

/** As the earlier server answered: bare, and with the time that it was given. */
function pongFrame(timestamp = 'null'): string {
  return `{"type":"pong","timestamp":${timestamp}}`
}

/** A part that no message keeps, so that it may come at any time. */
function besideFrame(name: string, data: unknown): string {
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
