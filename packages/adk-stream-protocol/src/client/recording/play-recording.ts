import type { Message } from '../../protocol/message.ts'
import { foldChunk } from '../../protocol/fold-chunks.ts'
import type { MessageView } from '../sync/response-states.ts'
import type { Pace } from './pacing.ts'
import { Pacing } from './pacing.ts'
import type { RecordedLine } from './recording.ts'
import { readRecording } from './recording.ts'
import { addMessage, putMessage } from '../sync/show-turn.ts'

/** Whatever has messages: a `Chat`, or `{ messages: [] }`. */
export interface MessageTarget {
  messages: MessageView[]
}

/** Which part of a recording is played, and how fast. */
export interface PlaybackOptions {
  /** Default `fast`. */
  readonly pace?: Pace
  /** Which chat of the recording. Default: the first in it. */
  readonly chatId?: string
}

/** A recording that is being played. */
export interface Playback {
  /** Resolves when it is over, or was stopped. */
  readonly done: Promise<void>
  /** Lets one more message or chunk through, at the pace `step`. */
  step(): void
  stop(): void
}

/**
 * Plays a recorded conversation into the messages of a chat: what the person said and decided, the answers, those that were resumed,
 * and those that nobody asked for, in their order. Nothing is sent anywhere.
 */
export function playRecording(
  stage: MessageTarget,
  recording: string,
  { pace = 'fast', chatId }: PlaybackOptions = {},
): Playback {
  const lines = readRecording(recording)
  const wanted = chatId ?? lines.find(isOfChat)?.chatId
  const pacing = new Pacing(pace)
  const stopping = new AbortController()
  const { signal } = stopping
  const show = new PlaybackView(stage, wanted)
  const play = async (): Promise<void> => {
    let at = lines[0]?.at ?? 0
    for (const line of lines) {
      if (!show.isFor(line)) continue
      await pacing.wait(line.at - at, signal)
      at = line.at
      if (signal.aborted) return
      show.line(line)
    }
  }
  return { done: play(), step: () => pacing.step(), stop: () => stopping.abort() }
}

type RequestLine = Extract<RecordedLine, { type: 'request' }>

/** One chat of a recording, as it grows. */
class PlaybackView {
  readonly #stage: MessageTarget
  readonly #chatId: string | undefined
  /** The message that each answer writes; nothing before it has a name. */
  readonly #answers = new Map<number, { begun: RequestLine; message: Message | undefined }>()

  /** The message that answers something spoken, which is known in full only later. */
  #unasked: string | undefined

  constructor(stage: MessageTarget, chatId: string | undefined) {
    this.#stage = stage
    this.#chatId = chatId
  }

  /** Whether a line changes what is seen. */
  isFor(line: RecordedLine): boolean {
    if (line.type === 'chunk') return this.#answers.has(line.request)
    return isOfChat(line) && line.chatId === this.#chatId
  }

  line(line: RecordedLine): void {
    if (line.type === 'user-message') {
      addMessage(this.#stage, line.message, this.#unasked)
      this.#unasked = undefined
    }
    if (line.type === 'request') this.#begin(line)
    if (line.type === 'chunk') this.#grow(line)
  }

  #begin(line: RequestLine): void {
    const { trigger, message, messageId, request } = line
    this.#answers.set(request, { begun: line, message: undefined })
    if (trigger === 'turn' && !message && !this.#has(messageId)) this.#unasked = messageId
    if (trigger === 'regenerate-message') this.#takeBack(messageId, message?.id)
    if (message?.role === 'user') addMessage(this.#stage, message)
    else if (message) this.#answerCalls(message)
  }

  #has(messageId: string | undefined): boolean {
    return this.#stage.messages.some(({ id }) => id === messageId)
  }

  #grow({ request, chunk }: Extract<RecordedLine, { type: 'chunk' }>): void {
    const answer = this.#answers.get(request)
    if (!answer) return
    if (chunk.type === 'start') answer.message = this.#open(chunk.messageId, answer.begun)
    if (!answer.message) return
    foldChunk(answer.message, chunk)
    if (answer.message.parts.length > 0) putMessage(this.#stage, structuredClone(answer.message))
  }

  /** An answer to answered calls goes on where its message ends; every other tells it from its start. */
  #open(id: string, { trigger, message }: RequestLine): Message {
    const known = this.#stage.messages.find((each) => each.id === id)
    const goesOn = trigger === 'submit-message' && message?.role === 'assistant' && known
    return goesOn
      ? // The messages are those of the bridge.
        (structuredClone(known) as unknown as Message)
      : { id, role: 'assistant', parts: [] }
  }

  /** What is made anew, and what came after it, is gone. */
  #takeBack(messageId: string | undefined, saidId: string | undefined): void {
    const { messages } = this.#stage
    const named = messages.findIndex(({ id, role }) => id === messageId && role === 'assistant')
    const said = messages.findIndex(({ id }) => id === (saidId ?? messageId))
    const end = named >= 0 ? named : said + 1
    if (end > 0) this.#stage.messages = messages.slice(0, end)
  }

  /** Shows what the person answered, as it was sent. */
  #answerCalls({ id, parts }: MessageView): void {
    const known = this.#stage.messages.find((each) => each.id === id)
    if (!known) return
    const answered = known.parts.map(
      (part) =>
        parts.find(
          ({ toolCallId }) => toolCallId !== undefined && toolCallId === part.toolCallId,
        ) ?? part,
    )
    putMessage(this.#stage, { ...known, parts: answered })
  }
}

function isOfChat(line: RecordedLine): line is Extract<RecordedLine, { chatId: string }> {
  return 'chatId' in line
}
