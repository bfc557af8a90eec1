import type { ChatTransport, UIMessageChunk } from 'ai'

import type { Chunk } from '../../protocol/chunk.ts'
import type { Message } from '../../protocol/message.ts'
import type { AdkUIMessage } from '../adk-ui-message.ts'
import type { MessageView } from '../connection/chat-messages.ts'
import type {
  VoteCount,
  WireEvent,
  WireObserver,
  WireTap,
  WireTrigger,
} from '../connection/wire-events.ts'
import { createTap } from '../connection/wire-events.ts'

/** A line of a recording. `at` is the time in ms since its start, `request` the number of the stream. */
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
  | ({ readonly type: 'votes'; readonly chatId: string; readonly approvalId: string } & VoteCount)
  /** The first line: when the recording started, in ms since 1970. Earlier recordings have none. */
  | { readonly type: 'start'; readonly time: number }
  | { readonly type: 'frame'; readonly direction: 'in' | 'out'; readonly frame: object }
  | { readonly type: 'sound'; readonly direction: 'in' | 'out'; readonly bytes: number }
)

/** Any chat transport, of this library or of the AI SDK, that a `Recorder` can record. */
export type AnyTransport = Pick<
  ChatTransport<AdkUIMessage>,
  'sendMessages' | 'reconnectToStream'
> & { readonly resumeStreamIsReplay?: boolean }

/**
 * Records what passes between a page and the server, for a bug report or a test: whole conversations, including what the user says. Records
 * nothing until it is started. When it is full, it drops the oldest lines.
 */
export class Recorder {
  readonly #maxLines: number
  readonly #requests = new Map<string, number>()
  #lines: RecordedLine[] = []
  #startedAt: number | undefined
  #startTime: number | undefined
  /** The number of lines that were dropped. */
  dropped = 0

  constructor({ maxLines = 10_000 }: { maxLines?: number } = {}) {
    this.#maxLines = maxLines
  }

  get isRecording(): boolean {
    return this.#startedAt !== undefined
  }

  start(): void {
    if (this.#startedAt !== undefined) return
    this.#startedAt = performance.now()
    this.#startTime ??= Date.now()
  }

  stop(): void {
    this.#startedAt = undefined
  }

  /** Pass this as the option `observe` of a transport. */
  readonly observe: WireObserver = (event) => {
    if (this.#startedAt === undefined || isDuplicate(event)) return
    const at = Math.round(performance.now() - this.#startedAt)
    this.#keep(
      'request' in event ? { at, ...event, request: this.#count(event.request) } : { at, ...event },
    )
  }

  /** Wraps a transport of the AI SDK so that its streams are recorded. */
  record(transport: AnyTransport): AnyTransport {
    const { observe } = this
    return {
      resumeStreamIsReplay: transport.resumeStreamIsReplay === true,
      sendMessages: async (options) => {
        const { chatId, trigger, messageId, messages } = options
        const request = { chatId, trigger, messageId, message: messages.at(-1) }
        return tapStream(await transport.sendMessages(options), createTap(observe, request))
      },
      reconnectToStream: async (options) => {
        const stream = await transport.reconnectToStream(options)
        const { chatId } = options
        return stream && tapStream(stream, createTap(observe, { chatId, trigger: 'resume' }))
      },
    }
  }

  /** Returns the recording as JSON lines. */
  toJsonl(): string {
    if (this.#lines.length === 0 || this.#startTime === undefined) return ''
    const start: RecordedLine = { at: 0, type: 'start', time: this.#startTime }
    return [start, ...this.#lines].map((line) => `${JSON.stringify(line)}\n`).join('')
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

/** Chunks are reported as chunks and as frames. */
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
        // The bridge's chunks are a subset of those of the AI SDK.
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
  // No buffer: as in the recorded stream, a chunk is pulled when the previous one has been processed.
  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 })
}

/** Parses a recording. Throws a `SyntaxError` with the number of the first line that is not part of a recording. */
export function readRecording(jsonl: string): RecordedLine[] {
  return jsonl.split('\n').flatMap((text, index) => {
    if (text.trim() === '') return []
    const line: unknown = JSON.parse(text)
    if (!isLine(line)) throw new SyntaxError(`Line ${index + 1} is not a line of a recording.`)
    return [line]
  })
}

const LINES: readonly string[] = [
  'request',
  'chunk',
  'end',
  'user-message',
  'votes',
  'start',
  'frame',
  'sound',
] satisfies RecordedLine['type'][]

/** Distinguishes a recording from other JSON lines. The fields are not validated. */
function isLine(line: unknown): line is RecordedLine {
  if (typeof line !== 'object' || line === null || !('at' in line) || !('type' in line))
    return false
  return typeof line.at === 'number' && LINES.some((type) => type === line.type)
}
