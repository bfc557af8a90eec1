import { setTimeout as delay } from 'node:timers/promises'

import type { ApprovalChat } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import { ProtocolError } from '../protocol/errors.ts'

/** How often a chat that another process holds is tried again. */
const RETRY_MS = 25

/** Takes a chat for this process, so that no other one goes on with its turns; gives back the way to release it. */
export async function holdChat(ledger: Ledger, chat: ApprovalChat): Promise<() => Promise<void>> {
  // A process that died gives its chats back when its lease ends; one that lives longer than this is busy.
  const tries = Math.ceil((ledger.leaseMs * 2) / RETRY_MS)
  for (let attempt = 0; attempt < tries; attempt += 1) {
    if (await ledger.lockChat(chat)) return () => ledger.unlockChat(chat)
    await delay(RETRY_MS)
  }
  throw new ProtocolError('unavailable', { retryAfterSeconds: 5 })
}
