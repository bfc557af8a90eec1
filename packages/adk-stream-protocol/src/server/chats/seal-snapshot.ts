import { LiveSnapshot } from '../../live/live-snapshot.ts'
import { type AppChatRef, toChatKey } from '../../shared/chat-ref.ts'
import { openJson, sealJson } from '../auth/seal.ts'

/** Encrypts a snapshot of a live session: its handle gives access to the conversation at Google. */
export function sealSnapshot(chat: AppChatRef, snapshot: LiveSnapshot, key: Buffer): Uint8Array {
  return sealJson(snapshot, toChatKey(chat), key)
}

/** Decrypts a snapshot. Throws if it was changed, or belongs to another chat. */
export function openSnapshot(chat: AppChatRef, sealed: Uint8Array, key: Buffer): LiveSnapshot {
  return LiveSnapshot.parse(openJson(sealed, toChatKey(chat), key))
}
