import type { Chunk } from '../../protocol/chunk.ts'
import type { ServerFrame } from '../../protocol/server-frame.ts'

/** A text frame of the server. */
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
