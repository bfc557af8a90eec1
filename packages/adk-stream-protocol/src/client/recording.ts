import type { ChatTransport, UIMessageChunk } from 'ai'

import type { AdkUIMessage } from './adk-ui-message.ts'

/** A line of a recording; `at` is ms since it began, `request` counts the answers. */
export type RecordedLine =
  | { readonly at: number; readonly type: 'request'; readonly request: number }
  | {
      readonly at: number
      readonly type: 'chunk'
      readonly request: number
      readonly chunk: UIMessageChunk
    }
  | { readonly at: number; readonly type: 'end'; readonly request: number; readonly error?: string }
  | {
      readonly at: number
      readonly type: 'frame'
      readonly direction: 'in' | 'out'
      readonly frame: object
    }

type Entry<Line = RecordedLine> = Line extends RecordedLine ? Omit<Line, 'at'> : never

/** The least of a transport that a chat needs. */
export type AnyTransport = Pick<
  ChatTransport<AdkUIMessage>,
  'sendMessages' | 'reconnectToStream'
> & { readonly resumeStreamIsReplay?: boolean }

/** Keeps what a page was sent, for a bug report or a test. Off until it is started; the oldest lines go first. */
export class Recorder {
  readonly #maxLines: number
  #lines: RecordedLine[] = []
  #begun: number | undefined
  #requests = 0
  /** How many lines had no room. */
  dropped = 0

  constructor({ maxLines = 10_000 }: { maxLines?: number } = {}) {
    this.#maxLines = maxLines
  }

  start(): void {
    this.#begun ??= performance.now()
  }

  stop(): void {
    this.#begun = undefined
  }

  /** For `liveTransport({ onFrame })`. */
  readonly onFrame = (direction: 'in' | 'out', frame: object): void =>
    this.#keep({ type: 'frame', direction, frame })

  /** The transport, with its answers recorded. */
  record(transport: AnyTransport): AnyTransport {
    return {
      resumeStreamIsReplay: transport.resumeStreamIsReplay === true,
      sendMessages: async (options) => this.#tap(await transport.sendMessages(options)),
      reconnectToStream: async (options) => {
        const stream = await transport.reconnectToStream(options)
        return stream && this.#tap(stream)
      },
    }
  }

  /** The recording as JSON lines. */
  toJsonl(): string {
    return this.#lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  }

  #tap(stream: ReadableStream<UIMessageChunk>): ReadableStream<UIMessageChunk> {
    const reader = stream.getReader()
    const request = this.#requests
    this.#requests += 1
    this.#keep({ type: 'request', request })
    const pull = async (
      controller: ReadableStreamDefaultController<UIMessageChunk>,
    ): Promise<void> => {
      try {
        const { done, value } = await reader.read()
        if (done) {
          this.#keep({ type: 'end', request })
          controller.close()
        } else {
          this.#keep({ type: 'chunk', request, chunk: value })
          controller.enqueue(value)
        }
      } catch (error) {
        this.#keep({ type: 'end', request, error: String(error) })
        throw error
      }
    }
    // The chunk before must be worked in before the next is asked for, here as there.
    return new ReadableStream(
      { pull, cancel: (reason) => reader.cancel(reason) },
      { highWaterMark: 0 },
    )
  }

  #keep(entry: Entry): void {
    if (this.#begun === undefined) return
    this.#lines.push({ at: Math.round(performance.now() - this.#begun), ...entry })
    const over = this.#lines.length - this.#maxLines
    if (over <= 0) return
    this.#lines = this.#lines.slice(over)
    this.dropped += over
  }
}

/** Reads a recording. */
export function readRecording(jsonl: string): RecordedLine[] {
  return jsonl
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as RecordedLine)
}
