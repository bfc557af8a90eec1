import type { Approval } from '../../approvals/approval.ts'
import type { LiveConversation } from '../../live/live-conversation.ts'
import { LiveWatchers, type LiveWatcher } from '../../live/live-watchers.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import { Quota } from '../../shared/collections.ts'
import { keyOf } from '../../turns/turn-registry.ts'
import type { Turn } from '../../turns/turn.ts'
import type { LazyBackend } from './backend.ts'
import { toAppChat } from './backend.ts'
import type { PrepareConversation, TakenSession } from './live-conversations.ts'
import type { LiveLease, LiveLeases, LiveNeed, ReleaseReply } from './live-leases.ts'
import { LiveSpeakers, PAUSE_MS, type LiveSpeaker } from './live-speakers.ts'
import type { TurnService } from './turns/turn-service.ts'

export interface LiveRunsOptions {
  readonly backend: LazyBackend
  readonly turnService: Pick<TurnService, 'reserve'>
  readonly prepareConversation: PrepareConversation
  /** The leases of live sessions among all processes. */
  readonly leases: LiveLeases
  /** The maximum number of open sessions per principal. */
  readonly maxPerPrincipal: number
  /** How long a session stays open after its last client disconnects, in ms. */
  readonly graceMs: number
  readonly onError: (error: unknown) => void
}

/** The live session of a chat, with its watchers. */
interface LiveChat {
  readonly chat: ChatRef
  readonly watchers: LiveWatchers
  readonly speakers: LiveSpeakers
  run?: LiveConversation | undefined
  /** The lease of the session. */
  lease?: LiveLease | undefined
  /** The session while it is started or checked. Undefined if another process keeps it. */
  opening?: Promise<LiveConversation | undefined> | undefined
  /** The session while it is handed over to another process. */
  handingOver?: Promise<void> | undefined
  /** When audio last arrived from a client whose session another process has taken over. */
  ignoredAt?: number | undefined
  watchTimer?: NodeJS.Timeout
  /** When the session was last found to be up to date with its chat. */
  checkedAt?: number
  graceTimer?: NodeJS.Timeout
}

interface OpenOptions {
  readonly need: LiveNeed
  /** Runs before a session starts. */
  readonly prepare: (() => Promise<void>) | undefined
}

/** How long audio is sent to a session without another check that it is up to date. */
const TRUSTED_MS = 2_000
/** A process whose timers are late by this much may have lost its leases. */
const SUSPENSION_MS = 500
const SUSPENSION_CHECK_MS = 500
/** How long a session that takes the calls of an earlier one waits for the turn of its chat. */
const ADOPTION_MS = 5_000
/** The interval at which a process asks for the session of a client that listens, while the model still replies elsewhere. */
const WATCH_RETRY_MS = 500

/** The live sessions of this process: at most one per chat, started on demand and kept while a client is connected. */
export class LiveRuns {
  readonly #options: LiveRunsOptions
  readonly #chats = new Map<string, LiveChat>()
  readonly #perPrincipal: Quota
  /** Sessions that are being closed. */
  readonly #ending = new Set<Promise<void>>()
  readonly #watchdog: NodeJS.Timeout
  #checkedAt = performance.now()
  #closed = false

  constructor(options: LiveRunsOptions) {
    this.#options = options
    this.#watchdog = setInterval(() => this.#noticeSuspension(), SUSPENSION_CHECK_MS)
    this.#watchdog.unref()
    this.#perPrincipal = new Quota(options.maxPerPrincipal)
  }

  /** Whether any session is open. */
  get busy(): boolean {
    return this.size > 0
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
    return this.#chats.get(keyOf(chat))?.watchers.hasListeners === true
  }

  /** Returns the open session of a chat, if there is one. */
  find(chat: ChatRef): LiveConversation | undefined {
    return this.#chats.get(keyOf(chat))?.run
  }

  /** Whether a chat has a session, or one is being started. */
  isTalking(chat: ChatRef): boolean {
    const { run, opening } = this.#chats.get(keyOf(chat)) ?? {}
    return run !== undefined || opening !== undefined
  }

  /** Whether a session of this process made the call of an approval and continues after its decision. */
  holds({ chat, toolCallId }: Approval): boolean {
    return this.find(chat)?.calls?.has(toolCallId) === true
  }

  /** Returns the session of a chat. Starts a new one, after `prepare`, if there is none or if it is not up to date with the chat. */
  async open(
    chat: ChatRef,
    prepare?: () => Promise<void>,
    need: LiveNeed = 'input',
  ): Promise<LiveConversation> {
    for (;;) {
      const run = await this.#startOpening(chat, { need, prepare })
      // The session may have been requested for a client that only listens.
      if (run) return run
    }
  }

  /**
   * Returns the session of a chat for a client that listens. Returns undefined if another process keeps the session for its own
   * clients. If the model replies there and no client listens, takes the session over afterwards.
   */
  async join(chat: ChatRef, prepare?: () => Promise<void>): Promise<LiveConversation | undefined> {
    return this.#startOpening(chat, { need: 'watch', prepare })
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
    const entry = this.#entryOf(chat)
    if (speaker && !this.#hears(entry, speaker)) return undefined
    const { run, opening, checkedAt = -Infinity } = entry
    const isTrusted = performance.now() - checkedAt < TRUSTED_MS
    if (run && !opening && isTrusted) return run
    return this.open(chat, prepare, speaker ? 'speech' : 'input')
  }

  #hears(entry: LiveChat, speaker: LiveSpeaker): boolean {
    const { run, opening, ignoredAt = -Infinity, speakers } = entry
    const now = performance.now()
    if (run || opening || now - ignoredAt >= PAUSE_MS) return speakers.hears(speaker)
    entry.ignoredAt = now
    return false
  }

  /** Lets the next audio of a client take the session over, although another client, or another process, has it. */
  allowSpeech(chat: ChatRef, speaker: LiveSpeaker): void {
    const entry = this.#entryOf(chat)
    entry.ignoredAt = undefined
    entry.speakers.allow(speaker)
  }

  /** Ends the speech of a client. Returns false if the model hears another client. */
  endSpeech(chat: ChatRef, speaker: LiveSpeaker): boolean {
    return this.#chats.get(keyOf(chat))?.speakers.end(speaker) ?? true
  }

  /** Resolves when no session of a chat is being started. Its start records the agent of the chat. */
  async whenStarted(chat: ChatRef): Promise<void> {
    await settled(this.#chats.get(keyOf(chat))?.opening)
  }

  #startOpening(chat: ChatRef, how: OpenOptions): Promise<LiveConversation | undefined> {
    const entry = this.#entryOf(chat)
    entry.opening ??= this.#open(entry, how).finally(() => {
      entry.opening = undefined
      // The client may have disconnected meanwhile.
      this.#startGracePeriod(entry)
    })
    return entry.opening
  }

  async #open(
    entry: LiveChat,
    { need, prepare }: OpenOptions,
  ): Promise<LiveConversation | undefined> {
    await settled(entry.handingOver)
    if (entry.run) {
      const [isCurrent, isHeld] = await Promise.all([entry.run.isCurrent(), this.#isHeld(entry)])
      if (!isCurrent && isHeld) await this.#leaveHere(entry)
    }
    const run = entry.run ?? (await this.#take(entry, { need, prepare }))
    if (run) entry.run = run
    entry.checkedAt = performance.now()
    return run
  }

  /** Starts a session, or continues the one of another process. */
  async #take(
    entry: LiveChat,
    { need, prepare }: OpenOptions,
  ): Promise<LiveConversation | undefined> {
    if (this.#closed) throw new ProtocolError('unavailable')
    const backend = await this.#options.backend.get()
    const lease = await this.#options.leases.take(toAppChat(backend, entry.chat), need)
    if (typeof lease === 'string') {
      if (lease === 'busy') this.#joinLater(entry, prepare)
      return undefined
    }
    try {
      // A running session would not see what `prepare` writes, so it runs first.
      await prepare?.()
      const run = await this.#continue(entry, lease)
      entry.lease = lease
      entry.ignoredAt = undefined
      return run
    } catch (error) {
      await lease.release(lease.continues)
      throw error
    }
  }

  #joinLater(entry: LiveChat, prepare: OpenOptions['prepare']): void {
    clearTimeout(entry.watchTimer)
    entry.watchTimer = setTimeout(() => {
      if (this.#closed || !entry.watchers.hasListeners || entry.run || entry.opening) return
      this.join(entry.chat, prepare).catch(this.#options.onError)
    }, WATCH_RETRY_MS)
    entry.watchTimer.unref()
  }

  /**
   * Starts a session that takes the calls of an earlier one. Turns that resume after a crash may continue the same calls, so none runs
   * until the session has taken them. If the chat is not free, its turn continues the calls, and the session takes none.
   */
  async #continue(entry: LiveChat, lease: LiveLease): Promise<LiveConversation> {
    const { continues } = lease
    if (!continues || continues.calls.length === 0) return this.#start(entry, { lease, continues })
    const release = await this.#options.turnService.reserve(entry.chat, ADOPTION_MS)
    if (!release) return this.#start(entry, { lease, continues: { ...continues, calls: [] } })
    try {
      const run = await this.#start(entry, { lease, continues })
      void run.adopted.then(release)
      return run
    } catch (error) {
      release()
      throw error
    }
  }

  async #start(entry: LiveChat, taken: TakenSession): Promise<LiveConversation> {
    const { chat, watchers } = entry
    const start = await this.#options.prepareConversation(chat)
    // There is no `await` until the conversation exists, so `close` cannot miss it.
    if (this.#closed) throw new ProtocolError('unavailable')
    const release = this.#perPrincipal.take(chat.principalId)
    if (!release) throw new ProtocolError('too-many-live-chats')
    try {
      const run = start(watchers, taken)
      void this.#forgetWhenEnded(entry, run).finally(release)
      return run
    } catch (thrown) {
      release()
      throw thrown
    }
  }

  async #forgetWhenEnded(entry: LiveChat, run: LiveConversation): Promise<void> {
    await run.ended
    if (entry.run === run) await this.#leaveHere(entry)
    if (!entry.run && !entry.opening && entry.watchers.isEmpty) this.#forget(entry)
  }

  /** Subscribes to the session of a chat. Returns a function that unsubscribes; the session then stays open for `graceMs`. */
  watch(chat: ChatRef, watcher: LiveWatcher): () => void {
    const entry = this.#entryOf(chat)
    clearTimeout(entry.graceTimer)
    entry.watchers.add(watcher)
    return () => {
      entry.watchers.delete(watcher)
      this.#startGracePeriod(entry)
    }
  }

  /** Sends a turn that no live session produced to the watchers of a chat. */
  show(chat: ChatRef, turn: Turn): void {
    this.#chats.get(keyOf(chat))?.watchers.onTurn(turn)
  }

  approvalChanged(approval: Approval): void {
    this.find(approval.chat)?.calls?.approvalChanged(approval)
  }

  /** Starts the grace period of a session without clients. Removes the entry if there is no session. */
  #startGracePeriod(entry: LiveChat): void {
    if (!entry.watchers.isEmpty || this.#closed) return
    if (!entry.run && !entry.opening && !entry.handingOver) return this.#forget(entry)
    const { graceMs, onError } = this.#options
    clearTimeout(entry.graceTimer)
    entry.graceTimer = setTimeout(() => void this.#abandon(entry).catch(onError), graceMs)
    entry.graceTimer.unref()
  }

  /** Closes a session, even one that is being started, if no client has returned. */
  async #abandon(entry: LiveChat): Promise<void> {
    await settled(entry.opening)
    if (!entry.watchers.isEmpty || this.#closed) return
    this.#forget(entry)
    await this.#leaveHere(entry)
  }

  /** Another process needs the session of a chat. Resolves when the session is closed and its lease has ended. */
  async release(chat: ChatRef, need: LiveNeed): Promise<ReleaseReply> {
    const entry = this.#chats.get(keyOf(chat))
    await settled(entry?.opening)
    if (need === 'speech') entry?.speakers.silence()
    const { run, handingOver } = entry ?? {}
    if (!entry || !run) {
      await settled(handingOver)
      return 'released'
    }
    if (need === 'watch' && !entry.watchers.isEmpty) return 'in-use'
    if (need === 'watch' && run.isBusy) return 'busy'
    await this.#handOver(entry)
    entry.ignoredAt = performance.now()
    entry.watchers.onStatus('moved')
    return 'released'
  }

  /** Closes the session of a chat, and stores what another process needs to continue it. */
  #handOver(entry: LiveChat): Promise<void> {
    entry.handingOver ??= this.#closeAndSave(entry).finally(() => {
      entry.handingOver = undefined
      this.#startGracePeriod(entry)
    })
    return entry.handingOver
  }

  async #closeAndSave(entry: LiveChat): Promise<void> {
    const { run, lease } = detach(entry)
    const snapshot = await run?.handOver()
    await lease?.release(snapshot)
  }

  /** Closes the session of a chat, in any process. Its messages stay stored. */
  async leave(chat: ChatRef): Promise<void> {
    const entry = this.#chats.get(keyOf(chat))
    await settled(entry?.handingOver)
    if (entry?.run) return this.#leaveHere(entry)
    const key = toAppChat(await this.#options.backend.get(), chat)
    await this.#options.leases.end(key)
  }

  async #leaveHere(entry: LiveChat): Promise<void> {
    const { run, lease } = detach(entry)
    await run?.close()
    await lease?.release()
  }

  /** Hands idle sessions over to other processes. Returns true if none is left. */
  closeIdle(): boolean {
    for (const entry of this.#chats.values()) {
      const { run } = entry
      if (!run || run.isBusy || entry.handingOver) continue
      const handedOver = this.#handOver(entry)
        .catch(this.#options.onError)
        .finally(() => this.#ending.delete(handedOver))
      this.#ending.add(handedOver)
    }
    return !this.busy && this.#ending.size === 0
  }

  /** Closes all sessions and starts no new ones. Sockets may still be open. */
  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#watchdog)
    const chats = [...this.#chats.values()]
    for (const { graceTimer, watchTimer } of chats) {
      clearTimeout(graceTimer)
      clearTimeout(watchTimer)
    }
    await Promise.all(
      chats.map(async (entry) => {
        await settled(entry.opening)
        await settled(entry.handingOver)
        await this.#closeAndSave(entry)
      }),
    )
    await Promise.all(this.#ending)
    this.#chats.clear()
  }

  /** A process that was suspended for longer than its lease may have lost its sessions to other processes. */
  #noticeSuspension(): void {
    const now = performance.now()
    const isLate = now - this.#checkedAt > SUSPENSION_CHECK_MS + SUSPENSION_MS
    this.#checkedAt = now
    if (!isLate) return
    for (const entry of this.#chats.values()) void this.#isHeld(entry).catch(this.#options.onError)
  }

  /** Whether the session of a chat still belongs to this process. Ends the session here if not. */
  async #isHeld(entry: LiveChat): Promise<boolean> {
    const { run, lease } = entry
    if (!run || !lease || (await lease.isHeld())) return true
    if (entry.run === run) detach(entry)
    await run.abandon()
    await lease.release()
    return false
  }

  #entryOf(chat: ChatRef): LiveChat {
    const key = keyOf(chat)
    const known = this.#chats.get(key)
    if (known) return known
    const entry: LiveChat = { chat, watchers: new LiveWatchers(), speakers: new LiveSpeakers() }
    this.#chats.set(key, entry)
    return entry
  }

  #forget(entry: LiveChat): void {
    clearTimeout(entry.graceTimer)
    clearTimeout(entry.watchTimer)
    const key = keyOf(entry.chat)
    if (this.#chats.get(key) === entry) this.#chats.delete(key)
  }
}

/** Takes the session out of its entry, so that nothing uses it while it ends. */
function detach(entry: LiveChat): Pick<LiveChat, 'run' | 'lease'> {
  const { run, lease } = entry
  entry.run = undefined
  entry.lease = undefined
  return { run, lease }
}

function ignore(): void {}

/** Waits until a promise settles, and ignores its result. */
async function settled(work: Promise<unknown> | undefined): Promise<void> {
  await work?.then(ignore, ignore)
}
