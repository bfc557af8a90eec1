import type { UIMessage } from 'ai'

import type { Approval } from './approval.ts'
import { asksForAnswer, isPending } from './approval.ts'
import { type Call, getToolName, isCall, isUnfinished } from './call.ts'

/** What a call waits for, when an agent that it runs has asked a person. */
export interface WaitsFor {
  readonly kind: 'approval' | 'answer' | 'sign-in'
  /** What the pending call would do, the question, or the name of the service. */
  readonly description: string
  /** How many other questions are pending inside the call. */
  readonly more: number
}

/** A question to a person inside another call. */
interface InnerQuestion {
  readonly call: Call
  readonly approval: Approval
}

/**
 * Returns the pending questions inside each unfinished call of a message, by its `toolCallId`. A question names the agents that lead to
 * it (`path`), and an agent that is used as a tool has the name of its call.
 */
export function findInnerQuestions(
  { parts }: Pick<UIMessage, 'parts'>,
  approvals: ReadonlyMap<string, Approval>,
): ReadonlyMap<string, readonly InnerQuestion[]> {
  const calls = parts.filter(isCall)
  const pending = calls.flatMap((call) => {
    const approval = approvals.get(call.toolCallId)
    const isInner = approval?.path !== undefined || approval?.kind === 'elicitation'
    return approval && isInner && isPending(call, approval) ? [{ call, approval }] : []
  })
  if (pending.length === 0) return NONE
  return new Map(
    calls
      .filter((outer) => isUnfinished(outer) || RUNNING.has(outer.state))
      .map((outer) => [outer.toolCallId, pending.filter((inner) => isInside(inner, outer))]),
  )
}

/** The states of a call that runs. */
const RUNNING: ReadonlySet<Call['state']> = new Set(['input-available', 'approval-responded'])

const NONE: ReadonlyMap<string, readonly InnerQuestion[]> = new Map()

function isInside({ call, approval }: InnerQuestion, outer: Call): boolean {
  const { path = [] } = approval
  // A call whose MCP server asks goes on running. Any other call that waits has a result for now.
  if (!isUnfinished(outer) && approval.kind !== 'elicitation') return false
  // The sign-in of an approved call has the id of that call.
  return (
    call.toolCallId.startsWith(`${outer.toolCallId}.`) || path.slice(1).includes(getToolName(outer))
  )
}

/** Returns what a call waits for. Undefined if nothing is pending inside it. */
export function toWaitsFor(
  questions: readonly InnerQuestion[],
  describe: (toolName: string, call: Call, headline: string | undefined) => string,
): WaitsFor | undefined {
  const [first, ...others] = questions
  if (!first) return undefined
  const { call, approval } = first
  const more = others.length
  if (approval.signIn) return { kind: 'sign-in', description: approval.signIn.label, more }
  const name = getToolName(call)
  if (asksForAnswer(approval)) return { kind: 'answer', description: approval.hint ?? name, more }
  return { kind: 'approval', description: describe(name, call, approval.preview?.headline), more }
}
