import { useAdkLabels } from '../provider.tsx'
import type { ApprovalLinkState } from '../hooks/use-approval-link.ts'
import { ApprovalInbox } from './approval-inbox.tsx'
import { namePerson } from './approval-people.tsx'
import { LiteralText } from './arguments-table.tsx'

/** Shows the approval of a link, as `useApprovalLink` returns it, with a form to decide it once. */
export function LinkedApprovalView({ link }: { readonly link: ApprovalLinkState }) {
  const { share, history, inbox } = useAdkLabels()
  const { state, linked, outcome, problem, deciding, decide } = link
  return (
    <section className="adk-linked">
      <p role="status">
        {state === 'opening' && history.loading}
        {state === 'decided' && share.thanks(history.states[outcome ?? ''] ?? outcome ?? '')}
        {state === 'failed' && share.invalid}
      </p>
      {state === 'failed' && problem?.code === 'not-allowed' && <p>{problem.message}</p>}
      {state === 'open' && linked && (
        <>
          <p>
            {share.from} <LiteralText text={namePerson(linked.from, inbox.context)} />
          </p>
          <ApprovalInbox
            approvals={[linked.approval]}
            onDecide={(_id, decision) => decide(decision)}
            deciding={deciding ? new Set([linked.approval.id]) : undefined}
            refusals={problem && new Map([[linked.approval.id, problem]])}
          />
        </>
      )}
    </section>
  )
}
