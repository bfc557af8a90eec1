import { randomUUID } from 'node:crypto'

import { type Cut, readRequestedApprovals } from '../../../agent/history/cut-events.ts'
import { splitTurns } from '../../../agent/history/stored-turns.ts'
import type { ApprovalStateName } from '../../../approvals/approval.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { MessageRequest } from '../../../protocol/stream-request.ts'
import type { AppChatRef, ChatRef } from '../../../shared/chat-ref.ts'
import type { TurnRegistry } from '../../../turns/turn-registry.ts'
import { cancelPending } from './approval-endings.ts'
import type { Backend } from '../backend.ts'
import { toAppChat } from '../backend.ts'
import type { ChatRuns } from '../chat-runs.ts'
import type { Rewound } from '../chat-sessions.ts'

/**
 * AP132: returns the first user message that a client has removed, if its history ends before the stored one. Returns undefined if
 * the history does not prove that, or if the removed part contains an approved call that ran.
 */
export async function findRemoved(
  backend: Backend,
  chat: ChatRef,
  { history, replaces }: Pick<MessageRequest, 'history' | 'replaces'>,
): Promise<string | undefined> {
  if (replaces || history.length === 0 || !backend.sessions.canRewind) return undefined
  const key = toAppChat(backend, chat)
  const turns = await backend.sessions.readTurns(key)
  const stored = turns.flatMap(({ userMessage, messageId }) => [userMessage.id, messageId])
  if (!history.every((id, index) => id === stored[index])) return undefined
  // If the history ends with a user message, the client has lost a reply; a person has not removed messages.
  if (history.length % 2 !== 0) return undefined
  const removed = turns[history.length / 2]?.userMessage.id
  const cut = removed === undefined ? undefined : await backend.sessions.findCut(key, removed)
  const isKept = await hasActed(backend, cut)
  return isKept ? undefined : removed
}

/** What a rewind removes: a user message and everything after it. */
interface Removal {
  readonly userMessageId: string
  /** The newest user message that the person saw. Undefined if the client does not say. */
  readonly newestMessageId?: string | undefined
}

/** What a message removes, if it replaces the stored ones from `userMessageId` on. */
export function toRemoval(
  { newestMessageId }: Pick<MessageRequest, 'newestMessageId'>,
  userMessageId: string | undefined,
): Removal | undefined {
  return userMessageId === undefined ? undefined : { userMessageId, newestMessageId }
}

/** Stops the turn of a chat, and rewinds the chat to before a user message. No run of the chat is open, or its process calls this. */
export async function rewindChat(
  backend: Backend,
  turns: TurnRegistry,
  { chat, ...removal }: Removal & { readonly chat: ChatRef },
): Promise<Rewound | undefined> {
  // The rewind also removes the running turn, so it must not write afterwards.
  await turns.stop(chat)
  let rewound: Rewound | undefined
  const { settled } = await turns.start(chat, randomUUID(), {
    waitForRunning: true,
    background: true,
    prepare: async () => {
      rewound = await rewindLocked(backend, toAppChat(backend, chat), removal)
    },
    run: async ({ log }) => log.end(),
  })
  await settled
  return rewound
}

/** AP170, TU1949: throws if a rewind would remove an approved call, or messages that the person has not seen. */
export async function checkRewind(
  backend: Backend,
  chat: AppChatRef,
  { userMessageId, newestMessageId }: Removal,
): Promise<void> {
  if (!backend.sessions.canRewind) throw new ProtocolError('not-rewindable')
  const cut = await backend.sessions.findCut(chat, userMessageId)
  if (await hasActed(backend, cut)) throw new ProtocolError('already-acted')
  const removed = splitTurns(cut?.removed ?? []).map(({ userMessage }) => userMessage.id)
  const seen = newestMessageId === undefined ? -1 : removed.lastIndexOf(newestMessageId)
  if (seen >= 0 && seen < removed.length - 1) throw new ProtocolError('newer-messages')
}

/** A run is open in a chat that is to be rewound. It writes without the chat lock. */
export class OpenRunError extends ProtocolError {
  constructor() {
    super('turn-running')
  }
}

/** Repeats work that rewinds a chat, and ends the run that is open in the chat before, until there is none. */
export async function endingRuns<Result>(
  runs: Pick<ChatRuns, 'leave'>,
  chat: ChatRef,
  work: () => Promise<Result>,
): Promise<Result> {
  for (;;) {
    try {
      return await work()
    } catch (thrown) {
      if (!(thrown instanceof OpenRunError)) throw thrown
      // Not while the chat is locked: a run that is being opened may wait for the chat.
      await runs.leave(chat)
    }
  }
}

/** Rewinds a locked chat to before a user message. Cancels its pending approvals. */
export async function rewindLocked(
  backend: Backend,
  chat: AppChatRef,
  removal: Removal,
): Promise<Rewound | undefined> {
  await checkRewind(backend, chat, removal)
  await cancelPending(backend, chat)
  // Check again: a person may have approved a call meanwhile.
  await checkRewind(backend, chat, removal)
  return backend.sessions.rewind(chat, removal.userMessageId)
}

/** Whether a call of the part to remove has run, or may still run. */
async function hasActed({ ledger, kinds }: Backend, cut: Cut | undefined): Promise<boolean> {
  for (const [id, end] of readRequestedApprovals(cut?.removed ?? [])) {
    const approval = await ledger.get(id)
    // The answer to a question has no effect outside the conversation.
    if (approval && kinds.isAnswerResult(approval)) continue
    const state = approval?.state.name ?? end
    if (state !== undefined && !WITHOUT_EFFECT.has(state)) return true
  }
  return false
}

/** States of approvals whose calls have not run and cannot run any more after a cancellation. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set<ApprovalStateName>([
  'requested',
  'denied',
  'expired',
  'cancelled',
])
