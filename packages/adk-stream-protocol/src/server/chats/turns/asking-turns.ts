import { setTimeout as delay } from 'node:timers/promises'

import { z } from 'zod'

import type { Approval } from '../../../approvals/approval.ts'
import type { SignalRequest } from '../../../relay/relay-signals.ts'
import { RequestChat } from '../../../relay/relay-signals.ts'
import type { ChatRef } from '../../../shared/chat-ref.ts'
import type { ReadFrom } from '../../../turns/turn-log.ts'
import type { Turn } from '../../../turns/turn.ts'
import type { TurnRegistry } from '../../../turns/turn-registry.ts'
import type { LazyBackend } from '../backend.ts'
import { toAppChat } from '../backend.ts'
import { readCallState } from '../host/stored-calls.ts'
import type { TurnService } from './turn-service.ts'
import type { RelayedTurns } from './relayed-turns.ts'

/**
 * The parts that read turns which have ended at a question, while the call that asked runs and waits for the answer, here or in another
 * process.
 */
export interface AskingParts {
  readonly backend: LazyBackend
  readonly turns: Pick<TurnRegistry, 'asking' | 'running' | 'others'>
  readonly turnService: Pick<TurnService, 'replayAtQuestion'>
}

/** A turn, and the position from which a client reads it. */
interface Readable {
  readonly turn: Turn
  readonly from: ReadFrom
}

const STOP = 'stop-asking'
const StopRequest = z.object({ chat: RequestChat })

const POLL_MS = 50

/** Returns the open question of a running call in a chat. A chat has one turn at a time, and a turn one such question. */
export async function findOpenQuestion(
  backend: LazyBackend,
  chat: ChatRef,
): Promise<Approval | undefined> {
  const { ledger, kinds } = await backend.get()
  if (kinds.askedDuringCalls.length === 0) return undefined
  const pending = await ledger.pendingOf(toAppChat(ledger, chat))
  return pending.find((approval) => kinds.isAskedDuringCall(approval))
}

/** Returns the turn that continues after the answer to a question. Undefined if it has ended, or cannot be read here. */
export async function readAfterAnswer(
  parts: AskingParts,
  chat: ChatRef,
  answered: Approval,
): Promise<Readable | 'waits' | undefined> {
  const { id, messageId, liveWorker } = answered
  const { ledger } = await parts.backend.get()
  const found =
    liveWorker === ledger.worker
      ? await readHere(parts, chat, id)
      : await readElsewhere(parts, chat, answered)
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

/** Stops a turn of another process that waits for an answer. Returns whether there was one. */
export async function stopAskingElsewhere(
  {
    backend,
    elsewhere,
  }: Pick<AskingParts, 'backend'> & {
    readonly elsewhere: Pick<RelayedTurns, 'ask'>
  },
  chat: ChatRef,
): Promise<boolean> {
  const { ledger } = await backend.get()
  const { liveWorker } = (await findOpenQuestion(backend, chat)) ?? {}
  if (liveWorker === undefined || liveWorker === ledger.worker || !elsewhere.ask) return false
  const request: SignalRequest = { kind: STOP, body: { chat: toAppChat(ledger, chat) } }
  return (await elsewhere.ask(liveWorker, request)) === true
}

/** Stops a turn that waits for an answer, if another process requests it. Returns undefined if the request is about something else. */
export async function answerStopAsking(
  turns: Pick<TurnRegistry, 'asking'>,
  kind: string,
  body: unknown,
): Promise<boolean | undefined> {
  if (kind !== STOP) return undefined
  const turn = turns.asking(StopRequest.parse(body).chat)
  turn?.stop()
  await turn?.settled
  return turn !== undefined
}

/** Whether a turn holds the chat: one that waits for an answer here, or any in another process. */
async function isLocked(
  { turns, backend }: Pick<AskingParts, 'turns' | 'backend'>,
  chat: ChatRef,
): Promise<boolean> {
  if (turns.asking(chat)) return true
  const { ledger } = await backend.get()
  return ledger.locks.isLockedElsewhere(chat)
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
async function readElsewhere(
  parts: AskingParts,
  chat: ChatRef,
  answered: Approval,
): Promise<Turn | undefined> {
  const backend = await parts.backend.get()
  const until = performance.now() + 2 * backend.ledger.leaseMs
  while (performance.now() < until) {
    if ((await readCallState(backend, answered)) !== 'running') {
      const turn = await parts.turns.others.open(chat)
      if (turn || (await findOpenQuestion(parts.backend, chat))) return turn
      if (!(await isLocked(parts, chat))) return turn
    }
    await delay(POLL_MS)
  }
  return undefined
}
