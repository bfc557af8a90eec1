import type { UIMessageChunk } from 'ai'

import { AdkError } from '../adk-error.ts'
import type { Pace } from './pacing.ts'
import { Pacing } from './pacing.ts'
import type { AnyTransport, RecordedLine } from './recording.ts'
import { readRecording } from './recording.ts'

/** What a player answers with, and how fast. */
export interface PlayerOptions {
  readonly recording: string
  /** Default `fast`. */
  readonly pace?: Pace
}

interface RecordedAnswer {
  readonly isResumed: boolean
  readonly lines: RecordedLine[]
}

/**
 * A transport that answers with what was recorded, so that the same page shows it: the n-th request gets the n-th answer, and a
 * `resumeStream()` the one that was resumed there. To play a whole conversation into a chat, see `playRecording`.
 */
export class Player implements AnyTransport {
  readonly resumeStreamIsReplay = true
  readonly #answers: RecordedAnswer[]
  readonly #pacing: Pacing

  constructor({ recording, pace = 'fast' }: PlayerOptions) {
    this.#pacing = new Pacing(pace)
    const answers = new Map<number, RecordedAnswer>()
    for (const line of readRecording(recording)) {
      if (line.type === 'request' && line.trigger !== 'turn')
        answers.set(line.request, { isResumed: line.trigger === 'resume', lines: [line] })
      else if ('request' in line) answers.get(line.request)?.lines.push(line)
    }
    // A resume that found nothing has no answer.
    this.#answers = [...answers.values()].filter(({ lines }) => lines.some(isChunk))
  }

  /** How many answers are left. */
  get left(): number {
    return this.#answers.length
  }

  /** Lets one more chunk through. */
  step(): void {
    this.#pacing.step()
  }

  sendMessages(): Promise<ReadableStream<UIMessageChunk>> {
    // What was resumed there and not here is no answer to what is sent.
    while (this.#answers[0]?.isResumed) this.#answers.shift()
    const answer = this.#answers.shift()
    if (!answer)
      return Promise.reject(new AdkError('nothing-new', 'The recording holds no further answer.'))
    return Promise.resolve(this.#play(answer.lines))
  }

  reconnectToStream(): Promise<ReadableStream<UIMessageChunk> | null> {
    const answer = this.#answers[0]?.isResumed ? this.#answers.shift() : undefined
    return Promise.resolve(answer ? this.#play(answer.lines) : null)
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
