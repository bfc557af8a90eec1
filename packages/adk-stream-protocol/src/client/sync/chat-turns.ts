import type { Chunk } from '../../protocol/chunk.ts'
import type { Message } from '../../protocol/message.ts'
import type { AttachableChat } from './attachable-chat.ts'
import { isBusy } from './attachable-chat.ts'
import type { ServerTurn } from '../transports/chat-observer.ts'
import { addMessage, showTurn } from './show-turn.ts'

interface Hooks {
  /** Hears of every chunk before the chat has it. */
  readonly onChunk: (chunk: Chunk) => void
  /** A turn is shown without the chat's asking, until `shown` settles. */
  readonly onShown: (messageId: string, shown: Promise<void>) => void
}

/** The messages of a chat that are being written: that of its own stream, and those that are shown without its asking. */
export class ChatTurns {
  readonly #chat: AttachableChat
  readonly #hooks: Hooks
  /** The message that the chat's own stream writes. */
  #written: string | undefined
  readonly #shown = new Set<string>()
  /** Calls that the server said may run here. */
  readonly #offered = new Set<string>()
  /** The newest message that answers something spoken: what was said is known in full only when its answer has begun. */
  #unasked: string | undefined

  constructor(chat: AttachableChat, hooks: Hooks) {
    this.#chat = chat
    this.#hooks = hooks
  }

  isOffered(toolCallId: string): boolean {
    return this.#offered.has(toolCallId)
  }

  isWriting(messageId: string): boolean {
    const isRead = isBusy(this.#chat) && (this.#written ?? messageId) === messageId
    return isRead || this.#shown.has(messageId)
  }

  /** A chunk of the chat's own stream. */
  onOwnChunk(chunk: Chunk): void {
    if (chunk.type === 'start') this.#written = chunk.messageId
    this.#onChunk(chunk)
  }

  /** Shows what the person said, before its answer where that has begun already. */
  addUserMessage(message: Message, how: 'written' | 'heard'): void {
    addMessage(this.#chat, message, how === 'heard' ? this.#unasked : undefined)
    this.#unasked = undefined
  }

  /** Shows a turn as it is told. */
  async show(turn: ServerTurn): Promise<void> {
    const { messageId, userMessage } = turn
    const isNew = !this.#chat.messages.some(({ id }) => id === messageId)
    if (isNew && !userMessage) this.#unasked = messageId
    const shown = showTurn(this.#chat, { ...turn, chunks: this.#tap(turn.chunks) })
    this.#hooks.onShown(messageId, shown)
    this.#shown.add(messageId)
    await shown.finally(() => this.#shown.delete(messageId))
  }

  async *#tap(chunks: AsyncIterable<Chunk>): AsyncGenerator<Chunk, void> {
    for await (const chunk of chunks) {
      this.#onChunk(chunk)
      yield chunk
    }
  }

  #onChunk(chunk: Chunk): void {
    if (chunk.type === 'data-browser-call') this.#offered.add(chunk.data.toolCallId)
    this.#hooks.onChunk(chunk)
  }
}
