import type { Approval } from '../approvals/approval.ts'
import type { Refusal } from '../approvals/refusal.ts'
import type { DecidedNote } from './history/event-notes.ts'

/** What the model is told of a call that a person is still being asked about. */
export const PENDING = {
  status: 'pending',
  note: 'Waiting for the approval of a person. It has not run.',
} as const

/** What the model is told of a call that could not be asked about: it would be one question too many, or its id is taken. */
export function describeRefusedRequest({ refused }: Refusal): { readonly error: string } {
  return {
    error:
      refused === 'mismatch'
        ? 'Not run: an earlier call of this conversation, with another tool or other arguments, has the same id. Make the call again with an id of its own.'
        : 'Not run: too many calls wait for approval already. Wait until some are decided.',
  }
}

/** What the model is told of a call that nobody can be asked about from where it is made. */
export const APPROVAL_UNAVAILABLE = {
  error: 'Not run: this tool needs the approval of a person, which cannot be asked for from here.',
} as const

/** What the model is told of a call whose tool failed to say whether it needs approval. */
export const UNDETERMINED = {
  error: 'Not run: the tool failed to say whether this call needs the approval of a person.',
} as const

/** The end of an approval without a run: what the model is told, and what is noted for the client. */
export interface Ending {
  readonly response: Record<string, unknown>
  readonly note: DecidedNote
}

/**
 * How a call ends that does not run, or that nobody saw run. An approval that is still open, or that ended with a result, has no
 * such ending.
 */
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
        response: { status: 'expired', error: 'Nobody decided in time. The call did not run.' },
        note: { toolCallId, state: 'expired' },
      }
    case 'cancelled':
      return {
        response: { status: 'cancelled', error: `Cancelled, not run: ${state.reason}` },
        note: { toolCallId, state: 'cancelled', reason: state.reason },
      }
    case 'unknown':
      return {
        response: {
          status: 'unknown',
          error:
            'The server stopped while this call ran. It may or may not have taken effect; do not repeat it unasked.',
        },
        note: { toolCallId, state: 'unknown' },
      }
    case 'succeeded':
      return { response: toResponse(state.output), note: { toolCallId, state: 'approved' } }
    case 'failed':
      // The record holds the words of the error, which are for the log.
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

/** A tool's result as Gemini wants it: an object, with ADK's names for what is none. */
export function toResponse(result: unknown): Record<string, unknown> {
  if (typeof result === 'object' && result !== null && !Array.isArray(result)) {
    // A plain object by the checks above.
    return result as Record<string, unknown>
  }
  return Array.isArray(result) ? { results: result } : { result: result ?? null }
}
