import type { UIMessageChunk } from 'ai'

import type { Message } from '../../protocol/message.ts'
import { foldChunk } from '../../protocol/fold-chunks.ts'
import type { MessageView, MessageTarget } from '../sync/chat-messages.ts'
import { putMessage, showUserMessage } from '../sync/chat-messages.ts'
import type { RecordedLine, AnyTransport } from './recording.ts'
import { readRecording } from './recording.ts'
import { AdkError } from '../adk-error.ts'

export type { MessageTarget } from '../sync/chat-messages.ts'

/**
 * Options of `playRecording`.
 *
 * @inline
 */
export interface PlaybackOptions {
  /** Default `fast`. */
  readonly pace?: Pace
  /** The chat of the recording to play. Default: the first one. */
  readonly chatId?: string
}

/** A playback in progress. */
export interface Playback {
  /** Resolves when the playback has ended or was stopped. */
  readonly done: Promise<void>
  /** Plays one more message or chunk, at the pace `step`. */
  step(): void
  stop(): void
}

/**
 * Plays a recorded conversation into the messages of a chat: user messages, decisions and replies, including resumed ones and those that
 * the client did not request, in their order. Sends nothing.
 */
export function playRecording(
  target: MessageTarget,
  recording: string,
  { pace = 'fast', chatId }: PlaybackOptions = {},
): Playback {
  const lines = readRecording(recording)
  const wanted = chatId ?? lines.find(isOfChat)?.chatId
  const pacing = createPacing(pace)
  const stopping = new AbortController()
  const { signal } = stopping
  const view = new PlaybackView(target, wanted)
  const play = async (): Promise<void> => {
    let at = lines[0]?.at ?? 0
    for (const line of lines) {
      if (!view.includes(line)) continue
      await pacing.wait(line.at - at, signal)
      at = line.at
      if (signal.aborted) return
      view.play(line)
    }
  }
  return { done: play(), step: () => pacing.step(), stop: () => stopping.abort() }
}

type RequestLine = Extract<RecordedLine, { type: 'request' }>

/** Plays the lines of one chat. */
class PlaybackView {
  readonly #target: MessageTarget
  readonly #chatId: string | undefined
  /** The message that each stream writes. It is undefined before the `start` chunk. */
  readonly #streams = new Map<number, { request: RequestLine; message: Message | undefined }>()

  /** The newest reply to speech. The transcript of the speech follows it. */
  #spokenReplyId: string | undefined

  constructor(target: MessageTarget, chatId: string | undefined) {
    this.#target = target
    this.#chatId = chatId
  }

  /** Whether a line belongs to the chat. */
  includes(line: RecordedLine): boolean {
    if (line.type === 'chunk') return this.#streams.has(line.request)
    return isOfChat(line) && line.chatId === this.#chatId
  }

  play(line: RecordedLine): void {
    if (line.type === 'user-message') {
      showUserMessage(this.#target, line.message, this.#spokenReplyId)
      this.#spokenReplyId = undefined
    }
    if (line.type === 'request') this.#onRequest(line)
    if (line.type === 'chunk') this.#onChunk(line)
  }

  #onRequest(line: RequestLine): void {
    const { trigger, message, messageId, request } = line
    this.#streams.set(request, { request: line, message: undefined })
    if (trigger === 'turn' && !message && !this.#has(messageId)) this.#spokenReplyId = messageId
    if (trigger === 'regenerate-message') this.#rewind(messageId, message?.id)
    if (message?.role === 'user') showUserMessage(this.#target, message)
    else if (message) this.#showResponses(message)
  }

  #has(messageId: string | undefined): boolean {
    return this.#target.messages.some(({ id }) => id === messageId)
  }

  #onChunk({ request, chunk }: Extract<RecordedLine, { type: 'chunk' }>): void {
    const stream = this.#streams.get(request)
    if (!stream) return
    if (chunk.type === 'start') stream.message = this.#open(chunk.messageId, stream.request)
    if (!stream.message) return
    foldChunk(stream.message, chunk)
    if (stream.message.parts.length > 0) this.#put(structuredClone(stream.message))
  }

  /** The stream after responses continues its message. Every other stream replays it from its start. */
  #open(id: string, { trigger, message }: RequestLine): Message {
    const known = this.#target.messages.find((each) => each.id === id)
    const continues = trigger === 'submit-message' && message?.role === 'assistant' && known
    return continues
      ? // The messages come from the bridge.
        (structuredClone(known) as unknown as Message)
      : { id, role: 'assistant', parts: [] }
  }

  /** Removes a regenerated message and everything after it. */
  #rewind(messageId: string | undefined, userMessageId: string | undefined): void {
    const { messages } = this.#target
    const named = messages.findIndex(({ id, role }) => id === messageId && role === 'assistant')
    const userIndex = messages.findIndex(({ id }) => id === (userMessageId ?? messageId))
    const end = named >= 0 ? named : userIndex + 1
    if (end > 0) this.#target.messages = messages.slice(0, end)
  }

  /** Shows the responses that were sent. */
  #showResponses({ id, parts }: MessageView): void {
    const known = this.#target.messages.find((each) => each.id === id)
    if (!known) return
    const responded = known.parts.map(
      (part) =>
        parts.find(
          ({ toolCallId }) => toolCallId !== undefined && toolCallId === part.toolCallId,
        ) ?? part,
    )
    this.#put({ ...known, parts: responded })
  }

  #put(message: MessageView): void {
    this.#target.messages = putMessage(this.#target.messages, message)
  }
}

function isOfChat(line: RecordedLine): line is Extract<RecordedLine, { chatId: string }> {
  return 'chatId' in line
}

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
    this.#pacing = createPacing(pace)
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

/** `real-time`: with the recorded pauses. `fast`: without pauses. `step`: one chunk for each call of `step()`. */
export type Pace = 'real-time' | 'fast' | 'step'

/** Delays the chunks of a playback. */
interface Pacing {
  /** Plays one more chunk. */
  step(): void
  /** Resolves when the next chunk may be played. `ms` is the recorded pause. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
}

function createPacing(pace: Pace): Pacing {
  const waiting: (() => void)[] = []
  let steps = 0
  return {
    step: () => {
      const next = waiting.shift()
      if (next) next()
      else steps += 1
    },
    wait: async (ms, signal) => {
      if (pace === 'fast' || signal?.aborted) return
      await new Promise<void>((resolve) => {
        signal?.addEventListener('abort', () => resolve(), { once: true })
        if (pace === 'real-time') setTimeout(resolve, ms)
        else if (steps === 0) waiting.push(resolve)
        else {
          steps -= 1
          resolve()
        }
      })
    },
  }
}
