import type { Approval } from '../../approvals/approval.ts'
import type { LiveConversation } from './session/live-conversation.ts'
import type { LiveWatcher } from './session/live-watchers.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { OutputResponse } from '../../protocol/read-responses.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import { Quota } from '../../shared/collections.ts'
import { keyOf } from '../../turns/turn-registry.ts'
import type { Turn } from '../../turns/turn.ts'
import { toAppChat } from '../../server/chats/backend.ts'
import type { RecordedDecisions, RecordedResponses } from '../../server/chats/chat-runs.ts'
import { LiveChat, type LiveChatOptions } from './live-chat.ts'
import type { ReleaseReply, ReleaseRequest } from './live-leases.ts'
import type { LiveSpeaker } from './live-speakers.ts'

interface LiveRunsOptions extends Omit<LiveChatOptions, 'perPrincipal' | 'isClosed' | 'onUnused'> {
  /** The maximum number of open sessions per principal. */
  readonly maxPerPrincipal: number
}

/** A message that a session is opened for. */
interface NewMessage {
  /** Undefined if it replaces a message with this id: a process that has received that one gives the session up. */
  readonly id: string | undefined
  /** Whether it was not stored meanwhile, by another process. */
  readonly isNew: () => Promise<boolean>
}

/** The live sessions of this process: at most one per chat, started on demand and kept while a client is connected. */
export class LiveRuns {
  readonly #options: LiveChatOptions
  readonly #chats = new Map<string, LiveChat>()
  /** The turns that are being opened, by chat. */
  readonly #opening = new Map<string, Promise<unknown>>()
  /** Chats that are being left, or changed. Only then a request for a session waits: another one may ask at once whether there is one. */
  readonly #blocked = new Map<string, Promise<void>>()
  /** Sessions that are being handed over. */
  readonly #ending = new Set<Promise<void>>()
  #closed = false

  constructor({ maxPerPrincipal, ...options }: LiveRunsOptions) {
    this.#options = {
      ...options,
      perPrincipal: new Quota(maxPerPrincipal),
      isClosed: () => this.#closed,
      onUnused: (chat) => this.#forget(chat),
    }
  }

  /** The number of open sessions. */
  get size(): number {
    let size = 0
    for (const { run } of this.#chats.values()) if (run !== undefined) size += 1
    return size
  }

  /** Whether a call of any session waits for a decision. */
  get asks(): boolean {
    for (const { run } of this.#chats.values()) if (run?.calls?.hasApprovals === true) return true
    return false
  }

  /** Whether a client of this process receives the turns of any chat. */
  get listened(): boolean {
    for (const { watchers } of this.#chats.values()) if (watchers.hasListeners) return true
    return false
  }

  /** Whether a client of this process receives the turns of a chat. */
  hasListeners(chat: ChatRef): boolean {
    return this.#find(chat)?.watchers.hasListeners === true
  }

  /** Returns the open session of a chat, if there is one. */
  find(chat: ChatRef): LiveConversation | undefined {
    return this.#find(chat)?.run
  }

  /** Whether a chat has a session, or one is being started. */
  isTalking(chat: ChatRef): boolean {
    return this.#find(chat)?.isTalking === true
  }

  /** Whether a session of this process made the call of an approval and continues after its decision. */
  holds({ chat, toolCallId }: Approval): boolean {
    return this.find(chat)?.calls?.has(toolCallId) === true
  }

  /**
   * Returns the session of a chat. Starts a new one, after `prepare`, if there is none or if it is not up to date with the chat. Returns
   * undefined if it is no longer needed.
   */
  async open(
    chat: ChatRef,
    prepare?: () => Promise<void>,
    message?: NewMessage,
  ): Promise<LiveConversation | undefined> {
    for (;;) {
      if (this.#blocked.has(keyOf(chat))) await this.#blocked.get(keyOf(chat))
      const userMessageId = message?.id
      const run = await this.#findOrAdd(chat).open({ need: 'input', prepare, userMessageId })
      // The session may have been requested for a client that only listens, or its process sends another message.
      if (run || (message && !(await message.isNew()))) return run
    }
  }

  /**
   * Returns the session of a chat for a client that listens. Returns undefined if another process keeps the session for its own
   * clients. If the model replies there and no client listens, takes the session over afterwards.
   */
  async join(chat: ChatRef, prepare?: () => Promise<void>): Promise<LiveConversation | undefined> {
    if (this.#blocked.has(keyOf(chat))) await this.#blocked.get(keyOf(chat))
    return this.#findOrAdd(chat).open({ need: 'watch', prepare })
  }

  /**
   * Returns the session of a chat for audio, which arrives many times per second. Checks only now and then whether it is up to date.
   * Returns undefined if another client, or another process, has taken the session over and the microphone has not paused since.
   * Without `speaker`, it is for an image or the end of the audio.
   */
  async openForAudio(
    chat: ChatRef,
    prepare?: () => Promise<void>,
    speaker?: LiveSpeaker,
  ): Promise<LiveConversation | undefined> {
    const entry = this.#findOrAdd(chat)
    if (speaker && !entry.hears(speaker)) return undefined
    if (entry.trusted) return entry.trusted
    if (!speaker) return this.open(chat, prepare)
    for (;;) {
      if (this.#blocked.has(keyOf(chat))) await this.#blocked.get(keyOf(chat))
      const run = await this.#findOrAdd(chat).open({ need: 'speech', prepare })
      // LV880: its successor may speak at another server.
      if (run || speaker.hasLeft()) return run
    }
  }

  /** Lets the next audio of a client take the session over, although another client, or another process, has it. */
  allowSpeech(chat: ChatRef, speaker: LiveSpeaker): void {
    this.#findOrAdd(chat).speakers.allow(speaker)
  }

  /** Ends the speech of a client. Returns false if the model hears another client. */
  endSpeech(chat: ChatRef, speaker: LiveSpeaker): boolean {
    return this.#find(chat)?.speakers.end(speaker) ?? true
  }

  /** Resolves when no session of a chat is being started. Its start records the agent of the chat. */
  async whenStarted(chat: ChatRef): Promise<void> {
    await this.#find(chat)?.whenStarted()
  }

  /** Whether the turn of a message is being opened. */
  isOpening(chat: ChatRef): boolean {
    return this.#opening.has(keyOf(chat))
  }

  /** Resolves when the turn of the newest message of a chat is open. */
  async whenOpened(chat: ChatRef): Promise<void> {
    await this.#opening.get(keyOf(chat))
  }

  /** The turn of a new message is being opened. */
  noteOpening(chat: ChatRef, turn: Promise<Turn>): void {
    const key = keyOf(chat)
    const opened = Promise.allSettled([turn]).finally(() => {
      if (this.#opening.get(key) === opened) this.#opening.delete(key)
    })
    this.#opening.set(key, opened)
  }

  /** Gives responses to the session of a chat. It ends no turn while `record` records the decisions. */
  async respond<Decided extends RecordedDecisions>(
    chat: ChatRef,
    outputs: readonly OutputResponse[],
    record: () => Promise<Decided>,
  ): Promise<RecordedResponses<Decided>> {
    const run = this.find(chat)
    if (!run) return { decided: await record(), outputs, turn: undefined }
    const stored: Promise<boolean>[] = []
    const recorded = await run.messages.keepOpen(async () => {
      const decided = await record()
      // LV20: the session may have ended meanwhile, and a turn of the chat continues the call.
      if (!run.isOpen || this.find(chat) !== run) return { decided, outputs, opening: undefined }
      const others = outputs.filter((output) => {
        const submitted = run.calls?.submitOutput(output)
        if (submitted?.isTaken) stored.push(submitted.isStored)
        return submitted?.isTaken !== true
      })
      // Clients send the results of all calls of a message, including calls that no longer wait in the session.
      const isNew = decided.taken.length > 0 || stored.length > 0
      const isRead = isNew || run.messages.isStreaming(decided.messageId)
      // Not awaited: the turn may start only after others have ended, which `keepOpen` prevents.
      const opening = isRead ? run.messages.turnOf(decided.messageId) : undefined
      return { decided, outputs: others, opening }
    })
    if ((await Promise.all(stored)).includes(false)) throw NOT_STORED
    return { decided: recorded.decided, outputs: recorded.outputs, turn: await recorded.opening }
  }

  /** Subscribes to the session of a chat. Returns a function that unsubscribes; the session then stays open for `graceMs`. */
  watch(chat: ChatRef, watcher: LiveWatcher): () => void {
    return this.#findOrAdd(chat).watch(watcher)
  }

  /** Sends a turn that no live session produced to the watchers of a chat. */
  show(chat: ChatRef, turn: Turn): void {
    this.#find(chat)?.watchers.onTurn(turn)
  }

  /** An approval has changed. Returns whether a session of this process continues its call. */
  approvalChanged(approval: Approval): boolean {
    const isHeld = this.holds(approval)
    if (isHeld) this.find(approval.chat)?.calls?.approvalChanged(approval)
    return isHeld
  }

  /** Another process needs the session of a chat. Resolves when the session is closed and its lease has ended. */
  async release(chat: ChatRef, request: ReleaseRequest): Promise<ReleaseReply> {
    if (this.#blocked.has(keyOf(chat))) await this.#blocked.get(keyOf(chat))
    return this.#find(chat)?.release(request) ?? 'released'
  }

  /** LV328: closes the session of a chat that another process has taken over, or continues without a session. */
  closeLost(chat: ChatRef): void {
    this.#find(chat)?.closeLost().catch(this.#options.onError)
  }

  /** Closes the session of a chat, in any process, also one that is being started. Its messages stay stored. */
  async leave(chat: ChatRef): Promise<void> {
    while (this.#blocked.has(keyOf(chat))) await this.#blocked.get(keyOf(chat))
    return this.#block(chat, async () => {
      const { backend, leases } = this.#options
      if (!(await this.#find(chat)?.leave())) await leases.end(toAppChat(await backend.get(), chat))
    })
  }

  /**
   * Does work while no process has a session of a chat, or starts one. Returns false at once, without the work, if one does. The work
   * must not wait for a session.
   */
  async whileNone(chat: ChatRef, work: () => Promise<void>): Promise<boolean> {
    if (this.#blocked.has(keyOf(chat)) || this.#find(chat)?.isUsed === true) return false
    return this.#block(chat, async () => {
      const { backend, leases } = this.#options
      return leases.whileNone(toAppChat(await backend.get(), chat), work)
    })
  }

  #block<Result>(chat: ChatRef, work: () => Promise<Result>): Promise<Result> {
    const key = keyOf(chat)
    const done = work().finally(() => this.#blocked.delete(key))
    this.#blocked.set(key, done.then(ignore, ignore))
    return done
  }

  /** Hands idle sessions over to other processes. Returns true if none is left. */
  closeIdle(): boolean {
    for (const chat of this.#chats.values()) {
      if (!chat.isIdle) continue
      const handedOver = chat
        .handOver()
        .catch(this.#options.onError)
        .finally(() => this.#ending.delete(handedOver))
      this.#ending.add(handedOver)
    }
    return this.size === 0 && this.#ending.size === 0
  }

  /** Closes all sessions and starts no new ones. Sockets may still be open. */
  async close(): Promise<void> {
    this.#closed = true
    const chats = [...this.#chats.values()]
    for (const chat of chats) chat.clearTimers()
    await Promise.all(chats.map((chat) => chat.close()))
    await Promise.all(this.#ending)
    this.#chats.clear()
  }

  #find(chat: ChatRef): LiveChat | undefined {
    return this.#chats.get(keyOf(chat))
  }

  #findOrAdd(chat: ChatRef): LiveChat {
    const known = this.#find(chat)
    if (known) return known
    const added = new LiveChat(chat, this.#options)
    this.#chats.set(keyOf(chat), added)
    return added
  }

  #forget(unused: LiveChat): void {
    if (this.#find(unused.chat) === unused) this.#chats.delete(keyOf(unused.chat))
  }
}

function ignore(): void {}

/** The client sends the output again until it is stored (LV1581). */
export const NOT_STORED = new ProtocolError('unavailable', { retryAfterSeconds: 1 })
