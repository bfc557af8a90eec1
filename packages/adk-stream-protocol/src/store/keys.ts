import type { CompositeSessionKey } from '@google/adk'
import { OPEN_RUN_LOCK } from '../locks/lock-names.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import { StoreError } from './store-error.ts'

export type SessionKey = [appName: string, userId: string, sessionId: string]

/** Validates the three ids of a session, which come from requests, and returns them in column order. */
export function sessionKey({ appName, userId, sessionId }: CompositeSessionKey): SessionKey {
  return [
    checkName('appName', appName),
    checkName('userId', userId),
    checkName('sessionId', sessionId),
  ]
}

/** Validates the three ids of a chat, and returns them in column order. ADK calls the chat a session, and its principal the user. */
export function chatColumns({ appName, principalId, chatId }: AppChatRef): SessionKey {
  return [
    checkName('appName', appName),
    checkName('principalId', principalId),
    checkName('chatId', chatId),
  ]
}

/** Validates the two ids of the owner of data, and returns them in column order. */
export function ownerColumns({ appName, principalId }: Owner): [string, string] {
  return [checkName('appName', appName), checkName('principalId', principalId)]
}

/** Throws if a text column would not return the name unchanged. Otherwise two names could become the same. */
export function checkName(what: string, name: unknown): string {
  if (typeof name === 'string' && isStorable(name)) return name
  throw new StoreError(
    'invalid',
    `\`${what}\` must be a string without NUL characters or lone surrogates.`,
  )
}

/** Whether a text column returns a name unchanged. */
export function isStorable(name: string): boolean {
  return name.isWellFormed() && !name.includes('\0')
}

/** Returns a key as one string. The names contain no NUL character. */
export function joinKey(key: SessionKey): string {
  return key.join('\0')
}

/** A lock of this process on a chat, with its fencing token. */
export interface HeldLock {
  readonly key: SessionKey
  readonly worker: string
  readonly token: string
}

/**
 * The chats that this process has locked, with their fencing tokens. A write to such a chat succeeds only while the
 * database holds the same token.
 */
export class LockedChats {
  readonly #locks = new Map<string, HeldLock>()

  /** Returns this process's lock on a chat, or undefined if it holds none. */
  lockOf(key: SessionKey): HeldLock | undefined {
    return this.#locks.get(joinKey(key))
  }

  /**
   * Returns the locks whose tokens the database must hold for a write: of the turn, and of the run that stays open in the chat. The
   * response to a call needs only that of the turn: it is stored if the session still has the call.
   */
  fenceOf([appName, userId, sessionId]: SessionKey, { isResponse = false } = {}): HeldLock[] {
    const appNames = isResponse ? [appName] : [appName, appName + OPEN_RUN_LOCK]
    return appNames.flatMap((name) => this.lockOf([name, userId, sessionId]) ?? [])
  }

  hold(key: SessionKey, { worker, token }: Pick<HeldLock, 'worker' | 'token'>): void {
    this.#locks.set(joinKey(key), { key, worker, token })
  }

  /** Whether this process has not released a lock, nor taken it again. */
  holds(lock: HeldLock): boolean {
    return this.lockOf(lock.key) === lock
  }

  /** Returns false if this process does not hold this lock any more. */
  release(key: SessionKey, token: string): boolean {
    return this.lockOf(key)?.token === token && this.#locks.delete(joinKey(key))
  }
}

/** A principal of an application. */
export type Owner = Omit<AppChatRef, 'chatId'>
