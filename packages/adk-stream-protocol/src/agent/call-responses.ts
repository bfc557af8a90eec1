import type { BaseTool, Event } from '@google/adk'
import { isFunctionTool, RestApiTool } from '@google/adk'
import * as z from 'zod'

import type { Approval, Refusal } from '../approvals/approval.ts'
import { findEvidence } from '../approvals/approval.ts'
import { isRecordable, recordable, toStorable } from '../approvals/digest.ts'
import { copyShownEvidence } from '../protocol/decision-evidence.ts'
import { readReportedFailure } from '../protocol/message.ts'
import type { DecidedNote, RepliedNote } from './events/event-notes.ts'
import type { ToolCall } from './tool-call.ts'

/** The response to a call that was stopped. A stopped stream ends its calls with the same text. */
export const STOPPED = {
  error: 'Stopped before the result arrived. The call may or may not have taken effect.',
}

/** The response for the model while a call waits for approval. */
export const PENDING = {
  status: 'pending',
  note: 'This call waits for the approval of a person. It has not run.',
} as const

/** The status for a live model while a call waits for a person. The model continues to speak, and must not say that the call has run. */
export const AWAITING_APPROVAL = {
  status: 'awaiting_approval',
  note: 'Not done: a person has to approve this call first. Do not say that it is done, and do not call it again. The result comes later.',
} as const

/** The status for a live model while the application completes a call. */
export const UNDER_WAY = {
  status: 'pending',
  note: 'Under way. The result comes later.',
} as const

/** The response for the model while a call waits for questions inside it. Clients show it until the result arrives. */
export const PENDING_INSIDE = {
  status: 'pending',
  note: 'This call waits for a person. It has not finished.',
} as const

/**
 * Returns the response for the model to a call whose approval could not be requested, because too many are pending or
 * its id is taken.
 */
export function describeRefusedRequest({ refused }: Refusal): { readonly error: string } {
  return {
    error:
      refused === 'mismatch'
        ? 'Not run: an earlier call in this conversation has the same id, and the id of a call can be approved only once. Make a new call if it is still needed.'
        : 'Not run: too many calls are waiting for approval. Wait until some of them are decided.',
  }
}

/** The response for the model to a call that needs approval where approval cannot be requested. */
export const APPROVAL_UNAVAILABLE = {
  error:
    'Not run: this tool needs the approval of a person, but approval cannot be requested here.',
} as const

/** The response for the model to a call whose tool could not determine whether it needs approval. */
export const UNDETERMINED = {
  error: 'Not run: it could not be determined whether this call needs the approval of a person.',
} as const

const DENIED = 'Not run: the person denied this call before'

/** The response to a call that repeats a denied one. */
export const DENIED_BEFORE = {
  status: 'denied',
  retryable: false,
  error: `${DENIED}, or a similar one, and has not written since. Do not call it again, also not with other values, unless the person asks for it in a new message. Ask what they want instead.`,
} as const

/** Whether an error says that a call repeats a denied one. Stored conversations may have other words after the first ones. */
export function isDeniedBefore(error: unknown): error is string {
  return typeof error === 'string' && error.startsWith(DENIED)
}

/** The outcome of an approval: the response for the model, and the note for the client. */
export interface Ending {
  readonly response: Record<string, unknown>
  readonly note: DecidedNote
}

/** Why a call did not run, for the model. */
const UNAPPROVED = {
  denied: 'The person denied this call. It did not run.',
  expired: 'The approval expired before anyone decided. The call did not run.',
  cancelled: 'Not run: the approval was cancelled.',
} as const

/** The response to a call whose process has stopped. */
export const UNKNOWN = {
  status: 'unknown',
  error:
    'The server stopped while this call was running. It may or may not have taken effect. Do not repeat it unless the user asks.',
} as const

/** Why a question has no answer, for the model. */
const UNANSWERED = {
  denied: 'The person declined to answer.',
  expired: 'The deadline passed without an answer.',
  cancelled: 'The question was cancelled.',
} as const

/** Returns the outcome of an approval. Returns undefined while it is pending, approved but not started, or running. */
export function describeEnding(approval: Approval): Ending | undefined {
  const { toolCallId, toolName, chat, state, terms } = approval
  const texts = terms.kind === undefined ? UNAPPROVED : UNANSWERED
  switch (state.name) {
    case 'denied': {
      const reason = state.reason === undefined ? {} : { reason: state.reason }
      const by = readDeciders(chat, [state.by])
      return {
        response: {
          status: 'denied',
          error: texts.denied,
          ...reason,
        },
        note: {
          toolCallId,
          state: 'denied',
          at: state.at,
          by,
          ...reason,
          ...copyShownEvidence(findEvidence(approval)),
        },
      }
    }
    case 'expired':
      return {
        response: {
          status: 'expired',
          error: texts.expired,
        },
        note: { toolCallId, state: 'expired' },
      }
    case 'cancelled':
      return {
        response: {
          status: 'cancelled',
          error: `${texts.cancelled} ${state.reason}`,
        },
        note: { toolCallId, state: 'cancelled', reason: state.reason },
      }
    case 'unknown':
      return {
        response: { ...UNKNOWN },
        note: { toolCallId, state: 'unknown' },
      }
    case 'succeeded':
      return { response: toResponse(state.output), note: toApprovedNote(approval) }
    case 'failed':
      return {
        response:
          state.output === undefined
            ? // The ledger contains the message of the exception, which is only for the log.
              { error: describeToolFailure(toolName) }
            : markFailed(toResponse(state.output)),
        note: toApprovedNote(approval),
      }
    case 'requested':
    case 'approved':
    case 'executing':
      return undefined
  }
}

/** Returns the note on the result of an approved call. It contains the outcome if the call has ended. */
export function toApprovedNote(approval: Approval): DecidedNote {
  const { toolCallId, votes, state } = approval
  const hasEnded = state.name === 'succeeded' || state.name === 'failed'
  return {
    toolCallId,
    state: 'approved',
    ...(votes.length > 0 && { by: readVoters(approval) }),
    ...copyShownEvidence(findEvidence(approval)),
    ...(hasEnded && { outcome: state.name, at: state.at }),
    ...(hasEnded && state.receipt && { receipt: { ...state.receipt } }),
    ...('editedArgs' in state && state.editedArgs && { editedArgs: { ...state.editedArgs } }),
    ...('payload' in state && state.payload !== undefined && { approvedPayload: state.payload }),
  }
}

/** Returns the note on an approved call whose result the conversation does not contain yet. */
export function toPendingNote(approval: Approval): DecidedNote {
  const { outcome: _outcome, at: _at, receipt: _receipt, ...note } = toApprovedNote(approval)
  return note
}

/** Returns the note on the message after a reply that decided an approval. */
export function toRepliedNote({ id, toolCallId, state }: Approval): RepliedNote {
  return { approvalId: id, toolCallId, approved: state.name !== 'denied' }
}

/** Returns who has voted, for the owner of the chat. */
export function readVoters({ chat, votes }: Approval): { own: boolean; others: string[] } {
  const ids = votes.map(({ principalId }) => principalId)
  return readDeciders(chat, ids)
}

/** Returns who decided, for the owner of the chat. */
function readDeciders(
  { principalId }: Approval['chat'],
  ids: readonly string[],
): { own: boolean; others: string[] } {
  return { own: ids.includes(principalId), others: ids.filter((id) => id !== principalId) }
}

/** Adds `success: false` to the result of a call that the policy calls a failure, unless the result says so itself. */
export function markFailed(response: Record<string, unknown>): Record<string, unknown> {
  const isMarked = 'error' in response || readReportedFailure(response) !== undefined
  return isMarked ? response : { ...response, success: false }
}

/** Returns the result of a tool as the object that Gemini requires. Wraps other values under the keys that ADK uses. */
export function toResponse(result: unknown): Record<string, unknown> {
  if (typeof result === 'object' && result !== null && !Array.isArray(result)) {
    // The checks above leave only plain objects.
    return result as Record<string, unknown>
  }
  return Array.isArray(result) ? { results: result } : { result: result ?? null }
}

/** Like `toResponse`, for the session. A result that JSON cannot carry is replaced by a text that says so: the call has run. */
export function toStoredResponse(result: unknown): Record<string, unknown> {
  return toResponse(toStorable(result))
}

/**
 * Replaces results and removes state that a session cannot store. The calls of the event have run, so it must be stored. Changes the
 * event in place. Returns an error for each value that is lost.
 */
export function makeStorable(event: Event): Error[] {
  const { content, output } = event
  const { stateDelta } = event.actions
  const results = (content?.parts ?? []).flatMap(({ functionResponse }) => {
    if (!functionResponse || isRecordable(functionResponse.response)) return []
    functionResponse.response = toStoredResponse(functionResponse.response)
    // A date or a URL is stored as text, and is not lost.
    return 'unrecorded' in functionResponse.response
      ? [`the result of ${functionResponse.name}`]
      : []
  })
  const keys = Object.keys(stateDelta).filter((key) => !canStore(stateDelta[key]))
  for (const key of keys) delete stateDelta[key]
  // The output of a node of a workflow.
  const isLost = !canStore(output)
  if (isLost) event.output = recordable(output)
  const outputs = isLost ? [`the output of ${event.author ?? 'a node'}`] : []
  return [...results, ...outputs, ...keys.map((key) => `the state ${JSON.stringify(key)}`)].map(
    (what) =>
      new Error(
        `JSON cannot carry ${what}, so it was not stored. Use plain data without bigint values and circular references.`,
      ),
  )
}

function canStore(value: unknown): boolean {
  // A date at the top level is stored as text.
  return isRecordable([value])
}

/** A call inside an `AgentTool` needs approval, which cannot be requested there. */
export class ApprovalUnavailableError extends Error {
  override readonly name = 'ApprovalUnavailableError'

  constructor(toolName: string, agentName: string) {
    super(
      `Not run: the tool ${toolName} needs the approval of a person, but approval cannot be requested inside ${agentName}, because it is used as a tool. Make ${agentName} a sub-agent and let the parent transfer to it.`,
    )
  }
}

/**
 * Returns the response for the model to a call that threw. The message of an error may contain addresses, paths and
 * secrets, so the model only learns what is wrong with its arguments.
 */
export function describeToolError(
  { tool, toolArgs }: ToolCall,
  error: unknown,
  exposeErrors: boolean,
): Record<string, unknown> {
  if (error instanceof ApprovalUnavailableError) return APPROVAL_UNAVAILABLE
  if (exposeErrors) return { error: error instanceof Error ? error.message : String(error) }
  const issues = findIssues(tool, toolArgs)
  return { error: issues === undefined ? describeToolFailure(tool.name) : `Not run: ${issues}` }
}

/** Returns the message for a tool that failed. */
export function describeToolFailure(toolName: string): string {
  return `The tool ${toolName} failed.`
}

/** Whether a tool returned the message of an error that it caught. ADK's OpenAPI tools do that when a request fails. */
export function returnsCaughtError(tool: BaseTool, result: unknown): boolean {
  if (!(tool instanceof RestApiTool)) return false
  const caught = CaughtError.safeParse(result)
  return caught.success && caught.data.error.startsWith('Failed to execute API call')
}

const CaughtError = z.strictObject({ error: z.string() })

/** Returns a description of arguments that do not match the schema of a tool. Returns undefined if the schema cannot be checked. */
function findIssues(tool: BaseTool, args: unknown): string | undefined {
  // ADK declares the schema private. It may come from another copy of zod, or not from zod at all.
  const parameters: unknown = isFunctionTool(tool) && Reflect.get(tool, 'parameters')
  if (typeof parameters !== 'object' || parameters === null || !('safeParse' in parameters))
    return undefined
  try {
    const { safeParse } = parameters
    const parsed: unknown = typeof safeParse === 'function' && safeParse.call(parameters, args)
    return describeIssues(FailedParse.safeParse(parsed).data?.error)
  } catch {
    return undefined
  }
}

const FailedParse = z.object({ success: z.literal(false), error: z.unknown() })

/** Describes a validation error of zod. Returns undefined for any other error. */
export function describeIssues(error: unknown): string | undefined {
  const failed = ArgumentIssues.safeParse(error)
  if (!failed.success) return undefined
  const descriptions = failed.data.issues.map(
    ({ path, message }) => `${path.join('.')}: ${message}.`,
  )
  return `the arguments do not match the schema of the tool. ${descriptions.join(' ')}`
}

const ArgumentIssues = z.object({
  name: z.enum(['ZodError', '$ZodError']),
  issues: z.array(
    z.object({ path: z.array(z.union([z.string(), z.number()])), message: z.string() }),
  ),
})

/** Returns the response to the call of an agent that cannot continue, because a call inside it has ended without it. */
export function describeEndInside(
  toolName: string,
  { error }: Readonly<Record<string, unknown>>,
): { readonly error: string } {
  const reason = typeof error === 'string' ? ` ${error}` : ''
  return { error: `Not finished: its call of ${toolName} has ended without the agent.${reason}` }
}
