import type { Approval, Arguments, Decision } from '../chat/approval.ts'
import { useApprovals } from '../hooks/approvals-context.ts'
import { useTexts } from '../i18n/language.tsx'
import { ApprovalForm } from './approval-form.tsx'

export interface ApprovalDecisionProps {
  readonly approval: Approval
  readonly args: Arguments
  readonly state: 'open' | 'over' | 'decided'
  readonly onDecided: () => void
}

/** Lets the reader decide, and says why a decision was not accepted. */
export function ApprovalDecision(props: ApprovalDecisionProps) {
  const { approval, args, state, onDecided } = props
  const { decide, pending } = useApprovals()
  const texts = useTexts()
  const { approvalId, approvers = 1 } = approval
  const { given = 0 } = pending.find(({ id }) => id === approvalId)?.approvals ?? {}
  const onDecide = (decision: Decision) => {
    onDecided()
    // A decision that did not arrive leaves the card as it was.
    decide(approvalId, decision).catch(() => undefined)
  }
  if (approval.state !== 'requested') return null
  return (
    <>
      {approvers > 1 && state === 'open' && (
        <p className="approval-votes">{texts.approval.votes(given, approvers)}</p>
      )}
      <ApprovalForm
        args={args}
        // Kept while the decision travels: what was typed is still there if it is refused.
        hidden={state !== 'open' || given > 0}
        editable={approvers === 1 && Object.keys(args).length > 0}
        onDecide={onDecide}
      />
      {state === 'open' && <Refused approvalId={approvalId} />}
    </>
  )
}

function Refused({ approvalId }: { readonly approvalId: string }) {
  const texts = useTexts()
  const refusal = useApprovals().refusals.get(approvalId)
  if (!refusal) return null
  return (
    <p className="tool-failure" role="alert">
      {texts.approval.refusals[refusal.code] ?? refusal.message}
    </p>
  )
}
