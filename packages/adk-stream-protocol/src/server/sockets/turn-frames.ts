import { serialiseChunk } from '../../protocol/chunk.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { chunkFrame, chunkFrameHead, serialiseFrame } from '../../protocol/server-frame.ts'
import type { Sink } from '../../turns/attachment.ts'

/** Writes one frame. False when the socket wants no more until it has drained. */
export type WriteFrame = (frame: string) => boolean

/** Where a socket reads a turn: as numbered frames of one request. */
export function toFrames(requestId: string, write: WriteFrame, onOver: () => void): Sink {
  const head = chunkFrameHead(requestId)
  let sequence = 0
  return {
    write: (json) => write(chunkFrame(head, sequence++, json)),
    pass: (sound) => void write(chunkFrame(head, sequence++, serialiseChunk(sound))),
    end: () => {
      onOver()
      write(serialiseFrame({ type: 'end', requestId }))
    },
    // The socket may have been too slow for this answer alone; the others on it go on.
    abandon: () => {
      onOver()
      const { code, message: errorText } = new ProtocolError('too-slow')
      write(serialiseFrame({ type: 'error', requestId, errorText, code }))
    },
  }
}
