import type { Chunk } from '../../protocol/chunk.ts'
import type { ServerFrame } from '../../protocol/server-frame.ts'

/** All that the server says on a socket. */
export type IncomingFrame =
  | ServerFrame
  | {
      readonly type: 'chunk'
      readonly requestId: string
      readonly sequence: number
      readonly chunk: Chunk
    }

export type IncomingFrameOf<Type extends IncomingFrame['type']> = Extract<
  IncomingFrame,
  { readonly type: Type }
>

/** Reads a text frame; nothing when it is none. The server is trusted with what is in it: the client asked it for its answers. */
export function readServerFrame(text: string): IncomingFrame | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // A frame that was cut is as good as none: the connection is renewed.
    return undefined
  }
  if (typeof value !== 'object' || value === null || !('type' in value)) return undefined
  return typeof value.type === 'string' ? (value as IncomingFrame) : undefined
}
