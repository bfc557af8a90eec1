import type { ReactNode } from 'react'

import type { PendingApproval, ShownPerson, ShownStep } from '../../protocol/server-views.ts'
import type { AdkLabels } from '../labels/labels.ts'
import { useAdkLabels } from '../provider.tsx'
import { LiteralText } from './arguments-table.tsx'
import { Time } from './receipt.tsx'

interface ApprovalPeopleProps {
  readonly approval: PendingApproval
}

/** Shows the people of an approval: the requester with their message, the votes, and the steps of the policy. */
export function ApprovalPeople({ approval }: ApprovalPeopleProps): ReactNode {
  const { inbox } = useAdkLabels()
  const { context } = inbox
  const { requester, userText, votes = [], steps = [] } = approval
  if (!requester) return null
  const isOwnOnly = steps.every(
    ({ needed, roles, principals }) =>
      needed === 1 && roles.length === 0 && principals.every(({ own }) => own === true),
  )
  return (
    <dl className="adk-people">
      <Fact name={context.requestedBy}>
        <LiteralText text={namePerson(requester, context)} />
      </Fact>
      {userText !== undefined && (
        <Fact name={context.userText}>
          <q className="adk-user-text">
            <LiteralText text={userText} />
          </q>
        </Fact>
      )}
      {votes.length > 0 && (
        <Fact name={context.votes}>
          {votes.map(({ by, at, linkBy }) => (
            <span key={by.id} className="adk-vote">
              <LiteralText
                text={
                  linkBy
                    ? context.byLink(namePerson(linkBy, context), by.name)
                    : namePerson(by, context)
                }
              />
              {' · '}
              <Time at={at} />
            </span>
          ))}
        </Fact>
      )}
      {!isOwnOnly && (
        <Fact name={context.steps}>
          {steps.map((step, index) => (
            // The steps of an approval never change.
            // oxlint-disable-next-line react/no-array-index-key
            <Step key={index} step={step} state={stateOf(step, index, approval)} />
          ))}
        </Fact>
      )}
    </dl>
  )
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

type StepState = 'done' | 'now' | 'later'

function Step({ step, state }: { readonly step: ShownStep; readonly state: StepState }) {
  const { context } = useAdkLabels().inbox
  const { needed, given, principals, roles } = step
  const people = [
    ...principals.map((person) => namePerson(person, context)),
    ...roles.map((role) => context.role(role)),
  ]
  const count = needed > 1 && state === 'now' ? ` ${given}/${needed}` : ''
  return (
    <span className="adk-step" data-state={state}>
      <LiteralText
        text={context.withStepState(
          context.step({ people, needed }),
          `${context.stepStates[state]}${count}`,
        )}
      />
    </span>
  )
}

function stateOf(
  { given, needed }: ShownStep,
  index: number,
  { step, state }: PendingApproval,
): StepState {
  if (given >= needed) return 'done'
  return index === step && state === 'requested' ? 'now' : 'later'
}

/** Returns the name of a person. The id is all that there is if the application gives no name. */
export function namePerson(
  { id, name, own }: ShownPerson,
  context: AdkLabels['inbox']['context'],
): string {
  return own === true ? context.you : (name ?? id)
}
