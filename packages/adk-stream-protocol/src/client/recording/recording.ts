import type { ChatTransport, UIMessageChunk } from 'ai'

import type { Chunk } from '../../protocol/chunk.ts'
import type { Message } from '../../protocol/message.ts'
import type { AdkUIMessage } from '../adk-ui-message.ts'
import type { MessageView } from '../sync/response-states.ts'
import type { WireEvent, WireObserver, WireTrigger } from '../transports/wire-events.ts'
import { WireTap } from '../transports/wire-events.ts'

/** A line of a recording; `at` is ms since it began, `request` counts the answers. */
export type RecordedLine = { readonly at: number } & (
  | {
      readonly type: 'request'
      readonly request: number
      readonly chatId: string
      readonly trigger: WireTrigger
      readonly message?: MessageView
      readonly messageId?: string
    }
  | { readonly type: 'chunk'; readonly request: number; readonly chunk: Chunk }
  | { readonly type: 'end'; readonly request: number; readonly error?: string }
  | { readonly type: 'user-message'; readonly chatId: string; readonly message: Message }
  | { readonly type: 'frame'; readonly direction: 'in' | 'out'; readonly frame: object }
  | { readonly type: 'sound'; readonly direction: 'in' | 'out'; readonly bytes: number }
)

/** The least of a transport that a chat needs. */
export type AnyTransport = Pick<
  ChatTransport<AdkUIMessage>,
  'sendMessages' | 'reconnectToStream'
> & { readonly resumeStreamIsReplay?: boolean }

/**
 * Keeps what passed between a page and the server, for a bug report or a test: a whole conversation, with what the person said. Off
 * until it is started; the oldest lines go first.
 */
export class Recorder {
  readonly #maxLines: number
  readonly #requests = new Map<string, number>()
  #lines: RecordedLine[] = []
  #begun: number | undefined
  /** How many lines had no room. */
  dropped = 0

  constructor({ maxLines = 10_000 }: { maxLines?: number } = {}) {
    this.#maxLines = maxLines
  }

  get isRecording(): boolean {
    return this.#begun !== undefined
  }

  start(): void {
    this.#begun ??= performance.now()
  }

  stop(): void {
    this.#begun = undefined
  }

  /** For the option `observe` of a transport. */
  readonly observe: WireObserver = (event) => {
    if (this.#begun === undefined || isDuplicate(event)) return
    const at = Math.round(performance.now() - this.#begun)
    this.#keep(
      'request' in event ? { at, ...event, request: this.#count(event.request) } : { at, ...event },
    )
  }

  /** A transport that is not ours, with its answers recorded. */
  record(transport: AnyTransport): AnyTransport {
    const { observe } = this
    return {
      resumeStreamIsReplay: transport.resumeStreamIsReplay === true,
      sendMessages: async (options) => {
        const { chatId, trigger, messageId, messages } = options
        const begun = { chatId, trigger, messageId, message: messages.at(-1) }
        return tapStream(await transport.sendMessages(options), new WireTap(observe, begun))
      },
      reconnectToStream: async (options) => {
        const stream = await transport.reconnectToStream(options)
        const { chatId } = options
        return stream && tapStream(stream, new WireTap(observe, { chatId, trigger: 'resume' }))
      },
    }
  }

  /** The recording as JSON lines. */
  toJsonl(): string {
    return this.#lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  }

  #count(request: string): number {
    const known = this.#requests.get(request) ?? this.#requests.size
    this.#requests.set(request, known)
    return known
  }

  #keep(line: RecordedLine): void {
    this.#lines.push(line)
    const over = this.#lines.length - this.#maxLines
    if (over <= 0) return
    this.#lines = this.#lines.slice(over)
    this.dropped += over
  }
}

/** The frame of a chunk is told as a chunk as well. */
function isDuplicate(event: WireEvent): boolean {
  return event.type === 'frame' && 'type' in event.frame && event.frame.type === 'chunk'
}

function tapStream(
  stream: ReadableStream<UIMessageChunk>,
  tap: WireTap,
): ReadableStream<UIMessageChunk> {
  const reader = stream.getReader()
  const pull = async (
    controller: ReadableStreamDefaultController<UIMessageChunk>,
  ): Promise<void> => {
    try {
      const { done, value } = await reader.read()
      if (done) {
        tap.end()
        controller.close()
      } else {
        // Whoever made it: the chunks of the bridge are a part of those of the AI SDK.
        tap.chunk(value as Chunk)
        controller.enqueue(value)
      }
    } catch (error) {
      tap.end(error)
      throw error
    }
  }
  const cancel = async (reason: unknown): Promise<void> => {
    tap.end()
    await reader.cancel(reason)
  }
  // The chunk before must be worked in before the next is asked for, here as there.
  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 })
}

/** Reads a recording. Throws a `SyntaxError` that names the line where the text is none. */
export function readRecording(jsonl: string): RecordedLine[] {
  return jsonl.split('\n').flatMap((text, index) => {
    if (text.trim() === '') return []
    const line: unknown = JSON.parse(text)
    if (!isLine(line)) throw new SyntaxError(`Line ${index + 1} is not that of a recording.`)
    return [line]
  })
}

const LINES: readonly string[] = [
  'request',
  'chunk',
  'end',
  'user-message',
  'frame',
  'sound',
] satisfies RecordedLine['type'][]

/** What tells a recording from other JSON lines; the rest is as the transports told it. */
function isLine(line: unknown): line is RecordedLine {
  if (typeof line !== 'object' || line === null || !('at' in line) || !('type' in line))
    return false
  return typeof line.at === 'number' && LINES.some((type) => type === line.type)
}
