import type { UIMessageChunk } from 'ai'

import type { Message } from '../../protocol/message.ts'
import { foldChunk } from '../../protocol/fold-chunks.ts'
import type { MessageView, MessageTarget } from '../connection/chat-messages.ts'
import { putMessage, showUserMessage } from '../connection/chat-messages.ts'
import type { RecordedLine, AnyTransport } from './recording.ts'
import { readRecording } from './recording.ts'
import { AdkError } from '../adk-error.ts'
import { defer } from '../../shared/async.ts'
import type { VoteCount } from '../connection/wire-events.ts'

export type { MessageTarget } from '../connection/chat-messages.ts'

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
  /** Called after each line that is played, and after `seek`. */
  readonly onProgress?: (progress: PlaybackProgress) => void
}

/**
 * How far a playback has come.
 *
 * @inline
 */
interface PlaybackProgress {
  /** The number of lines that were played, and of all lines of the chat. */
  readonly position: number
  readonly length: number
  /** The recorded time at this position, in ms since 1970. Undefined if the recording does not contain it. */
  readonly time: number | undefined
  /** The recorded votes at this position, by approval id, for the prop `votes` of `MessageList`. */
  readonly votes: ReadonlyMap<string, VoteCount>
}

/** A playback in progress, from `playRecording()`: pause it, move it, or stop it. */
export interface Playback {
  /** Resolves when the playback has ended or was stopped. */
  readonly done: Promise<void>
  /** Plays one more message or chunk, at the pace `step`. */
  step(): void
  /** Plays nothing until `resume`. */
  pause(): void
  resume(): void
  /** Shows the conversation after this number of lines. Continues from there, unless it is paused or the pace is `fast`. */
  seek(position: number): void
  stop(): void
}

/**
 * Plays a recorded conversation into the messages of a chat: user messages, decisions and replies, including resumed ones and those that
 * the client did not request, in their order. Sends nothing.
 */
export function playRecording(
  target: MessageTarget,
  recording: string,
  options: PlaybackOptions = {},
): Playback {
  return new RecordingPlayback(target, readRecording(recording), options)
}

class RecordingPlayback implements Playback {
  readonly done: Promise<void>
  readonly #target: MessageTarget
  readonly #lines: readonly RecordedLine[]
  readonly #options: PlaybackOptions
  readonly #chatId: string | undefined
  /** When the recording started, in ms since 1970. */
  readonly #startTime: number | undefined
  readonly #finished = defer()
  #view: PlaybackView
  #position = 0
  #paused = false
  #pacing: Pacing
  #running = new AbortController()

  constructor(target: MessageTarget, recorded: readonly RecordedLine[], options: PlaybackOptions) {
    this.#target = target
    this.#options = options
    this.#chatId = options.chatId ?? recorded.find(isOfChat)?.chatId
    this.#lines = selectLines(recorded, this.#chatId)
    this.#startTime = recorded.find((line) => line.type === 'start')?.time
    this.#view = createView(target)
    this.#pacing = createPacing(options.pace ?? 'fast')
    this.done = this.#finished.promise
    void this.#run()
  }

  step(): void {
    this.#pacing.step()
  }

  pause(): void {
    this.#paused = true
    this.#running.abort()
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    void this.#run()
  }

  seek(position: number): void {
    this.#running.abort()
    const wanted = Math.max(0, Math.min(position, this.#lines.length))
    if (wanted < this.#position) {
      this.#target.messages = []
      this.#view = createView(this.#target)
      this.#position = 0
    }
    while (this.#position < wanted) this.#playNext()
    this.#report()
    // At the pace `fast` it would return to the end at once.
    const continues =
      !this.#paused && this.#options.pace !== 'fast' && this.#options.pace !== undefined
    if (continues || this.#position === this.#lines.length) void this.#run()
  }

  stop(): void {
    this.#running.abort()
    this.#finished.resolve()
  }

  async #run(): Promise<void> {
    this.#running.abort()
    this.#running = new AbortController()
    this.#pacing = createPacing(this.#options.pace ?? 'fast')
    const { signal } = this.#running
    while (this.#position < this.#lines.length) {
      const next = this.#lines[this.#position]?.at ?? 0
      await this.#pacing.wait(next - this.#at, signal)
      if (signal.aborted) return
      this.#playNext()
      this.#report()
    }
    this.#finished.resolve()
  }

  #playNext(): void {
    const line = this.#lines[this.#position]
    if (line) playLine(this.#view, line)
    this.#position += 1
  }

  /** The recorded time of the last line that was played, in ms since the start of the recording. */
  get #at(): number {
    return this.#lines[Math.max(0, this.#position - 1)]?.at ?? 0
  }

  #report(): void {
    this.#options.onProgress?.({
      position: this.#position,
      length: this.#lines.length,
      time: this.#startTime === undefined ? undefined : this.#startTime + this.#at,
      votes: this.#view.votes,
    })
  }
}

/** Returns the lines of one chat that a playback shows. */
function selectLines(lines: readonly RecordedLine[], chatId: string | undefined): RecordedLine[] {
  const streams = new Set<number>()
  return lines.filter((line) => {
    if (line.type === 'chunk') return streams.has(line.request)
    if (!isOfChat(line) || line.chatId !== chatId) return false
    if (line.type === 'request') streams.add(line.request)
    return true
  })
}

type RequestLine = Extract<RecordedLine, { type: 'request' }>

/** What a playback has shown of its lines so far. */
interface PlaybackView {
  readonly target: MessageTarget
  /** The recorded votes, by approval id. */
  votes: ReadonlyMap<string, VoteCount>
  /** The message that each stream writes. It is undefined before the `start` chunk. */
  readonly streams: Map<number, { readonly request: RequestLine; message: Message | undefined }>
  /** The newest reply to speech. The transcript of the speech follows it. */
  spokenReplyId: string | undefined
}

function createView(target: MessageTarget): PlaybackView {
  return { target, votes: new Map(), streams: new Map(), spokenReplyId: undefined }
}

function playLine(view: PlaybackView, line: RecordedLine): void {
  if (line.type === 'user-message') {
    showUserMessage(view.target, line.message, view.spokenReplyId)
    view.spokenReplyId = undefined
  }
  if (line.type === 'votes') {
    const { approvalId, given, voted } = line
    view.votes = new Map([...view.votes, [approvalId, { given, voted }]])
  }
  if (line.type === 'request') playRequest(view, line)
  if (line.type === 'chunk') playChunk(view, line)
}

function playRequest(view: PlaybackView, line: RequestLine): void {
  const { target, streams } = view
  const { trigger, message, messageId, request } = line
  streams.set(request, { request: line, message: undefined })
  const isShown = target.messages.some(({ id }) => id === messageId)
  if (trigger === 'turn' && !message && !isShown) view.spokenReplyId = messageId
  if (trigger === 'regenerate-message') rewind(target, messageId, message?.id)
  if (message?.role === 'user') showUserMessage(target, message)
  else if (message) showResponses(target, message)
}

function playChunk(
  { target, streams }: PlaybackView,
  { request, chunk }: Extract<RecordedLine, { type: 'chunk' }>,
): void {
  const stream = streams.get(request)
  if (!stream) return
  if (chunk.type === 'start') stream.message = openMessage(target, chunk.messageId, stream.request)
  if (!stream.message) return
  foldChunk(stream.message, chunk)
  if (stream.message.parts.length > 0) put(target, structuredClone(stream.message))
}

/** The stream after responses continues its message. Every other stream replays it from its start. */
function openMessage(
  { messages }: MessageTarget,
  id: string,
  { trigger, message }: RequestLine,
): Message {
  const known = messages.find((each) => each.id === id)
  const continues = trigger === 'submit-message' && message?.role === 'assistant' && known
  return continues
    ? // The messages come from the bridge.
      (structuredClone(known) as unknown as Message)
    : { id, role: 'assistant', parts: [] }
}

/** Removes a regenerated message and everything after it. */
function rewind(
  target: MessageTarget,
  messageId: string | undefined,
  userMessageId: string | undefined,
): void {
  const { messages } = target
  const named = messages.findIndex(({ id, role }) => id === messageId && role === 'assistant')
  const userIndex = messages.findIndex(({ id }) => id === (userMessageId ?? messageId))
  const end = named >= 0 ? named : userIndex + 1
  if (end > 0) target.messages = messages.slice(0, end)
}

/** Shows the responses that were sent. */
function showResponses(target: MessageTarget, { id, parts }: MessageView): void {
  const known = target.messages.find((each) => each.id === id)
  if (!known) return
  const responded = known.parts.map(
    (part) =>
      parts.find(({ toolCallId }) => toolCallId !== undefined && toolCallId === part.toolCallId) ??
      part,
  )
  put(target, { ...known, parts: responded })
}

function put(target: MessageTarget, message: MessageView): void {
  target.messages = putMessage(target.messages, message)
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
type Pace = 'real-time' | 'fast' | 'step'

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
