import type { SessionKey } from '../session-key.ts'

/**
 * The chats that this process has locked, with the tokens of their locks. What is written into such a chat is written for the turn
 * that locked it, and only while the database says so too.
 */
export class HeldChats {
  readonly #tokens = new Map<string, string>()

  /** The token under which this process writes into a chat; none where it has no lock. */
  tokenOf(key: Key): string | undefined {
    return this.#tokens.get(JSON.stringify(key))
  }

  hold(key: Key, token: string): void {
    this.#tokens.set(JSON.stringify(key), token)
  }

  release(key: Key, token: string): void {
    if (this.tokenOf(key) === token) this.#tokens.delete(JSON.stringify(key))
  }
}

/** Application, principal and chat, which ADK calls application, user and session. */
type Key = SessionKey | readonly string[]
