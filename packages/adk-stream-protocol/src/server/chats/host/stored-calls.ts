import { findContinuation } from '../../../agent/tree/interrupted-turn.ts'
import { replayTurn } from '../../../agent/history/replay-turn.ts'
import type { Call, Translation } from '../../../agent/translate/translation.ts'
import type { Approval } from '../../../approvals/approval.ts'
import type { ChatRef } from '../../../shared/chat-ref.ts'
import type { ChatSessions } from '../chat-sessions.ts'

/** Where the conversations of chats are stored. */
interface Conversations {
  readonly sessions: Pick<ChatSessions, 'findTurn' | 'readTurns'>
}

/** A call in the conversation of a chat. */
export interface StoredCall {
  /** The assistant message that made the call. */
  readonly messageId: string
  readonly call: Call
}

/** Finds a call in the stored conversation of a chat. Returns undefined if the chat does not contain it. */
export async function findStoredCall(
  { sessions, appName }: Conversations & { readonly appName: string },
  { principalId, chatId }: ChatRef,
  toolCallId: string,
): Promise<StoredCall | undefined> {
  const turns = await sessions.readTurns({ appName, principalId, chatId })
  for (const turn of turns.toReversed()) {
    const call = replayTurn(turn).state.calls.get(toolCallId)
    if (call) return { messageId: turn.messageId, call }
  }
  return undefined
}

/**
 * Returns the state of a call, or undefined if the conversation does not contain the call. A call whose approval has ended is `asked`
 * until the conversation shows how.
 */
export async function readCallState(
  { sessions }: Conversations,
  { chat, messageId, toolCallId }: CallRef,
): Promise<string | undefined> {
  const turn = await sessions.findTurn(chat, messageId)
  const calls = turn && replayTurn(turn).state.calls
  return calls && isUnreported(calls, toolCallId) ? 'asked' : calls?.get(toolCallId)?.state
}

/** Whether a server stopped after it stored the result of a call and before the turn had ended. The turn must be the newest of its chat. */
export async function isTurnLeft(
  { sessions }: Conversations,
  approval: Approval,
): Promise<boolean> {
  const last = (await sessions.readTurns(approval.chat)).at(-1)
  return last?.messageId === approval.messageId && findContinuation(last, approval) !== undefined
}

type Calls = Translation['calls']

/**
 * Returns the confirmations that resume calls of agents used as tools: those with a decided call inside, and those that wait for
 * nothing, because a process crashed while they ran.
 */
export function listResumable(calls: Calls, decided: readonly Approval[]): string[] {
  const decidedIds = new Set(decided.map(({ toolCallId }) => toolCallId))
  return [...calls].flatMap(([toolCallId, { state, resumedBy }]) => {
    if (state !== 'paused' || resumedBy === undefined) return []
    const asked = listAsked(calls, toolCallId)
    return asked.length === 0 || asked.some((id) => decidedIds.has(id)) ? [resumedBy] : []
  })
}

/**
 * Whether the conversation does not show yet how the approval of a call ended. The agent that made a call inside another one may have
 * its result, although the agent of the chat does not.
 */
function isUnreported(calls: Calls, toolCallId: string): boolean {
  const call = calls.get(toolCallId)
  if (call?.state === 'asked') return true
  return call !== undefined && isInterrupted(calls, call)
}

/** Whether a call was made inside an agent that waits for nothing, because a process crashed while it ran. */
function isInterrupted(calls: Calls, { madeBy = '' }: Call): boolean {
  return calls.get(madeBy)?.state === 'paused' && listAsked(calls, madeBy).length === 0
}

/** Returns the calls inside another call that wait for approval. */
function listAsked(calls: Calls, madeBy: string): string[] {
  return [...calls].flatMap(([id, call]) =>
    call.madeBy === madeBy && call.state === 'asked' ? [id] : [],
  )
}

/** A call, and the assistant message that made it. */
export type CallRef = Pick<Approval, 'chat' | 'messageId' | 'toolCallId'>

/** A call that was decided. */
export type DecidedCallRef = Pick<Approval, 'chat' | 'toolCallId'>
