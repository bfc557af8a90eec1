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

/**
 * The chats that this process has locked, with their fencing tokens. A write to such a chat succeeds only while the
 * database holds the same token.
 */
export class LockedChats {
  readonly #tokens = new Map<string, string>()

  /** Returns the token of this process's lock on a chat, or undefined if it holds none. */
  tokenOf(key: SessionKey): string | undefined {
    return this.#tokens.get(joinKey(key))
  }

  /**
   * Returns the tokens that the database must hold for a write: of the turn, and of the run that stays open in the chat. The response to
   * a call needs only that of the turn: it is stored if the session still has the call.
   */
  fenceOf([appName, userId, sessionId]: SessionKey, { isResponse = false } = {}): string[] {
    const appNames = isResponse ? [appName] : [appName, appName + OPEN_RUN_LOCK]
    return appNames.flatMap((name) => this.tokenOf([name, userId, sessionId]) ?? [])
  }

  hold(key: SessionKey, token: string): void {
    this.#tokens.set(joinKey(key), token)
  }

  /** Returns false if this process does not hold this lock any more. */
  release(key: SessionKey, token: string): boolean {
    return this.tokenOf(key) === token && this.#tokens.delete(joinKey(key))
  }
}

/** A principal of an application. */
export type Owner = Omit<AppChatRef, 'chatId'>
