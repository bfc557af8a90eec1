import type { Query, Bytes } from './query.ts'
import { toBuffer } from './query.ts'
import { chatColumns } from '../keys.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'

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

/** The statements for the state of live sessions. */
interface LiveSessionQueries {
  /** The values are the columns of a chat, the state, the columns of a lock with its token, and the maximum age. */
  readonly save: Query
  readonly find: Query<{ readonly state: Bytes }>
  readonly drop: Query
}

export function liveSessionStore(queries: LiveSessionQueries): LiveSessionStore {
  return {
    async save(chat, state, { lock, maxAgeMs }) {
      const row = [...chatColumns(chat), Buffer.from(state)]
      const saved = await queries.save(...row, ...chatColumns(lock.chat), lock.token, maxAgeMs)
      return saved.length > 0
    },
    async find(chat) {
      const [row] = await queries.find(...chatColumns(chat))
      return row && toBuffer(row.state)
    },
    async drop(chat) {
      await queries.drop(...chatColumns(chat))
    },
  }
}
