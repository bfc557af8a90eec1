import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

import { LiveSnapshot } from '../../live/live-snapshot.ts'
import { type AppChatRef, toChatKey } from '../../shared/chat-ref.ts'

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Encrypts a snapshot of a live session: its handle gives access to the conversation at Google. */
export function sealSnapshot(chat: AppChatRef, snapshot: LiveSnapshot, key: Buffer): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(toContext(chat))
  const text = Buffer.concat([cipher.update(JSON.stringify(snapshot)), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), text])
}

/** Decrypts a snapshot. Throws if it was changed, or belongs to another chat. */
export function openSnapshot(chat: AppChatRef, sealed: Uint8Array, key: Buffer): LiveSnapshot {
  const bytes = Buffer.from(sealed)
  const nonce = bytes.subarray(0, NONCE_BYTES)
  const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(toContext(chat)).setAuthTag(tag)
  const text = Buffer.concat([
    decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)),
    decipher.final(),
  ])
  return LiveSnapshot.parse(JSON.parse(text.toString()))
}

function toContext(chat: AppChatRef): Buffer {
  return Buffer.from(toChatKey(chat))
}
