import type { Approval } from '../approvals/approval.ts'
import type { Refusal } from '../approvals/refusal.ts'
import type { DecidedNote } from './history/event-notes.ts'

/** The response for the model while a call waits for approval. */
export const PENDING = {
  status: 'pending',
  note: 'This call waits for the approval of a person. It has not run.',
} as const

/**
 * Returns the response for the model to a call whose approval could not be requested, because too many are pending or
 * its id is taken.
 */
export function describeRefusedRequest({ refused }: Refusal): { readonly error: string } {
  return {
    error:
      refused === 'mismatch'
        ? 'Not run: an earlier call in this conversation has the same id but a different tool or different arguments. Repeat the call with a new id.'
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

/** The outcome of an approval: the response for the model, and the note for the client. */
export interface Ending {
  readonly response: Record<string, unknown>
  readonly note: DecidedNote
}

/** Returns the outcome of an approval. Returns undefined while it is pending, approved but not started, or running. */
export function describeEnding({ toolCallId, toolName, state }: Approval): Ending | undefined {
  switch (state.name) {
    case 'denied': {
      const reason = state.reason === undefined ? {} : { reason: state.reason }
      return {
        response: {
          status: 'denied',
          error: 'The person denied this call. It did not run.',
          ...reason,
        },
        note: { toolCallId, state: 'denied', ...reason },
      }
    }
    case 'expired':
      return {
        response: {
          status: 'expired',
          error: 'The approval expired before anyone decided. The call did not run.',
        },
        note: { toolCallId, state: 'expired' },
      }
    case 'cancelled':
      return {
        response: {
          status: 'cancelled',
          error: `Not run: the approval was cancelled. ${state.reason}`,
        },
        note: { toolCallId, state: 'cancelled', reason: state.reason },
      }
    case 'unknown':
      return {
        response: {
          status: 'unknown',
          error:
            'The server stopped while this call was running. It may or may not have taken effect. Do not repeat it unless the user asks.',
        },
        note: { toolCallId, state: 'unknown' },
      }
    case 'succeeded':
      return { response: toResponse(state.output), note: { toolCallId, state: 'approved' } }
    case 'failed':
      // The ledger contains the error message, which is only for the log.
      return {
        response: { error: `The tool ${toolName} failed.` },
        note: { toolCallId, state: 'approved' },
      }
    case 'requested':
    case 'approved':
    case 'executing':
      return undefined
  }
}

/** Returns the result of a tool as the object that Gemini requires. Wraps other values under the keys that ADK uses. */
export function toResponse(result: unknown): Record<string, unknown> {
  if (typeof result === 'object' && result !== null && !Array.isArray(result)) {
    // The checks above leave only plain objects.
    return result as Record<string, unknown>
  }
  return Array.isArray(result) ? { results: result } : { result: result ?? null }
}
