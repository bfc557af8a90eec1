import { serialiseChunk } from '../protocol/chunk.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { chunkFrame, chunkFrameHead, serialiseFrame } from '../protocol/server-frame.ts'
import type { Sink } from '../turns/attachment.ts'

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
      write(errorFrame(requestId, new ProtocolError('too-slow')))
    },
  }
}

/** Tells that a request failed, as the AI SDK's client expects it. */
function errorFrame(requestId: string, { code, message }: ProtocolError): string {
  return serialiseFrame({ type: 'error', requestId, errorText: message, code })
}
