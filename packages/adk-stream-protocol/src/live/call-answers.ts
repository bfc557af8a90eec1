import type { Approval } from '../approvals/approval.ts'

/** Why an approval is withdrawn whose call cannot go its way. */
export const CANNOT_GO_ON = 'the call could not be carried out'
export const TOOK_BACK = 'the conversation went on without it'

export const CANCELLED = { status: 'cancelled', error: `Cancelled: ${TOOK_BACK}.` } as const
export const UNWANTED = {
  status: 'cancelled',
  error: 'Cancelled, not run: the person stopped this answer.',
} as const
export const UNDER_WAY = {
  status: 'pending',
  note: 'Under way. The result comes later.',
} as const
export const BROKEN = { error: 'The call could not be carried out.' } as const

/** A call that ran, and whose outcome could not be recorded, may have taken effect. */
export function lostIfExecuting(approval: Approval): Approval {
  const { state } = approval
  return state.name === 'executing'
    ? { ...approval, state: { ...state, name: 'unknown' } }
    : approval
}
