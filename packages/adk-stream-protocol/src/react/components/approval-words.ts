import type { Approval } from '../reading/approval.ts'
import { type Call, readFailure } from '../reading/call.ts'
import type { AdkTexts } from '../texts/texts.ts'
import { describeState } from './call-words.ts'

/** How far a call that somebody decides got, in one word. */
export function nameState(call: Call, { state }: Approval, texts: AdkTexts): string {
  const hasEnded = state !== 'requested' && state !== 'approved'
  return hasEnded ? texts.approval.states[state] : describeState(call, texts)
}

interface Words {
  readonly texts: AdkTexts
  /** Whether the time to decide is over, by the reader's clock. */
  readonly over: boolean
  /** Whether the last decision was not accepted. */
  readonly refused: boolean
  /** Whether the reader has approved what takes several people. */
  readonly voted: boolean
  /** How far the reader's decision has come, while the server has not confirmed it. */
  readonly delivery: Delivery
}

/** `confirmed` also where it cannot be known. */
export type Delivery = 'waiting-for-connection' | 'sending' | 'confirmed'

/** How far it got, in a sentence that is read out when it changes. */
export function describeStatus(
  call: Call,
  { state, reason }: Approval,
  { texts: { approval }, over, refused, voted, delivery }: Words,
): string {
  switch (state) {
    case 'requested':
      if (call.state === 'approval-requested' && voted) return approval.waitingForOthers
      if (call.state === 'approval-requested') return over ? approval.over : approval.waiting
      if (call.state === 'approval-responded' && refused) return approval.refused
      if (call.state === 'approval-responded' && delivery !== 'confirmed')
        return delivery === 'sending' ? approval.sending : approval.unsent
      return call.state === 'approval-responded' && !call.approval.approved
        ? approval.denying
        : approval.running
    case 'approved':
      return readFailure(call) ? approval.failed : approval.endings.approved
    case 'expired':
    case 'unknown':
      return approval.endings[state]
    case 'denied':
    case 'cancelled':
      return reason ? approval.because(approval.endings[state], reason) : approval.endings[state]
  }
}
