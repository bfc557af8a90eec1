import type { BidiEvent } from '../../protocol/bidi-events.ts'
import { serialiseChunk } from '../../protocol/chunk.ts'
import type { ClientFrame, FrameFault } from '../../protocol/client-frame.ts'
import { readClientFrame } from '../../protocol/client-frame.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ServerFrame } from '../../protocol/server-frame.ts'
import { chunkFrame, chunkFrameHead, serialiseFrame } from '../../protocol/server-frame.ts'
import type { Sink } from '../../turns/attachment.ts'

/** What a client may say, in whichever words. */
export type IncomingFrame = ClientFrame | BidiEvent

/** How a client and the server put what they say into text frames. */
export interface SocketCodec {
  readonly name: 'json' | 'bidi'
  readonly read: (bytes: Uint8Array) => IncomingFrame | { readonly fault: FrameFault }
  /** Nothing for what this kind of client is not told. */
  readonly encode: (frame: ServerFrame) => readonly string[]
  /** Says that a frame cannot be used, by its name. */
  readonly refuse: (fault: FrameFault) => readonly string[]
  /** Puts a turn into the order that this kind of client can read. `seen` is the question or call that it has answered. Default: as it is. */
  readonly toOrder?: (sink: Sink, seen: string | undefined) => Sink
  /** Where a turn is written that is read under a request. */
  readonly toSink: (requestId: string, write: WriteFrame, onEnd: () => void) => Sink
}

/** JSON frames, as the AI SDK's `WebSocketChatTransport` has them. */
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

/** How many bytes of sound a frame carries in its text; none for most. */
export function audioBytesIn(frame: IncomingFrame): number | undefined {
  if (frame.type === 'audio') return Buffer.byteLength(frame.data, 'base64')
  if (frame.type === 'bidi' && frame.event === 'audio_chunk')
    return Buffer.byteLength(frame.chunk, 'base64')
  return undefined
}

/** Writes one frame. False when the socket wants no more until it has drained. */
export type WriteFrame = (frame: string) => boolean

/** Where a socket reads a turn: as numbered frames of one request. */
export function toJsonFrames(requestId: string, write: WriteFrame, onEnd: () => void): Sink {
  const head = chunkFrameHead(requestId)
  let sequence = 0
  return {
    write: (json) => write(chunkFrame(head, sequence++, json)),
    pass: (sound) => void write(chunkFrame(head, sequence++, serialiseChunk(sound))),
    end: () => {
      onEnd()
      write(serialiseFrame({ type: 'end', requestId }))
    },
    // The socket may have been too slow for this answer alone; the others on it go on.
    abandon: () => {
      onEnd()
      const { code, message: errorText } = new ProtocolError('too-slow')
      write(serialiseFrame({ type: 'error', requestId, errorText, code }))
    },
  }
}
