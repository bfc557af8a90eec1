import type { SessionKey } from './session-key.ts'

/**
 * The chats that this process has locked, with their fencing tokens. A write to such a chat succeeds only while the
 * database holds the same token.
 */
export class LockedChats {
  readonly #tokens = new Map<string, string>()

  /** Returns the token of this process's lock on a chat, or undefined if it holds none. */
  tokenOf(key: Key): string | undefined {
    return this.#tokens.get(JSON.stringify(key))
  }

  hold(key: Key, token: string): void {
    this.#tokens.set(JSON.stringify(key), token)
  }

  /** Returns false if this process does not hold this lock any more. */
  release(key: Key, token: string): boolean {
    return this.tokenOf(key) === token && this.#tokens.delete(JSON.stringify(key))
  }
}

/** Application, principal and chat. ADK calls the latter two user and session. */
type Key = SessionKey | readonly string[]
