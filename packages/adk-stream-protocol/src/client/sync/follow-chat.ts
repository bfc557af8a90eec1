import type { AdkApi } from '../api/adk-api.ts'
import type { AdkChunkStream } from '../adk-ui-message.ts'
import type { ResponseStates, MessageView, PartView } from './response-states.ts'
import type { AttachableChat } from './attachable-chat.ts'
import { isBusy } from './attachable-chat.ts'
import type { ServerTurn } from '../transports/chat-observer.ts'
import type { ConnectionState } from '../transports/connection-state.ts'
import { mergeMessages } from './message-edits.ts'
import { readChunks } from '../transports/read-chunks.ts'
import type { WatchEvent } from '../api/watch-feed.ts'

const UNDER_WAY = new Set<string | undefined>(['given', 'travelling'])

interface Parts {
  readonly chat: AttachableChat
  readonly answers: ResponseStates
  readonly api: Pick<AdkApi, 'loadChat' | 'watchChat'>
  /** Reads the turn that runs beside the chat's own stream. */
  readonly reconnect: () => Promise<AdkChunkStream | null>
  readonly show: (turn: ServerTurn) => Promise<void>
  readonly onApproval: (event: Extract<WatchEvent, { type: 'approval' }>) => void
  readonly onProgress: () => void
  readonly report: (state: ConnectionState | undefined) => void
  readonly onError: (error: unknown) => void
}

/** Keeps a chat up with what happens to it elsewhere: in another tab, in an inbox, by the server's own clock. */
export class ChatFollower {
  readonly #parts: Parts
  readonly #leave: () => void
  /** Turns of this chat's own requests, whose event is still to come. */
  readonly #own = new Set<string>()
  /** Turns that were told while the chat was reading. */
  readonly #pending = new Set<string>()
  /** Turns that are told to the chat without its asking. */
  readonly #shown = new Set<string>()
  #isWorking = false
  #isDue = false
  #isOver = false

  constructor(parts: Parts) {
    this.#parts = parts
    this.#leave = parts.api.watchChat(parts.chat.id, (event) => this.#onEvent(event))
  }

  end(): void {
    this.#isOver = true
    this.#leave()
    this.#parts.report(undefined)
  }

  /** A request of the chat itself has begun this turn. */
  onOwnTurn(messageId: string): void {
    if (!this.#pending.delete(messageId)) this.#own.add(messageId)
  }

  /** A turn is shown without the chat's asking, until `shown` settles. */
  onShown(messageId: string, shown: Promise<void>): void {
    this.#shown.add(messageId)
    void shown.finally(() => this.#shown.delete(messageId)).catch(() => undefined)
  }

  /** The chat has read to the end. */
  onRest(): void {
    if (this.#pending.size > 0) this.#catchUp()
  }

  #onEvent(event: WatchEvent): void {
    const { report, onApproval } = this.#parts
    switch (event.type) {
      case 'open':
        // What was told before is not told again.
        if (event.again) this.#own.clear()
        report({ state: 'open' })
        return this.#catchUp()
      case 'lost':
        // What was told meanwhile is not told again.
        this.#own.clear()
        return report({ state: 'lost', attempt: event.attempt, retryAt: event.retryAt })
      case 'approval':
        onApproval(event)
        if (event.state !== 'requested') this.#catchUp()
        return
      case 'turn':
        return this.#onTurn(event.messageId)
    }
  }

  #onTurn(messageId: string): void {
    if (this.#own.delete(messageId) || this.#shown.has(messageId)) return
    if (isBusy(this.#parts.chat)) this.#pending.add(messageId)
    else this.#catchUp()
  }

  /** One after the other, and once more for what came meanwhile. */
  #catchUp(): void {
    this.#isDue = true
    if (this.#isWorking) return
    this.#isWorking = true
    this.#run()
      .catch((error: unknown) => this.#parts.onError(error))
      .finally(() => (this.#isWorking = false))
  }

  async #run(): Promise<void> {
    while (this.#isDue && !this.#isOver) {
      // What is read now, or answered right now, is newer than what the server has; the end of it comes here again.
      if (isBusy(this.#parts.chat) || this.#isAnswering()) {
        this.#pending.add('')
        return
      }
      this.#isDue = false
      this.#pending.clear()
      if (await this.#look()) this.#isDue = true
    }
  }

  /** Shows what the server has. True when there may be more. */
  async #look(): Promise<boolean> {
    const { chat, api } = this.#parts
    const shown = chat.messages
    const { messages, running } = await api.loadChat(chat.id)
    if (this.#isOver) return false
    // The chat has gone on by itself.
    if (isBusy(chat) || chat.messages !== shown) return true
    return running ? this.#readOn(messages) : this.#put(messages)
  }

  #put(messages: MessageView[]): false {
    const { chat, onProgress } = this.#parts
    // What could not be sent is on this page alone.
    const next = chat.status === 'error' ? mergeMessages(messages, chat.messages) : messages
    if (JSON.stringify(next) === JSON.stringify(chat.messages)) return false
    chat.messages = next
    onProgress()
    return false
  }

  /** Reads what is being written, after what is there. */
  async #readOn(messages: MessageView[]): Promise<boolean> {
    const { chat } = this.#parts
    const shown = chat.messages
    // The server leaves out what it is writing; the reader goes on seeing it as it was.
    const unfinished = shown.findLast(
      ({ role, id }) => role === 'assistant' && messages.every((message) => message.id !== id),
    )
    if (unfinished && this.#shown.has(unfinished.id)) return false
    if (unfinished && unfinished !== shown.at(-1)) return this.#readBeside(unfinished.id)
    chat.messages = unfinished ? [...messages, unfinished] : messages
    const before = chat.messages
    await chat.resumeStream()
    // There was nothing to resume: it ended after the server said that it was running.
    return chat.messages !== before || this.#reread(before)
  }

  /** An answer above the last one goes on: the chat itself would show it at the end. */
  async #readBeside(messageId: string): Promise<boolean> {
    const stream = await this.#parts.reconnect()
    if (!stream) return this.#reread(this.#parts.chat.messages)
    await this.#parts.show({ messageId, continues: false, chunks: readChunks(stream) })
    return true
  }

  /** Looks once more, and then no more: what runs may run on another server. */
  async #reread(shown: readonly MessageView[]): Promise<false> {
    const { chat, api } = this.#parts
    const { messages, running } = await api.loadChat(chat.id)
    if (!running && !isBusy(chat) && chat.messages === shown) chat.messages = messages
    return false
  }

  #isAnswering(): boolean {
    const { chat, answers } = this.#parts
    const isAnswered = ({ approval, toolCallId = '' }: PartView): boolean =>
      [approval?.id ?? '', toolCallId].some((id) => UNDER_WAY.has(answers.stateOf(id)))
    return chat.messages.at(-1)?.parts.some(isAnswered) === true
  }
}
