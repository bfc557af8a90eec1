import { randomUUID } from 'node:crypto'

import { ProtocolError } from '../protocol/errors.ts'
import { toChatKey, type AppChatRef, type ChatRef } from '../shared/chat-ref.ts'
import { OPEN_RUN_LOCK } from './lock-names.ts'
import type { ChatLock, ChatLockHolder, LockStore, OwnLock } from './lock-store.ts'
import type { OwnLease } from './own-lease.ts'

/** The two locks of a chat, which do not exclude each other: that of the turn that writes into it, and that of the run that stays open in it. */
export type LockName = 'turn' | 'open-run'

/** The process that has locked a chat. */
export interface LockOwner {
  readonly worker: string
  readonly token: string
}

/** The chat locks of one process. A lock is valid until it is released, or until the lease of its process expires. */
export class ChatLocks {
  readonly #store: LockStore
  readonly #lease: OwnLease
  readonly #appName: string
  /** The locks that this process holds. */
  readonly #held = new Map<string, OwnLock>()
  /** The tokens of the locks that this process holds, or is taking. */
  readonly #tokens = new Set<string>()

  constructor(store: LockStore, lease: OwnLease, appName: string) {
    this.#store = store
    this.#lease = lease
    this.#appName = appName
  }

  /**
   * Locks a chat and returns the token, or undefined if another process holds the lock. Requests wait for a `background` lock instead
   * of failing. `reads` says that the session of the chat is read next.
   */
  async lock(
    chat: AppChatRef,
    { background = false, reads = false }: Partial<Pick<ChatLock, 'background' | 'reads'>> = {},
  ): Promise<string | undefined> {
    return this.#lock(chat, { token: this.#createToken(), background, reads })
  }

  async unlock(chat: AppChatRef, token: string): Promise<void> {
    const key = toChatKey(chat)
    if (this.#held.get(key)?.token === token) {
      this.#held.delete(key)
      this.#lease.release(key)
    }
    try {
      await this.#store.unlockChat(chat, token)
    } finally {
      this.#tokens.delete(token)
    }
  }

  /** Whether a token is that of a lock that this process holds, or is taking. */
  has(token: string): boolean {
    return this.#tokens.has(token)
  }

  /**
   * Whether this process has lost neither its lock on a chat nor that of the run that stays open in it. It may hold none. The response to
   * a call needs only the lock on the chat, as in `LockedChats`.
   */
  async stillHolds(chat: AppChatRef, { isResponse = false } = {}): Promise<boolean> {
    const chats = isResponse ? [chat] : [chat, toOpenRun(chat)]
    const held = chats.flatMap((key) => this.#held.get(toChatKey(key)) ?? [])
    return !(await Promise.all(held.map((lock) => this.#isLost(lock)))).includes(true)
  }

  /** Whether a lock that this process has not released is stored no more. */
  async #isLost(lock: OwnLock): Promise<boolean> {
    return (await this.findHolder(lock.chat))?.token !== lock.token && this.#isHeld(lock)
  }

  /**
   * LG29: compares the locks of this process with those in the database. Releases those that it does not hold: they could not be
   * released, or the database has lost the release. While this process renews its lease, they would not expire. Returns the chats of
   * which it has lost the lock, or that of the run that stays open in it: another process has taken them over, or the database has lost
   * the lock. If the process has renewed its lease before, no other process takes a lock over that is not returned.
   */
  async reconcile(): Promise<ChatRef[]> {
    const held = [...this.#held.values()]
    const stored = await this.#store.listLocks(this.#lease.worker)
    for (const { chat, token } of stored)
      if (!this.#tokens.has(token)) await this.#store.unlockChat(chat, token)
    const tokens = new Set(stored.map(({ token }) => token))
    return held
      .filter((lock) => !tokens.has(lock.token) && this.#isHeld(lock))
      .map(({ chat: { principalId, chatId } }) => ({ principalId, chatId }))
  }

  /** Whether this process has not released a lock. */
  #isHeld(lock: OwnLock): boolean {
    return this.#held.get(toChatKey(lock.chat)) === lock
  }

  /** Returns an error if another process has taken over a chat. This is then the cause of `thrown`, whatever ADK reports. */
  async findLoss(chat: AppChatRef, thrown: unknown): Promise<ProtocolError | undefined> {
    const isHeld = await this.stillHolds(chat).catch(() => true)
    return isHeld ? undefined : new ProtocolError('turn-lost', { cause: thrown })
  }

  async findHolder(chat: AppChatRef): Promise<ChatLockHolder | undefined> {
    return this.#store.findLockHolder(chat)
  }

  /** Returns the other process with a valid lease that has locked a chat. The token differs for each lock. */
  async findOther(chat: AppChatRef, name: LockName = 'turn'): Promise<LockOwner | undefined> {
    if (await this.isFree(chat, name)) return undefined
    const owner = await this.#findOwner(name === 'open-run' ? toOpenRun(chat) : chat)
    return owner?.worker === this.#lease.worker ? undefined : owner
  }

  /** Whether no other process with a valid lease has a lock of a chat. */
  async isFree({ principalId, chatId }: ChatRef, name: LockName = 'turn'): Promise<boolean> {
    const appName = name === 'open-run' ? this.#appName + OPEN_RUN_LOCK : this.#appName
    return !(await this.#listLockedByOthers(appName, principalId)).includes(chatId)
  }

  /** Whether no other process runs a turn of a chat, or has the run that stays open in it. */
  async isUnused(chat: ChatRef): Promise<boolean> {
    return (await this.isFree(chat)) && (await this.isFree(chat, 'open-run'))
  }

  /** Lists the chats of a principal that other processes have locked. */
  async listLockedByOthers(principalId: string): Promise<string[]> {
    return this.#listLockedByOthers(this.#appName, principalId)
  }

  /** Locks the run that stays open in a chat. Returns undefined if another process holds the lock. */
  async lockOpenRun(chat: AppChatRef): Promise<OwnLock | undefined> {
    const key = toOpenRun(chat)
    const token = this.#createToken()
    const locked = await this.#lock(key, { token, background: true })
    return locked === undefined ? undefined : { chat: key, token }
  }

  /** Whether this process has locked the run that stays open in a chat. */
  holdsOpenRun(chat: AppChatRef): boolean {
    return this.#held.has(toChatKey(toOpenRun(chat)))
  }

  async unlockOpenRun({ chat, token }: OwnLock): Promise<void> {
    await this.unlock(chat, token)
  }

  /** Returns the process that has locked the run that stays open in a chat. Its lease may have expired. */
  async findOpenRunOwner(chat: AppChatRef): Promise<string | undefined> {
    return (await this.#findOwner(toOpenRun(chat)))?.worker
  }

  /** Returns a token that names this process, so that another one can send it a signal. */
  #createToken(): string {
    return `${this.#lease.worker}/${randomUUID()}`
  }

  async #findOwner(chat: AppChatRef): Promise<LockOwner | undefined> {
    const token = (await this.findHolder(chat))?.token
    const worker = token?.split('/', 1)[0]
    return token === undefined || worker === undefined ? undefined : { worker, token }
  }

  async #lock(
    chat: AppChatRef,
    lock: Pick<ChatLock, 'token' | 'background' | 'reads'>,
  ): Promise<string | undefined> {
    const { worker, leaseMs } = this.#lease
    const { token } = lock
    this.#tokens.add(token)
    try {
      if (!(await this.#store.lockChat(chat, { worker, leaseMs, ...lock }))) {
        this.#tokens.delete(token)
        return undefined
      }
    } catch (error) {
      // LG29: it may be stored.
      this.#tokens.delete(token)
      throw error
    }
    const key = toChatKey(chat)
    this.#held.set(key, { chat, token })
    this.#lease.hold(key)
    return token
  }

  #listLockedByOthers(appName: string, principalId: string): Promise<string[]> {
    const { worker, leaseMs } = this.#lease
    return this.#store.listLockedByOthers({ appName, principalId, worker, leaseMs })
  }
}

/** Locks of runs that stay open are chat locks in a namespace of their own. */
function toOpenRun(chat: AppChatRef): AppChatRef {
  return { ...chat, appName: chat.appName + OPEN_RUN_LOCK }
}
