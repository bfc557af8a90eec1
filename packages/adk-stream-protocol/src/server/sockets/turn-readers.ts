import type { SoundChunk } from '../../protocol/chunk.ts'
import type { Attachment, Sink } from '../../turns/attachment.ts'
import type { Turn } from '../../turns/turn.ts'
import type { ReadFrom } from '../../turns/turn-log.ts'
import type { Dialect } from '../http/dialects.ts'
import { toDialect } from '../http/dialects.ts'

/** How a client gets sound: as bytes on the socket, within its messages, or not at all. */
export type AudioMode = 'binary' | 'base64' | 'none'

export interface ReadOptions {
  /** Where the client reads from. */
  readonly from: ReadFrom
  readonly dialect: Dialect
  readonly audio: AudioMode
}

/** How a socket writes turns. */
interface Writing {
  /** Where a turn is written; `onEnd` is called when it is read no further. */
  readonly toSink: (requestId: string, onEnd: () => void) => Sink
  /** Puts a turn into the order of the client. `seen` is the question or call that it has answered. */
  readonly toOrder: (sink: Sink, seen: string | undefined) => Sink
  readonly sendAudio: (bytes: Uint8Array) => void
}

/** The answers that one socket reads, each under the request that asked for it. */
export class TurnReaders {
  readonly #writing: Writing
  readonly #readers = new Map<string, { turn: Turn; attachment?: Attachment }>()

  constructor(writing: Writing) {
    this.#writing = writing
  }

  get size(): number {
    return this.#readers.size
  }

  has(requestId: string): boolean {
    return this.#readers.has(requestId)
  }

  /** The turns that are read now. */
  get turns(): Turn[] {
    return [...this.#readers.values()].map(({ turn }) => turn)
  }

  /** Sends a turn. False when it is too long to be replayed. */
  read(requestId: string, turn: Turn, { from, dialect, audio }: ReadOptions): boolean {
    const reader: { turn: Turn; attachment?: Attachment } = { turn }
    this.#readers.set(requestId, reader)
    const sink = {
      ...this.#writing.toSink(requestId, () => this.#readers.delete(requestId)),
      ...this.#audioSink(audio),
    }
    const seen = typeof from === 'object' && turn.log.isMarked(from.after) ? from.after : undefined
    const attachment = turn.attach(
      this.#writing.toOrder(toDialect(dialect, sink, from), seen),
      from,
    )
    if (attachment) reader.attachment = attachment
    else this.#readers.delete(requestId)
    return attachment !== undefined
  }

  /** Where the sound of a turn goes; within the messages it is one chunk among the others. */
  #audioSink(audio: AudioMode): Pick<Sink, 'pass'> {
    if (audio === 'base64') return {}
    const pass = ({ data }: SoundChunk): void =>
      this.#writing.sendAudio(Buffer.from(data.content, 'base64'))
    return { pass: audio === 'binary' ? pass : () => undefined }
  }

  /** Reads a turn no further; tells which one it was. */
  leave(requestId: string): Turn | undefined {
    const reader = this.#readers.get(requestId)
    this.#readers.delete(requestId)
    reader?.attachment?.detach('closed')
    return reader?.turn
  }

  leaveAll(): void {
    for (const requestId of this.#readers.keys()) this.leave(requestId)
  }

  /** The socket takes more. */
  drained(): void {
    for (const { attachment } of this.#readers.values()) attachment?.drained()
    // The first one takes most of the room, so it is the last one next time.
    const [first] = this.#readers
    if (!first) return
    this.#readers.delete(first[0])
    this.#readers.set(...first)
  }
}
