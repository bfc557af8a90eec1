import type { BaseTool } from '@google/adk'

import type { Approval } from '../approvals/approval.ts'
import { isRefusal } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import { argsToRun } from '../approvals/next-approval.ts'
import { fitsSchema } from './arguments-schema.ts'

/**
 * AP1045: cancels an approval whose arguments fitted the schema of the tool when the call was made, and no longer fit, because a new
 * version of the application is running. Returns the approval as it is then. Does nothing if the call has started or has ended.
 */
export async function cancelIfOutdated(
  ledger: Ledger,
  approval: Approval,
  tool: BaseTool,
): Promise<Approval> {
  const { id, state } = approval
  const isOpen = state.name === 'requested' || state.name === 'approved'
  if (!isOpen || !isOutdated(approval, tool)) return approval
  const cancelled = await ledger.cancel(id, CHANGED)
  return isRefusal(cancelled) ? ((await ledger.get(id)) ?? approval) : cancelled
}

/** Whether the arguments of a call fitted the schema of its tool when the call was made, and no longer fit. */
export function isOutdated(
  approval: Approval,
  tool: BaseTool,
  args: Readonly<Record<string, unknown>> = argsToRun(approval),
): boolean {
  return approval.terms.fitsSchema === true && fitsSchema(tool, args) === false
}

const CHANGED = 'the tool has changed since, and its arguments no longer fit'
