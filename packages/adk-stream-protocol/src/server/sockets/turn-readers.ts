import type { AudioChunk } from '../../protocol/chunk.ts'
import { ChunkPositions } from '../../turns/chunk-positions.ts'
import type { LogReader, Sink } from '../../turns/log-reader.ts'
import type { ReadFrom } from '../../turns/turn-log.ts'
import type { Turn } from '../../turns/turn.ts'
import type { TurnFormat } from '../http/turn-format.ts'

/**
 * How a client receives audio: as binary frames, as parts of its messages, or not at all.
 *
 * @inline
 */
export type AudioMode = 'binary' | 'base64' | 'none'

export interface ReadOptions {
  /** The position from which the client reads. */
  readonly from: ReadFrom
  readonly format: TurnFormat
  readonly audio: AudioMode
  /** Whether the client asks for positions. Default false. */
  readonly positions?: boolean | undefined
  /** Whether the request started or resumed the turn, rather than only joined it. Default false. */
  readonly isOwn?: boolean
}

/** A turn that a socket reads. */
interface Reader {
  readonly turn: Turn
  readonly isOwn: boolean
  attachment?: LogReader
}

interface Reading {
  readonly onEnd: () => void
  /** The positions, if the client asks for them. */
  readonly positions: ChunkPositions | undefined
}

/** Writes turns to a socket. */
interface Writing {
  /** Returns the sink for a turn. It calls `onEnd` when the turn ends or the reader is too slow. */
  readonly toSink: (requestId: string, reading: Reading) => Sink
  /** Reorders the chunks of a turn for the client. `seen` is the approval or call that the client has responded to. */
  readonly toOrder: (sink: Sink, seen: string | undefined) => Sink
  readonly sendAudio: (bytes: Uint8Array) => void
}

/** The turns that one socket reads, by request id. */
export class TurnReaders {
  readonly #writing: Writing
  readonly #readers = new Map<string, Reader>()

  constructor(writing: Writing) {
    this.#writing = writing
  }

  get size(): number {
    return this.#readers.size
  }

  has(requestId: string): boolean {
    return this.#readers.has(requestId)
  }

  find(requestId: string): Pick<Reader, 'turn' | 'isOwn'> | undefined {
    return this.#readers.get(requestId)
  }

  /** The turns that are being read. */
  get turns(): Turn[] {
    return [...this.#readers.values()].map(({ turn }) => turn)
  }

  /** Sends a turn. Does nothing if it is too long to be replayed. */
  read(requestId: string, turn: Turn, options: ReadOptions): void {
    const { from, format, audio, positions = false, isOwn = false } = options
    const reader: Reader = { turn, isOwn }
    this.#readers.set(requestId, reader)
    const sink = {
      ...this.#writing.toSink(requestId, {
        onEnd: () => this.#readers.delete(requestId),
        positions: positions && format.hasPositions ? new ChunkPositions(turn, from) : undefined,
      }),
      ...this.#audioSink(audio),
    }
    const after = typeof from === 'object' && 'after' in from ? from.after : undefined
    const seen = after !== undefined && turn.log.isMarked(after) ? after : undefined
    const attachment = turn.attach(this.#writing.toOrder(format.convert(sink, from), seen), from)
    if (attachment) reader.attachment = attachment
    else this.#readers.delete(requestId)
  }

  /** Returns where the audio of a turn goes. In `base64` mode it is written like any other chunk. */
  #audioSink(audio: AudioMode): Pick<Sink, 'pass'> {
    if (audio === 'base64') return {}
    const pass = ({ data }: AudioChunk): void =>
      this.#writing.sendAudio(Buffer.from(data.content, 'base64'))
    return { pass: audio === 'binary' ? pass : () => undefined }
  }

  /** Stops reading a turn. */
  leave(requestId: string): void {
    const reader = this.#readers.get(requestId)
    this.#readers.delete(requestId)
    reader?.attachment?.detach('closed')
  }

  leaveAll(): void {
    for (const requestId of this.#readers.keys()) this.leave(requestId)
  }

  /** Called when the socket can take more data. */
  drained(): void {
    for (const { attachment } of this.#readers.values()) attachment?.drained()
    // The first reader fills most of the buffer, so it goes to the end of the order.
    const [first] = this.#readers
    if (!first) return
    this.#readers.delete(first[0])
    this.#readers.set(...first)
  }
}
