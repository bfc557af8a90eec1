import type { BidiEvent } from '../../protocol/bidi-events.ts'
import { serialiseChunk } from '../../protocol/chunk.ts'
import type { ClientFrame, FrameFault } from '../../protocol/client-frame.ts'
import { readClientFrame } from '../../protocol/client-frame.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ServerFrame } from '../../protocol/server-frame.ts'
import { chunkFrame, chunkFrameHead, serialiseFrame } from '../../protocol/server-frame.ts'
import type { Sink } from '../../turns/log-reader.ts'

/** A frame of a client, in either dialect. */
export type IncomingFrame = ClientFrame | BidiEvent

/** Reads and writes the text frames of a socket. */
export interface SocketCodec {
  readonly name: 'json' | 'bidi'
  readonly read: (bytes: Uint8Array) => IncomingFrame | { readonly fault: FrameFault }
  /** Returns an empty list for frames that this dialect does not have. */
  readonly encode: (frame: ServerFrame) => readonly string[]
  /** Refuses a frame. */
  readonly refuse: (fault: FrameFault) => readonly string[]
  /** Reorders the chunks of a turn. `seen` is the approval or call that the client has responded to. Default: no change. */
  readonly toOrder?: (sink: Sink, seen: string | undefined) => Sink
  /** Returns the sink that writes a turn for a request. */
  readonly toSink: (requestId: string, write: WriteFrame, onEnd: () => void) => Sink
}

/** JSON frames, as in the AI SDK's `WebSocketChatTransport`. */
export const jsonCodec: SocketCodec = {
  name: 'json',
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

/** Writes one frame. Returns false if the socket must drain first. */
export type WriteFrame = (frame: string) => boolean

/** Writes a turn as numbered frames of one request. */
function toJsonFrames(requestId: string, write: WriteFrame, onEnd: () => void): Sink {
  const head = chunkFrameHead(requestId)
  let sequence = 0
  return {
    write: (json) => write(chunkFrame(head, sequence++, json)),
    pass: (audio) => void write(chunkFrame(head, sequence++, serialiseChunk(audio))),
    end: () => {
      onEnd()
      write(serialiseFrame({ type: 'end', requestId }))
    },
    // The socket was too slow for this turn; other turns on it may continue.
    abandon: () => {
      onEnd()
      const { code, message: errorText } = new ProtocolError('too-slow')
      write(serialiseFrame({ type: 'error', requestId, errorText, code }))
    },
  }
}
