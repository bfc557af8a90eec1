import type { UIMessageChunk } from 'ai'

import { AdkError } from '../adk-error.ts'
import type { Pace } from './pacing.ts'
import { Pacing } from './pacing.ts'
import type { AnyTransport, RecordedLine } from './recording.ts'
import { readRecording } from './recording.ts'

/**
 * Options of `Player`.
 *
 * @inline
 */
export interface PlayerOptions {
  readonly recording: string
  /** Default `fast`. */
  readonly pace?: Pace
}

interface RecordedStream {
  readonly isResumed: boolean
  readonly lines: RecordedLine[]
}

/**
 * A transport that replays recorded streams: the n-th request gets the n-th stream, and `resumeStream()` gets a stream that was resumed. To
 * play a whole conversation into a chat, see `playRecording`.
 */
export class Player implements AnyTransport {
  readonly resumeStreamIsReplay = true
  readonly #streams: RecordedStream[]
  readonly #pacing: Pacing

  constructor({ recording, pace = 'fast' }: PlayerOptions) {
    this.#pacing = new Pacing(pace)
    const streams = new Map<number, RecordedStream>()
    for (const line of readRecording(recording)) {
      if (line.type === 'request' && line.trigger !== 'turn')
        streams.set(line.request, { isResumed: line.trigger === 'resume', lines: [line] })
      else if ('request' in line) streams.get(line.request)?.lines.push(line)
    }
    // A resume that found no running turn has no chunks.
    this.#streams = [...streams.values()].filter(({ lines }) => lines.some(isChunk))
  }

  /** The number of streams that are left. */
  get left(): number {
    return this.#streams.length
  }

  /** Plays one more chunk, at the pace `step`. */
  step(): void {
    this.#pacing.step()
  }

  sendMessages(): Promise<ReadableStream<UIMessageChunk>> {
    // A stream that was resumed in the recording does not belong to a sent message.
    while (this.#streams[0]?.isResumed) this.#streams.shift()
    const stream = this.#streams.shift()
    if (!stream)
      return Promise.reject(new AdkError('nothing-new', 'The recording has no further stream.'))
    return Promise.resolve(this.#play(stream.lines))
  }

  reconnectToStream(): Promise<ReadableStream<UIMessageChunk> | null> {
    const stream = this.#streams[0]?.isResumed ? this.#streams.shift() : undefined
    return Promise.resolve(stream ? this.#play(stream.lines) : null)
  }

  #play(lines: readonly RecordedLine[]): ReadableStream<UIMessageChunk> {
    const rest = [...lines]
    let at = lines[0]?.at ?? 0
    const pull = async (
      controller: ReadableStreamDefaultController<UIMessageChunk>,
    ): Promise<void> => {
      for (;;) {
        const line = rest.shift()
        if (line?.type === 'chunk') {
          await this.#pacing.wait(line.at - at)
          at = line.at
          return controller.enqueue(line.chunk)
        }
        if (line?.type === 'end' && line.error !== undefined)
          throw new AdkError('internal', line.error)
        if (!line || line.type === 'end') return controller.close()
      }
    }
    return new ReadableStream({ pull }, { highWaterMark: 0 })
  }
}

function isChunk({ type }: RecordedLine): boolean {
  return type === 'chunk'
}
