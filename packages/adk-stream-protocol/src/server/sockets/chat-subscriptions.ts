import { randomUUID } from 'node:crypto'

import type { LiveWatcher } from '../../live/live-room.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { Message } from '../../protocol/message.ts'
import type { AudioMode } from './turn-readers.ts'
import type { Turn } from '../../turns/turn.ts'
import type { ChatKey } from '../../turns/turns.ts'
import { readDialect } from '../http/read-request.ts'
import type { Connection } from './frame-handlers.ts'
import type { LiveRuns } from '../chats/live-runs.ts'

/** Subscription a client takes part in a chat. */
interface Subscription {
  readonly audio: AudioMode
  readonly watches: boolean
  /** Whether it asked for something in it. */
  readonly participates: boolean
}

/** One client in the chats that it takes part in. */
export class ChatSubscriptions {
  readonly #connection: Connection
  readonly #runs: LiveRuns
  readonly #maxChats: number
  readonly #chats = new Map<string, Subscription & { readonly leave: () => void }>()
  #left = false
  /** The chat that sound without a name belongs to. */
  audioChatId: string | undefined

  constructor(connection: Connection, runs: LiveRuns, maxChats: number) {
    this.#connection = connection
    this.#runs = runs
    this.#maxChats = maxChats
  }

  /** Whether something runs in a chat that the client takes part in. */
  get busy(): boolean {
    return [...this.#chats.keys()].some(
      (chatId) => this.#runs.find(this.#chatOf(chatId))?.busy === true,
    )
  }

  audioOf(chatId: string): AudioMode {
    return this.#chats.get(chatId)?.audio ?? 'base64'
  }

  /**
   * Takes part in a chat while something is asked for in it, so that its conversation is not given up, and from then on if there is
   * one. Whoever names chats in which nothing happens is in none of them.
   */
  async whileBusy<Result>(chatId: string, ask: () => Promise<Result>): Promise<Result> {
    this.#enter(chatId)
    try {
      return await ask()
    } finally {
      if (this.#isTalking(chatId)) this.#enter(chatId)
      else if (this.#chats.get(chatId)?.watches === false) this.#exit(chatId)
    }
  }

  /** Wants to hear of all that happens in a chat. */
  watch(chatId: string, audio: AudioMode): void {
    const known = this.#chats.get(chatId)
    known?.leave()
    this.#join(chatId, { audio, watches: true, participates: known?.participates ?? false })
    if (audio === 'binary') this.audioChatId = chatId
    else this.#stopAudio(chatId)
  }

  /** Wants to hear no more of it. Who only looked on is gone; who said something still takes part. */
  unwatch(chatId: string): void {
    const known = this.#chats.get(chatId)
    this.#stopAudio(chatId)
    this.#exit(chatId)
    if (known?.participates && this.#isTalking(chatId)) this.#enter(chatId)
  }

  /** Sends a turn that no request of this client asked for. `userMessage` is what the person was heard to say so far. */
  show(chatId: string, turn: Turn, userMessage?: Message): void {
    const { send, read, exchange } = this.#connection
    const requestId = `turn-${randomUUID()}`
    const said = userMessage && { userMessage }
    send({ type: 'turn', id: chatId, requestId, messageId: turn.messageId, ...said })
    read(requestId, turn, {
      from: 'start',
      dialect: readDialect(exchange()),
      audio: this.audioOf(chatId),
    })
  }

  leave(): void {
    this.#left = true
    for (const { leave } of this.#chats.values()) leave()
    this.#chats.clear()
  }

  #enter(chatId: string): void {
    const known = this.#chats.get(chatId)
    if (known) this.#chats.set(chatId, { ...known, participates: true })
    else this.#join(chatId, { audio: 'base64', watches: false, participates: true })
  }

  #exit(chatId: string): void {
    this.#chats.get(chatId)?.leave()
    this.#chats.delete(chatId)
  }

  #isTalking(chatId: string): boolean {
    return this.#runs.isTalking(this.#chatOf(chatId))
  }

  #chatOf(chatId: string): ChatKey {
    return { principalId: this.#connection.principal.id, chatId }
  }

  /** Makes room for a chat, by those in which nothing happens any more. */
  #makeRoom(): void {
    if (this.#chats.size < this.#maxChats) return
    for (const [chatId, { watches }] of this.#chats)
      if (!watches && !this.#isTalking(chatId)) this.#exit(chatId)
    if (this.#chats.size >= this.#maxChats) throw new ProtocolError('too-many-live-chats')
  }

  #stopAudio(chatId: string): void {
    if (this.audioChatId === chatId) this.audioChatId = undefined
  }

  #join(chatId: string, subscription: Subscription): void {
    // A frame that is still worked on when its socket is gone brings nobody back.
    if (this.#left) return
    if (!this.#chats.has(chatId)) this.#makeRoom()
    // One of its own: who takes part is told from others by it.
    const watcher = subscription.watches ? this.#watcher(chatId) : { ...SILENT }
    this.#chats.set(chatId, {
      ...subscription,
      leave: this.#runs.watch(this.#chatOf(chatId), watcher),
    })
  }

  #watcher(id: string): LiveWatcher {
    const { send } = this.#connection
    return {
      listens: true,
      onTurn: (turn, heard) => this.show(id, turn, heard),
      onHeard: (message) => send({ type: 'user-message', id, message }),
      onTranscript: ({ text, final }) =>
        send({ type: 'transcript', id, author: 'user', text, final }),
      onInterrupted: () => send({ type: 'interrupted', id }),
      onStatus: (status) => send({ type: 'status', id, status }),
    }
  }
}

const SILENT: LiveWatcher = {
  listens: false,
  onTurn: () => undefined,
  onHeard: () => undefined,
  onTranscript: () => undefined,
  onInterrupted: () => undefined,
  onStatus: () => undefined,
}
