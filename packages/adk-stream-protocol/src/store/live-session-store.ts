import type { AppChatRef } from '../shared/chat-ref.ts'

/** Stores what a process needs to continue a live session of another one. The bridge encrypts it. */
export interface LiveSessionStore {
  /**
   * Stores the state of a live session. Returns false, and stores nothing, if `lock` is not the present holder of its lock. Removes
   * states that are older than `maxAgeMs`.
   */
  save(chat: AppChatRef, state: Uint8Array, options: SaveOptions): Promise<boolean>
  /** Returns the stored state of a live session. */
  find(chat: AppChatRef): Promise<Uint8Array | undefined>
  /** Removes the state of a live session. */
  drop(chat: AppChatRef): Promise<void>
}

/** How {@link LiveSessionStore.save} stores a state. */
export interface SaveOptions {
  /** The lock of the live session, as `ApprovalStore.lockChat` received it. */
  readonly lock: { readonly chat: AppChatRef; readonly token: string }
  readonly maxAgeMs: number
}
