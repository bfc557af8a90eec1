import type { Call, Translation } from '../../../agent/translate/translation.ts'
import type { Approval } from '../../../approvals/approval.ts'

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
export function isUnreported(calls: Calls, toolCallId: string): boolean {
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
