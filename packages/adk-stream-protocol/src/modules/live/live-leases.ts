import { setTimeout as delay } from 'node:timers/promises'

import type { z } from 'zod'

import type { OwnLock } from '../../locks/lock-store.ts'
import type { Ledger } from '../../approvals/ledger.ts'
import { LiveSnapshot } from './session/live-snapshot.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { toChatKey, type AppChatRef } from '../../shared/chat-ref.ts'
import { openJson, sealJson } from '../../server/auth/seal.ts'
import type { Backend } from '../../server/chats/backend.ts'
import { RELEASE } from './live-requests.ts'
import type { OtherServers } from '../../server/chats/other-servers.ts'

/** The right to talk to the model in a chat. One process has it at a time. */
export interface LiveLease {
  /** The session of another process that this one continues, if its state is known. */
  readonly continues: LiveSnapshot | undefined
  /** Whether no other process has taken over the session, or the chat while a turn of the session has it. */
  isHeld(): Promise<boolean>
  /** Stores what another process needs to continue the session after a crash of this one. Returns false if the lease is lost. */
  save(snapshot: LiveSnapshot): Promise<boolean>
  /** Gives the session up. With a snapshot, another process can continue it. */
  release(snapshot?: LiveSnapshot): Promise<void>
}

/**
 * How much a client needs a live session. `input`: it has something for the model, so its process takes the session over. `speech`: it
 * also takes over from the client that speaks. `watch`: it listens, so its process takes the session over only if the session has no
 * other client.
 */
export type LiveNeed = z.infer<typeof RELEASE.body>['need']

/** A request of another process for the session of a chat. */
export type ReleaseRequest = Omit<z.infer<typeof RELEASE.body>, 'chat'>

/** What the process of a live session replies when another one needs it. `busy`: the session has no client, and the model replies. */
export type ReleaseReply = z.infer<typeof RELEASE.reply>

type LeaseStores = Pick<Backend, 'ledger' | 'store'>

interface LiveLeasesOptions {
  readonly backend: { readonly get: () => Promise<LeaseStores> }
  /** If they cannot be asked, processes do not know of each other's live sessions. */
  readonly servers: Pick<OtherServers, 'ask'>
  readonly onError: (error: unknown) => void
}

/** The leases of live sessions. */
export interface LiveLeases {
  /** Returns the other process that holds the live session of a chat. Its lease may have expired. */
  findOther(chat: AppChatRef): Promise<string | undefined>
  /**
   * Takes the live session of a chat: from a process that gives it up, or from one whose lease has expired. Returns the reply of a
   * process that keeps it. Throws `unavailable` if the other process neither replies nor loses its lease.
   */
  take(
    chat: AppChatRef,
    need: LiveNeed,
    userMessageId?: string,
  ): Promise<LiveLease | Exclude<ReleaseReply, 'released'>>
  /** Ends the live session of a chat in another process. Removes its snapshot. */
  end(chat: AppChatRef): Promise<void>
  /**
   * Does work while no process has the live session of a chat, or takes it. Removes the snapshot of an earlier one. Returns false at once,
   * without the work, if a process has the session.
   */
  whileNone(chat: AppChatRef, work: () => Promise<void>): Promise<boolean>
}

export function openLiveLeases({ backend, servers, onError }: LiveLeasesOptions): LiveLeases {
  const findOther: LiveLeases['findOther'] = async (chat) => {
    const { locks, worker } = (await backend.get()).ledger
    const owner = servers.ask && (await locks.findOpenRunOwner(chat))
    return owner === worker ? undefined : owner
  }
  const take: LiveLeases['take'] = async (chat, need, userMessageId) => {
    const stores = await backend.get()
    const { ask } = servers
    if (!ask) return UNSHARED
    const taken = await lockSession(stores.ledger, chat, (owner) =>
      ask(owner, RELEASE, { chat, need, userMessageId }),
    )
    if (typeof taken === 'string') return taken
    const lease = new SharedLease(stores, { chat, lock: taken, onError })
    await lease.readSnapshot()
    return lease
  }
  const end: LiveLeases['end'] = async (chat) => {
    const { store } = await backend.get()
    if ((await findOther(chat)) === undefined) return store.liveSessions?.drop(chat)
    let lease = await take(chat, 'input')
    while (typeof lease === 'string') lease = await take(chat, 'input')
    await lease.release()
  }
  const whileNone: LiveLeases['whileNone'] = async (chat, work) => {
    const stores = await backend.get()
    const { locks } = stores.ledger
    const isShared = servers.ask !== undefined
    if (isShared && locks.holdsOpenRun(chat)) return false
    const lock = isShared ? await locks.lockOpenRun(chat) : undefined
    if (isShared && !lock) return false
    const lease = lock ? new SharedLease(stores, { chat, lock, onError }) : UNSHARED
    try {
      await work()
    } finally {
      await lease.release()
    }
    return true
  }
  return { findOther, take, end, whileNone }
}

/** The interval at which a process tries to take over the session of a process that does not answer. */
const RETRY_MS = 100

/** Gemini accepts a handle for two hours. */
const MAX_AGE_MS = 2 * 60 * 60 * 1000

/** Locks the live session of a chat. Until it is free, asks its process to release it. Returns the reply of a process that keeps it. */
async function lockSession(
  ledger: Ledger,
  chat: AppChatRef,
  askToRelease: (owner: string) => Promise<ReleaseReply>,
): Promise<OwnLock | Exclude<ReleaseReply, 'released'>> {
  const lastTryAt = performance.now() + 2 * ledger.leaseMs
  let asked: Promise<void> | undefined
  let reply: ReleaseReply | undefined
  for (;;) {
    // If this process is slow, it still tries once after the lease of the other one.
    const isLast = performance.now() > lastTryAt
    const lock = await ledger.locks.lockOpenRun(chat)
    if (lock) return lock
    const owner = asked ? undefined : await ledger.locks.findOpenRunOwner(chat)
    if (owner !== undefined)
      asked = askToRelease(owner)
        .then((answer) => void (reply = answer))
        // It has crashed, or is about to close. Its lease ends.
        .catch(() => undefined)
        .finally(() => {
          asked = undefined
        })
    await (asked ? Promise.race([asked, delay(RETRY_MS)]) : delay(1))
    if (reply === 'in-use' || reply === 'busy') return reply
    if (isLast)
      throw new ProtocolError('unavailable', { message: NOT_RELEASED, retryAfterSeconds: 5 })
  }
}

/** The lock of a live session, and how errors of its snapshot are reported. */
interface LockedSession {
  readonly chat: AppChatRef
  readonly lock: OwnLock
  readonly onError: (error: unknown) => void
}

/** A lease that other processes respect. */
class SharedLease implements LiveLease {
  readonly #stores: LeaseStores
  readonly #session: LockedSession
  continues: LiveSnapshot | undefined

  constructor(stores: LeaseStores, session: LockedSession) {
    this.#stores = stores
    this.#session = session
  }

  /** Reads the session of another process that this one continues. */
  async readSnapshot(): Promise<void> {
    const { store } = this.#stores
    const { chat, onError } = this.#session
    try {
      const sealed = await store.liveSessions?.find(chat)
      this.continues = sealed && openSnapshot(chat, sealed, await store.secret(SECRET))
    } catch (error) {
      onError(error)
    }
  }

  async isHeld(): Promise<boolean> {
    // Another process may have continued the turn without a live session.
    return this.#stores.ledger.locks.stillHolds(this.#session.chat)
  }

  async save(snapshot: LiveSnapshot): Promise<boolean> {
    const { store } = this.#stores
    const { chat, lock } = this.#session
    if (!store.liveSessions) return this.isHeld()
    const sealed = sealSnapshot(chat, snapshot, await store.secret(SECRET))
    return store.liveSessions.save(chat, sealed, { lock, maxAgeMs: MAX_AGE_MS })
  }

  async release(snapshot?: LiveSnapshot): Promise<void> {
    const { ledger, store } = this.#stores
    const { chat, lock, onError } = this.#session
    try {
      if (snapshot) await this.save(snapshot)
      else if (await this.isHeld()) await store.liveSessions?.drop(chat)
    } catch (error) {
      // The session is restored from its messages.
      onError(error)
    }
    // If this fails, the lock expires with the lease.
    await ledger.locks.unlockOpenRun(lock).catch(onError)
  }
}

/** The name of the secret that encrypts snapshots. */
const SECRET = 'live-sessions'

const NOT_RELEASED = 'Another server holds this live session and does not answer. Try again.'

const UNSHARED: LiveLease = {
  continues: undefined,
  isHeld: async () => true,
  save: async () => true,
  release: async () => undefined,
}

/** Encrypts a snapshot of a live session: its handle gives access to the conversation at Google. */
export function sealSnapshot(chat: AppChatRef, snapshot: LiveSnapshot, key: Buffer): Uint8Array {
  return sealJson(snapshot, toChatKey(chat), key)
}

/** Decrypts a snapshot. Throws if it was changed, or belongs to another chat. */
export function openSnapshot(chat: AppChatRef, sealed: Uint8Array, key: Buffer): LiveSnapshot {
  return LiveSnapshot.parse(openJson(sealed, toChatKey(chat), key))
}
