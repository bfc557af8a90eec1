import { type ReactNode, useState } from 'react'

import type {
  PendingApproval,
  ShownPerson,
  ShownStep,
  ShownVote,
} from '../../protocol/server-views.ts'
import { useIsOnline } from '../hooks/use-connection.ts'
import type { ServerError } from '../reading/problem.ts'
import type { AdkLabels } from '../labels/labels.ts'
import { useAdkLabels } from '../provider.tsx'
import { LiteralText } from './call-details.tsx'
import { toLiteral } from '../../shared/literal-text.ts'
import { toDisplayName } from '../reading/display-name.ts'
import type { Approval } from '../reading/approval.ts'
import { PreviewView } from './call-preview.tsx'
import { OutlinedButton } from './buttons.tsx'
import { returnFocus } from './focus.ts'
import type { WaitingDecision } from '../../client/api/decision-outbox.ts'

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
          <LiteralText in="q" className="adk-user-text" text={userText} />
        </Fact>
      )}
      {votes.length > 0 && (
        <Fact name={context.votes}>
          {votes.map(({ by, at, linkBy, delegate }) => (
            <span key={by.id} className="adk-vote">
              <LiteralText text={nameVoter({ by, linkBy, delegate }, context)} />
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
            <Step key={index} step={step} state={stateOf(step, index, approval)} />
          ))}
        </Fact>
      )}
    </dl>
  )
}

/** A row of a list of facts. */
export function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

type StepProgress = 'done' | 'now' | 'later'

function Step({ step, state }: { readonly step: ShownStep; readonly state: StepProgress }) {
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
): StepProgress {
  if (given >= needed) return 'done'
  return index === step && state === 'requested' ? 'now' : 'later'
}

/** Returns who voted, and with whose right. */
function nameVoter(
  { by, linkBy, delegate }: Pick<ShownVote, 'by' | 'linkBy' | 'delegate'>,
  context: AdkLabels['inbox']['context'],
): string {
  if (linkBy) return context.byLink(namePerson(linkBy, context), by.name)
  const name = namePerson(by, context)
  return delegate ? context.byDelegate(namePerson(delegate, context), name) : name
}

/** Returns the name of a person. The id is all that there is if the application gives no name. */
export function namePerson(
  { id, name, own }: ShownPerson,
  context: AdkLabels['inbox']['context'],
): string {
  return own === true ? context.you : (name ?? id)
}

interface ApprovalPathProps {
  /** The names of the agents that lead to the call. */
  readonly path: readonly string[] | undefined
  readonly toolName: string
}

/** Shows which agents lead to a call inside an agent that is used as a tool. Shows nothing for other calls. */
export function ApprovalPath({ path, toolName }: ApprovalPathProps) {
  const labels = useAdkLabels()
  if (path === undefined || path.length === 0) return null
  return (
    <p className="adk-path">
      <span className="adk-hidden">{labels.approval.path} </span>
      <LiteralText
        text={[...path, toolName].map((name) => toDisplayName(name, labels.tool.names)).join(' › ')}
      />
    </p>
  )
}

/** Shows who decided and when, after the status. */
export function DecidedBy({ approval }: { readonly approval: Approval }) {
  const labels = useAdkLabels()
  const { by, at, grant } = approval
  if (!by && at === undefined) return null
  return (
    <span className="adk-decided-by">
      {grant ? (
        <>
          {labels.grants.decided} <Time at={grant.at} />
        </>
      ) : (
        by && labels.approval.decidedBy(by)
      )}
      {by && at !== undefined && ' · '}
      {at !== undefined && <Time at={at} />}
    </span>
  )
}

/** Shows the message that decided, if the person typed or said it instead of using the form. */
export function UnderstoodFrom({ reply }: { readonly reply: Approval['reply'] | undefined }) {
  const { approval } = useAdkLabels()
  if (!reply) return null
  return (
    <p className="adk-understood" data-channel={reply.channel}>
      <LiteralText text={approval.understoodFrom(reply.words)} />
    </p>
  )
}

/** Shows a time in the language of the reader. `at` is in ms since 1970. */
export function Time({ at }: { readonly at: number }) {
  const { locale } = useAdkLabels()
  return <time dateTime={new Date(at).toISOString()}>{formatTime(at, locale)}</time>
}

/** Shows what an approved call did. */
export function Receipt({ approval: { receipt } }: { readonly approval: Approval }) {
  return receipt ? <PreviewView preview={receipt} /> : null
}

/** The time of today, and the date and time of any other day. */
function formatTime(at: number, locale: string): string {
  const date = new Date(at)
  const isToday = date.toDateString() === new Date().toDateString()
  return isToday
    ? date.toLocaleTimeString(locale, { timeStyle: 'short' })
    : date.toLocaleString(locale, { dateStyle: 'medium', timeStyle: 'short' })
}

interface CancelDecisionProps {
  /** Returns false if the decision may have arrived. */
  readonly onCancelDecision?: (() => boolean) | undefined
  /** Whether a decision waits that was not sent. */
  readonly isWaiting: boolean
}

/** Takes back a decision that waits for the connection. */
export function CancelDecision({ onCancelDecision, isWaiting }: CancelDecisionProps) {
  const { approval } = useAdkLabels()
  const [isRefused, setRefused] = useState(false)
  if (!isWaiting || !onCancelDecision) return null
  if (isRefused) return <p className="adk-status">{approval.maybeSent}</p>
  return (
    <div className="adk-actions">
      <OutlinedButton ref={returnFocus} onClick={() => setRefused(!onCancelDecision())}>
        {approval.cancelDecision}
      </OutlinedButton>
    </div>
  )
}

/** Says that a decision waits for the connection. */
export function describeWaiting(
  { decision: { approved, reason }, mayHaveArrived }: WaitingDecision,
  { labels: { approval }, isQuestion }: { labels: AdkLabels; isQuestion: boolean },
): string {
  const given = approved ? 'approval' : 'denial'
  const sentence = approval.waitingDecision(isQuestion ? 'answer' : given, mayHaveArrived)
  return reason === undefined ? sentence : approval.withReason(sentence, reason)
}

/** Shows the severity of a call: as an icon, as text and as a colour. */
export function SeverityMark({
  severity,
}: {
  readonly severity: Approval['severity'] | undefined
}) {
  const labels = useAdkLabels()
  if (!severity) return null
  return (
    <span className="adk-severity" data-severity={severity}>
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
        <path d={SEVERITY_SHAPES[severity]} fill="none" stroke="currentColor" strokeWidth="1.5" />
        <path d={SEVERITY_MARKS[severity]} stroke="currentColor" strokeWidth="1.6" />
      </svg>
      {labels.approval.severity[severity]}
    </span>
  )
}

/** A circle, a triangle and an octagon, so that people who do not see the colours can tell them apart. */
const SEVERITY_SHAPES = {
  low: 'M8 1.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 1 1 0-13z',
  medium: 'M8 1.8 15 14H1z',
  high: 'M5.2 1.2h5.6l4 4v5.6l-4 4H5.2l-4-4V5.2z',
} as const
const SEVERITY_MARKS = {
  low: 'M8 7.2v4.3M8 4.4v1.4',
  medium: 'M8 6v4M8 11.2v1.4',
  high: 'M8 4v5M8 10.4V12',
} as const

/** Shows why the server refused a decision. */
export function RefusalNote({ refusal }: { readonly refusal: ServerError | undefined }) {
  const { approval } = useAdkLabels()
  const isOnline = useIsOnline()
  // The card shows what has changed, and asks again.
  if (!refusal || refusal.code === 'preview-changed') return null
  // Votes, answers and decisions of the inbox are not kept while the browser is offline.
  const code = refusal.code === 'unavailable' && !isOnline ? 'offline' : refusal.code
  return (
    <p className="adk-failure" role="alert">
      {approval.refusals[code] ?? toLiteral(refusal.message)}
    </p>
  )
}
