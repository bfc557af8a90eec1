import { serialiseChunk } from '../../protocol/chunk.ts'
import type { ClientFrame, FrameFault } from '../../protocol/client-frame.ts'
import { readClientFrame } from '../../protocol/client-frame.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ServerFrame } from '../../protocol/server-frame.ts'
import { chunkFrame, chunkFrameHead, serialiseFrame } from '../../protocol/server-frame.ts'
import type { ChunkPositions } from '../../turns/chunk-positions.ts'
import type { Sink } from '../../turns/log-reader.ts'

/** A frame of another protocol than that of JSON frames. It brings its handler. */
interface ForeignFrame {
  readonly type: 'foreign'
  readonly name: string
  /** The number of audio bytes in it, if it carries audio. */
  readonly audioBytes: number | undefined
  readonly handle: () => Promise<void>
}

/** A frame of a client. */
export type IncomingFrame = ClientFrame | ForeignFrame

/** Reads and writes the text frames of a socket. */
export interface FrameCodec {
  readonly read: (bytes: Uint8Array) => IncomingFrame | { readonly fault: FrameFault }
  /** Returns an empty list for frames that its protocol does not have. */
  readonly encode: (frame: ServerFrame) => readonly string[]
  /** Refuses a frame. */
  readonly refuse: (fault: FrameFault) => readonly string[]
  /** Reorders the chunks of a turn. `seen` is the approval or call that the client has responded to. Default: no change. */
  readonly toOrder?: (sink: Sink, seen: string | undefined) => Sink
  /** Returns the sink that writes a turn for a request. */
  readonly toSink: (requestId: string, writing: FrameWriting) => Sink
}

/** How a turn is written to a socket. */
export interface FrameWriting {
  /** Writes one frame. Returns false if the socket must drain first. */
  readonly write: (frame: string) => boolean
  /** Called when the turn ends or the reader is too slow. */
  readonly onEnd: () => void
  /** The positions, if the client asks for them. */
  readonly positions: ChunkPositions | undefined
}

/** JSON frames, as in the AI SDK's `WebSocketChatTransport`. */
export const jsonCodec: FrameCodec = {
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
  if (frame.type === 'foreign') return frame.audioBytes
  return frame.type === 'audio' ? Buffer.byteLength(frame.data, 'base64') : undefined
}

/** Returns the name of a frame. */
export function nameOf(frame: IncomingFrame): string {
  return frame.type === 'foreign' ? frame.name : frame.type
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
