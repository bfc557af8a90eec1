import type { Approval } from '../../../approvals/approval.ts'
import type { ChatRef } from '../../../shared/chat-ref.ts'
import type { ReadFrom } from '../../../turns/turn-log.ts'
import type { UntilMet } from '../../../turns/chat-events.ts'
import type { Turn } from '../../../turns/turn.ts'
import type { TurnRegistry } from '../../../turns/turn-registry.ts'
import type { LazyBackend } from '../backend.ts'
import { readCallState } from '../host/stored-calls.ts'
import { findOpenQuestion } from './question-answers.ts'
import type { TurnService } from './turn-service.ts'

/**
 * The parts that read turns which have ended at a question, while the call that asked runs and waits for the answer, here or in another
 * process.
 */
export interface AskingParts {
  readonly backend: LazyBackend
  readonly turns: Pick<TurnRegistry, 'asking' | 'running' | 'others'>
  readonly turnService: Pick<TurnService, 'replayAtQuestion'>
  readonly untilMet: UntilMet
}

/** A turn, and the position from which a client reads it. */
interface Readable {
  readonly turn: Turn
  readonly from: ReadFrom
}

/** Returns the turn that continues after the answer to a question. Undefined if it has ended, or cannot be read here. */
export async function readAfterAnswer(
  parts: AskingParts,
  chat: ChatRef,
  answered: Approval,
): Promise<Readable | 'waits' | undefined> {
  const { id, messageId } = answered
  const { ledger } = await parts.backend.get()
  const found = ledger.waitsHere(answered)
    ? await readHere(parts, chat, id)
    : await readAtOwner(parts, chat, answered)
  if (found?.messageId === messageId && found.log.isMarked(id))
    return { turn: found, from: { after: id } }
  return readUntilQuestion(parts, chat, { messageId, seen: id })
}

/**
 * Returns the rest of a message up to its open question, or `waits` if the client has it or the question is in another message: the
 * chat does not continue before the answer. Undefined if no question is open.
 */
export async function readUntilQuestion(
  parts: AskingParts,
  chat: ChatRef,
  { messageId, seen }: { readonly messageId: string; readonly seen: string | undefined },
): Promise<Readable | 'waits' | undefined> {
  const question = await findOpenQuestion(parts.backend, chat)
  // A live session continues while one of its calls asks.
  if (!question || !(await isLocked(parts, chat))) return undefined
  if (question.messageId !== messageId) return 'waits'
  const turn = await parts.turnService.replayAtQuestion(chat, { messageId, seen })
  return turn ? { turn, from: 'pause' } : 'waits'
}

/** Whether a turn holds the chat: one that waits for an answer here, or any in another process. */
async function isLocked(
  { turns, backend }: Pick<AskingParts, 'turns' | 'backend'>,
  chat: ChatRef,
): Promise<boolean> {
  if (turns.asking(chat)) return true
  const { ledger } = await backend.get()
  return !(await ledger.locks.isFree(chat))
}

/** Returns the turn of this process that has streamed something after a question. */
async function readHere(
  { turns }: AskingParts,
  chat: ChatRef,
  approvalId: string,
): Promise<Turn | undefined> {
  const asking = turns.asking(chat)
  if (asking?.asking === approvalId) return asking.next
  return asking ?? turns.running(chat)
}

/**
 * Returns the turn that continues in another process, when that process has taken the answer. If the turn cannot be read here, waits
 * for its next question or its end.
 */
async function readAtOwner(
  parts: AskingParts,
  chat: ChatRef,
  answered: Approval,
): Promise<Turn | undefined> {
  const backend = await parts.backend.get()
  let found: Turn | undefined
  await parts.untilMet(chat, async () => {
    if ((await readCallState(backend, answered)) === 'running')
      return backend.ledger.locks.isUnused(chat)
    found = await parts.turns.others.open(chat)
    if (found || (await findOpenQuestion(parts.backend, chat))) return true
    return !(await isLocked(parts, chat))
  })
  return found
}
