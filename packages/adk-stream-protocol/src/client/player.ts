import type { UIMessageChunk } from 'ai'

import { AdkError } from './adk-error.ts'
import type { AnyTransport, RecordedLine } from './recording.ts'
import { readRecording } from './recording.ts'

/** How a recording is played: with its pauses, at once, or a chunk for each call of `step`. */
export type Pace = 'real-time' | 'fast' | 'step'

/** What is played, and how fast. */
export interface PlayerOptions {
  readonly recording: string
  /** Default `fast`. */
  readonly pace?: Pace
}

/** A transport that answers with what was recorded, so that the same page shows it: the n-th request gets the n-th answer. */
export class Player implements AnyTransport {
  readonly resumeStreamIsReplay = true
  readonly #answers: (readonly RecordedLine[])[]
  readonly #pace: Pace
  readonly #waiting: (() => void)[] = []
  #steps = 0

  constructor({ recording, pace = 'fast' }: PlayerOptions) {
    this.#pace = pace
    const answers = new Map<number, RecordedLine[]>()
    for (const line of readRecording(recording)) {
      if (line.type === 'frame') continue
      answers.set(line.request, [...(answers.get(line.request) ?? []), line])
    }
    this.#answers = [...answers.values()]
  }

  /** How many answers are left. */
  get left(): number {
    return this.#answers.length
  }

  /** Lets one more chunk through. */
  step(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#steps += 1
  }

  sendMessages(): Promise<ReadableStream<UIMessageChunk>> {
    const lines = this.#answers.shift()
    if (!lines)
      return Promise.reject(new AdkError('nothing-new', 'The recording holds no further answer.'))
    return Promise.resolve(this.#play(lines))
  }

  /** What is played was recorded whole: there is nothing to come back to. */
  reconnectToStream(): Promise<null> {
    return Promise.resolve(null)
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
          await this.#wait(line.at - at)
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

  async #wait(ms: number): Promise<void> {
    if (this.#pace === 'fast') return
    await new Promise<void>((resolve) => {
      if (this.#pace === 'real-time') setTimeout(resolve, ms)
      else if (this.#steps === 0) this.#waiting.push(resolve)
      else {
        this.#steps -= 1
        resolve()
      }
    })
  }
}
