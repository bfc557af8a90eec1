import type { LiveConversation } from './session/live-conversation.ts'
import type { LiveSnapshot } from './session/live-snapshot.ts'
import { LiveWatchers, type LiveWatcher } from './session/live-watchers.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import type { Quota } from '../../shared/collections.ts'
import type { LazyBackend } from '../../server/chats/backend.ts'
import { toAppChat } from '../../server/chats/backend.ts'
import type { PrepareConversation, TakenSession } from './live-conversations.ts'
import type {
  LiveLease,
  LiveLeases,
  LiveNeed,
  ReleaseReply,
  ReleaseRequest,
} from './live-leases.ts'
import { LiveSpeakers, type LiveSpeaker } from './live-speakers.ts'
import type { TurnService } from '../../server/chats/turns/turn-service.ts'

/** What the live sessions of a process share. */
export interface LiveChatOptions {
  readonly backend: LazyBackend
  readonly turnService: Pick<TurnService, 'reserve'>
  readonly prepareConversation: PrepareConversation
  /** The leases of live sessions among all processes. */
  readonly leases: LiveLeases
  /** The open sessions of each principal. */
  readonly perPrincipal: Quota
  /** How long a session stays open after its last client disconnects, in ms. */
  readonly graceMs: number
  /** Whether the process starts no more sessions. */
  readonly isClosed: () => boolean
  /** Called when a chat has neither a session nor a client. */
  readonly onUnused: (chat: LiveChat) => void
  readonly onError: (error: unknown) => void
}

interface OpenOptions {
  readonly need: LiveNeed
  /** Runs before a session starts. */
  readonly prepare: (() => Promise<void>) | undefined
  /** The message that the session is needed for. */
  readonly userMessageId?: string | undefined
}

/** How long audio is sent to a session without another check that it is up to date. */
const TRUSTED_MS = 2_000
/** How long a session that takes the calls of an earlier one waits for the turn of its chat. */
const ADOPTION_MS = 5_000
/** The interval at which a process asks for the session of a client that listens, while the model still replies elsewhere. */
const WATCH_RETRY_MS = 500

/** One chat with its clients, and its live session if this process has it. */
export class LiveChat {
  readonly chat: ChatRef
  readonly watchers = new LiveWatchers()
  readonly speakers = new LiveSpeakers()
  readonly #options: LiveChatOptions
  #run: LiveConversation | undefined
  #lease: LiveLease | undefined
  /** The session while it is started or checked. Undefined if another process keeps it. */
  #opening: Promise<LiveConversation | undefined> | undefined
  /** Set while the session closes. It may still write, and has its lease. */
  #closing: Promise<void> | undefined
  /** When the session was last found to be up to date with its chat. */
  #checkedAt = -Infinity
  #watchTimer: NodeJS.Timeout | undefined
  #graceTimer: NodeJS.Timeout | undefined

  constructor(chat: ChatRef, options: LiveChatOptions) {
    this.chat = chat
    this.#options = options
  }

  /** The open session. */
  get run(): LiveConversation | undefined {
    return this.#run
  }

  /** Whether there is a session, or one is being started. */
  get isTalking(): boolean {
    return this.#run !== undefined || this.#opening !== undefined
  }

  /** Whether there is a session, also one that is being started or closes. */
  get isUsed(): boolean {
    return this.isTalking || this.#closing !== undefined
  }

  /** Whether the open session does nothing. */
  get isIdle(): boolean {
    return this.#run?.isBusy === false
  }

  /** The open session, if it was found to be up to date a moment ago. */
  get trusted(): LiveConversation | undefined {
    const isTrusted = performance.now() - this.#checkedAt < TRUSTED_MS
    return this.#opening || !isTrusted ? undefined : this.#run
  }

  /** Resolves when no session is being started. */
  async whenStarted(): Promise<void> {
    await settled(this.#opening)
  }

  /** Returns the session, after a check that it is up to date, or starts a new one. Returns undefined if another process keeps it. */
  open(how: OpenOptions): Promise<LiveConversation | undefined> {
    this.#opening ??= this.#open(how).finally(() => {
      this.#opening = undefined
      // The client may have disconnected meanwhile.
      this.#startGracePeriod()
    })
    return this.#opening
  }

  /** Whether the model is to hear audio of a client that arrives now. */
  hears(speaker: LiveSpeaker): boolean {
    return this.speakers.hears(speaker, this.isTalking)
  }

  async #open(how: OpenOptions): Promise<LiveConversation | undefined> {
    if (this.#run) {
      const [isCurrent, isHeld] = await Promise.all([this.#run.isCurrent(), this.isHeld()])
      if (!isCurrent && isHeld) await this.#end()
    }
    await settled(this.#closing)
    this.#run ??= await this.#take(how)
    this.#checkedAt = performance.now()
    return this.#run
  }

  /** Starts a session, or continues the one of another process. */
  async #take({
    need,
    prepare,
    userMessageId,
  }: OpenOptions): Promise<LiveConversation | undefined> {
    const { backend, leases, isClosed } = this.#options
    if (isClosed()) throw new ProtocolError('unavailable')
    const lease = await leases.take(toAppChat(await backend.get(), this.chat), need, userMessageId)
    if (typeof lease === 'string') {
      if (lease === 'busy') this.#watchLater(prepare)
      return undefined
    }
    try {
      // A running session would not see what `prepare` writes, so it runs first.
      await prepare?.()
      const run = await this.#continue(lease)
      this.#lease = lease
      this.speakers.returned()
      return run
    } catch (error) {
      await lease.release(lease.continues)
      throw error
    }
  }

  #watchLater(prepare: OpenOptions['prepare']): void {
    const { isClosed, onError } = this.#options
    clearTimeout(this.#watchTimer)
    this.#watchTimer = setTimeout(() => {
      if (isClosed() || !this.watchers.hasListeners || this.isTalking) return
      this.open({ need: 'watch', prepare }).catch(onError)
    }, WATCH_RETRY_MS)
    this.#watchTimer.unref()
  }

  /**
   * Starts a session that takes the calls of an earlier one. Turns that resume after a crash may continue the same calls, so none runs
   * until the session has taken them. If the chat is not free, its turn continues the calls, and the session takes none.
   */
  async #continue(lease: LiveLease): Promise<LiveConversation> {
    const { continues } = lease
    if (!continues || continues.calls.length === 0) return this.#start({ lease, continues })
    const release = await this.#options.turnService.reserve(this.chat, ADOPTION_MS)
    if (!release) return this.#start({ lease, continues: { ...continues, calls: [] } })
    try {
      const run = await this.#start({ lease, continues })
      void run.adopted.then(release)
      return run
    } catch (error) {
      release()
      throw error
    }
  }

  async #start(taken: TakenSession): Promise<LiveConversation> {
    const { prepareConversation, perPrincipal, isClosed } = this.#options
    const start = await prepareConversation(this.chat)
    // There is no `await` until the conversation exists, so `close` cannot miss it.
    if (isClosed()) throw new ProtocolError('unavailable')
    const release = perPrincipal.take(this.chat.principalId)
    if (!release) throw new ProtocolError('too-many-live-chats')
    try {
      const run = start(this.watchers, taken)
      void this.#endWith(run).finally(release)
      return run
    } catch (thrown) {
      release()
      throw thrown
    }
  }

  /** Ends the session when its conversation has ended. */
  async #endWith(run: LiveConversation): Promise<void> {
    await run.ended
    if (this.#run === run) await this.#end()
    this.#dropIfUnused()
  }

  /** Adds a client. Returns a function that removes it; the session then stays open for `graceMs`. */
  watch(watcher: LiveWatcher): () => void {
    clearTimeout(this.#graceTimer)
    this.watchers.add(watcher)
    return () => {
      this.watchers.delete(watcher)
      this.#startGracePeriod()
    }
  }

  /** Starts the grace period of a session without clients. */
  #startGracePeriod(): void {
    const { graceMs, isClosed, onError } = this.#options
    if (!this.watchers.isEmpty || isClosed()) return
    if (!this.isUsed) return this.#drop()
    clearTimeout(this.#graceTimer)
    this.#graceTimer = setTimeout(() => void this.#abandon().catch(onError), graceMs)
    this.#graceTimer.unref()
  }

  /** Closes a session, even one that is being started, if no client has returned. */
  async #abandon(): Promise<void> {
    await this.whenStarted()
    if (!this.watchers.isEmpty || this.#options.isClosed()) return
    await this.#end()
    this.#dropIfUnused()
  }

  #dropIfUnused(): void {
    if (!this.isUsed && this.watchers.isEmpty) this.#drop()
  }

  #drop(): void {
    this.clearTimers()
    this.#options.onUnused(this)
  }

  /** Another process needs the session. Resolves when the session is closed and its lease has ended. */
  async release({ need, userMessageId }: ReleaseRequest): Promise<ReleaseReply> {
    await this.whenStarted()
    if (need === 'speech') this.speakers.silence()
    if (!this.#run) {
      await settled(this.#closing)
      return 'released'
    }
    if (need === 'watch' && !this.watchers.isEmpty) return 'in-use'
    if (need === 'watch' && this.#run.isBusy) return 'busy'
    if (this.#run.isSending) {
      // LV1640: the other process may have received the same message. It asks again if not.
      await this.#run.whenSent()
      return 'in-use'
    }
    if (userMessageId !== undefined && this.#run.messages.hasStored(userMessageId)) return 'in-use'
    await this.handOver()
    this.speakers.moved()
    this.watchers.onStatus('moved')
    return 'released'
  }

  /** Closes the session, and stores what another process needs to continue it. */
  async handOver(): Promise<void> {
    await this.#close((run) => run.handOver())
    this.#startGracePeriod()
  }

  /** Closes the session, even one that is being started. Its messages stay stored. Returns false if this process does not have it. */
  async leave(): Promise<boolean> {
    await this.whenStarted()
    const isOpen = this.#run !== undefined
    await this.#end()
    return isOpen
  }

  #end(): Promise<void> {
    return this.#close((run) => run.close())
  }

  /** Whether the session still belongs to this process. Ends the session here if not. */
  async isHeld(): Promise<boolean> {
    const run = this.#run
    const lease = this.#lease
    if (!run || !lease || (await lease.isHeld())) return true
    if (this.#run === run) await this.closeLost()
    return false
  }

  /** Closes the session, because another process has the chat. */
  closeLost(): Promise<void> {
    return this.#close((run) => run.abandon())
  }

  /** Closes the session, even one that is being started, because the process closes. */
  async close(): Promise<void> {
    await this.whenStarted()
    await this.#close((run) => run.handOver())
  }

  /** Takes the session out, so that nothing uses it while it ends, and releases its lease afterwards. */
  async #close(end: (run: LiveConversation) => Promise<LiveSnapshot | void>): Promise<void> {
    const run = this.#run
    const lease = this.#lease
    // It has no session, or closes already.
    if (!run) return settled(this.#closing)
    this.#run = undefined
    this.#lease = undefined
    const closing = end(run)
      .then((snapshot) => lease?.release(snapshot ?? undefined))
      .finally(() => {
        this.#closing = undefined
      })
    this.#closing = closing
    return closing
  }

  clearTimers(): void {
    clearTimeout(this.#graceTimer)
    clearTimeout(this.#watchTimer)
  }
}

function ignore(): void {}

/** Waits until a promise settles, and ignores its result. */
async function settled(work: Promise<unknown> | undefined): Promise<void> {
  await work?.then(ignore, ignore)
}
