import { useAdkTexts } from '../provider.tsx'
import type { Approval, Decision, Votes } from '../reading/approval.ts'
import type { Arguments } from '../reading/call.ts'
import type { ToldError } from '../reading/problem.ts'
import { ApprovalForm } from './approval-form.tsx'
import { Refused } from './refused.tsx'

interface ApprovalDecisionProps {
  readonly approval: Approval
  readonly args: Arguments
  readonly state: 'open' | 'closed'
  readonly votes: Votes | undefined
  readonly refusal: ToldError | undefined
  readonly onDecide: (decision: Decision) => void
}

const NO_VOTES: Votes = { given: 0, voted: false }

/** Lets the reader decide, and says why a decision was not accepted. */
export function ApprovalDecision(props: ApprovalDecisionProps) {
  const { approval, args, state, votes = NO_VOTES, refusal, onDecide } = props
  const texts = useAdkTexts()
  const { approvers = 1, editable } = approval
  const isOpen = state === 'open'
  // Whatever became of the call: who decided must know that it was not by that.
  if (approval.state !== 'requested') return <Refused refusal={refusal} />
  return (
    <>
      {isOpen && approvers > 1 && (
        <p className="adk-votes">{texts.approval.votes(votes, approvers)}</p>
      )}
      <ApprovalForm
        args={args}
        // Kept while the decision travels: what was typed is still there if it is refused.
        hidden={!isOpen || votes.voted}
        editable={editable && Object.keys(args).length > 0}
        onDecide={onDecide}
      />
      <Refused refusal={refusal} />
    </>
  )
}
