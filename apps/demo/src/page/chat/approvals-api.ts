import { z } from 'zod'

import { Arguments, type Decision, Severity } from './approval.ts'
import { TurnError } from './message.ts'

/** An approval as the server lists it, for all chats of the reader and for those they may decide for others. */
export const Pending = z.object({
  id: z.string(),
  toolName: z.string(),
  args: Arguments,
  title: z.string().optional(),
  hint: z.string().optional(),
  severity: Severity.optional(),
  deadline: z.number(),
  approvals: z.object({ given: z.number(), needed: z.number() }),
  /** Only in the reader's own chats. */
  chatId: z.string().optional(),
})
export type Pending = z.infer<typeof Pending>

const List = z.object({ approvals: z.array(Pending) })
const Refused = z.object({ error: TurnError })

/** What waits for a decision. */
export async function listPending(): Promise<Pending[]> {
  const response = await fetch('/approvals', { signal: AbortSignal.timeout(10_000) })
  // A visitor who has said nothing yet is nobody: nothing waits for them.
  return response.ok ? List.parse(await response.json()).approvals : []
}

/** Decides from outside the conversation; `undefined` when it was accepted, else why not. */
export async function postDecision(
  approvalId: string,
  decision: Decision,
): Promise<TurnError | undefined> {
  const response = await fetch(`/approvals/${encodeURIComponent(approvalId)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(decision),
  }).catch(() => undefined)
  if (!response) return { code: 'unavailable', message: 'The server cannot be reached.' }
  if (response.ok) return undefined
  const body = Refused.safeParse(await response.json().catch(() => undefined))
  return body.data?.error ?? { code: 'internal', message: `Status ${response.status}.` }
}
