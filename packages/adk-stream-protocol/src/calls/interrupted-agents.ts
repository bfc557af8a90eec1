import { isAgentTool } from '@google/adk'

import { PENDING_INSIDE, toApprovedNote } from '../agent/call-responses.ts'
import type { PausedNote } from '../agent/history/event-notes.ts'
import { readNotes } from '../agent/history/event-notes.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { Ledger } from '../approvals/ledger.ts'
import { isRecord } from '../protocol/guards.ts'
import type { RunState } from './run-state.ts'

/**
 * Restores the pause of an approved call of an agent, if a crash kept it from being stored: the approval has ended because the call
 * waits for approvals inside, and the session has the events of the agent. Returns undefined for any other call.
 */
export async function restorePause(
  { tool, toolContext }: ToolCall,
  run: RunState,
  ledger: Ledger,
): Promise<PausedNote | undefined> {
  if (!isAgentTool(tool)) return undefined
  const { session } = toolContext.invocationContext
  const toolCallId = toolContext.functionCallId ?? ''
  const { events } = run.nested?.root.session ?? session
  const last = events.findLast((event) => readNotes(event).nested?.toolCallId === toolCallId)
  const { nested } = last ? readNotes(last) : {}
  const approval = nested && (await ledger.findByCall(chatOf(session), toolCallId))
  if (approval?.state.name !== 'succeeded' || !isPendingInside(approval.state.output))
    return undefined
  const { outcome: _outcome, at: _at, ...decided } = toApprovedNote(approval)
  run.decided.set(toolCallId, decided)
  return { toolCallId, confirmationId: '', session: nested?.session ?? '', asked: [] }
}

function isPendingInside(output: unknown): boolean {
  return isRecord(output) && output['note'] === PENDING_INSIDE.note
}
