import type { RemoteMessage } from '../agent/adk-workarounds/remote-agents.ts'
import { describeEnding, toResponse } from '../agent/call-responses.ts'
import type { RemoteCallNote } from '../agent/history/event-notes.ts'
import type { Approval } from '../approvals/approval.ts'

/** A call that stands for what a remote agent asks. */
export interface RemoteCall extends RemoteCallNote {
  readonly toolName: string
  readonly args: Record<string, unknown>
}

/** Why a task gets no answer. */
export type Unsent = 'declined' | 'expired' | 'cancelled' | 'unknown' | 'failed' | 'sent'

/** Returns what to tell the person and the model. */
export function describeUnsent(ending: Unsent, agent: string): string {
  return ENDINGS[ending](agent)
}

const ENDINGS: Readonly<Record<Unsent, (agent: string) => string>> = {
  declined: (agent) => `The question of the agent ${agent} was declined.`,
  expired: (agent) => `The question of the agent ${agent} expired without an answer.`,
  cancelled: (agent) => `The question of the agent ${agent} was cancelled.`,
  unknown: (agent) =>
    `The server stopped while it sent the response to the agent ${agent}. The agent may or may not have received it.`,
  failed: (agent) => `The response could not be sent to the agent ${agent}.`,
  sent: (agent) =>
    `The response was sent to the agent ${agent}, and the server stopped before it replied.`,
}

/** The result of an approved call of a remote agent. */
export const SENT = {
  confirmed: true,
  sent: true,
  note: 'The approval was sent to the remote agent.',
}
/** The result of an approved call whose approval waits for other answers. */
export const HELD = {
  confirmed: true,
  sent: false,
  note: 'The approval is sent when the other questions of the remote agent have an answer.',
}
/** The result of an approved call whose approval was not sent. */
export const NOT_SENT = { error: 'The approval was not sent to the remote agent.' }

/** Returns the parts that answer a pause, or why it gets no answer. */
export function toAnswer(
  calls: readonly RemoteCall[],
  approvals: readonly (Approval | undefined)[],
): RemoteMessage['parts'] | Unsent {
  const parts: RemoteMessage['parts'] = []
  for (const [index, call] of calls.entries()) {
    const approval = approvals[index]
    const name = approval?.state.name ?? 'cancelled'
    if (name === 'expired' || name === 'cancelled' || name === 'unknown' || name === 'failed')
      return name
    // An agent that asked with words would take any words for an answer.
    if (name === 'denied' && !call.request) return 'declined'
    if (approval) parts.push(toPart(call, approval))
  }
  return parts
}

function toPart(
  { request, signsIn }: RemoteCall,
  approval: Approval,
): RemoteMessage['parts'][number] {
  const { state, terms } = approval
  const payload = 'payload' in state ? state.payload : undefined
  if (!request) {
    const text = typeof payload === 'string' ? payload : JSON.stringify(payload ?? null)
    return { kind: 'text', text: signsIn ? 'Continue.' : text }
  }
  const isDenied = state.name === 'denied'
  const chosen = payload ?? terms.payload
  const confirmed = { confirmed: true, ...(chosen !== undefined && { payload: chosen }) }
  const decision = isDenied ? { confirmed: false } : confirmed
  const answer = isDenied ? describeEnding(approval)?.response : toResponse(payload)
  const response = terms.kind === undefined ? decision : answer
  return {
    kind: 'data',
    data: { ...request, response },
    metadata: { adk_type: 'function_response' },
  }
}
