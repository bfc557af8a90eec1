import { useAdkLabels } from '../provider.tsx'
import type { Approval, Decision, Votes } from '../reading/approval.ts'
import type { Arguments } from '../reading/call.ts'
import type { ServerError } from '../reading/problem.ts'
import { ApprovalForm } from './approval-form.tsx'
import { RefusalNote } from './approval-notes.tsx'

interface ApprovalDecisionProps {
  readonly approval: Approval
  readonly args: Arguments
  readonly state: 'open' | 'closed'
  readonly votes: Votes | undefined
  readonly refusal: ServerError | undefined
  readonly onDecide: (decision: Decision) => void
}

const NO_VOTES: Votes = { given: 0, voted: false }

/** The form of a pending approval, and the reason if the server refused the last decision. */
export function ApprovalDecision(props: ApprovalDecisionProps) {
  const { approval, args, state, votes = NO_VOTES, refusal, onDecide } = props
  const labels = useAdkLabels()
  const { approvers = 1, editable } = approval
  const isOpen = state === 'open'
  // Shown whatever the outcome is: the person must know that their decision was not the one that counted.
  if (approval.state !== 'requested') return <RefusalNote refusal={refusal} />
  return (
    <>
      {isOpen && approvers > 1 && (
        <p className="adk-votes">{labels.approval.votes(votes, approvers)}</p>
      )}
      <ApprovalForm
        args={args}
        // Hidden, not removed: the form keeps its input in case the server refuses the decision.
        hidden={!isOpen || votes.voted}
        editable={editable && Object.keys(args).length > 0}
        onDecide={onDecide}
      />
      <RefusalNote refusal={refusal} />
    </>
  )
}
