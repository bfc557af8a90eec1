import { useState, type ReactNode } from 'react'

import { isRecord } from '../../protocol/guards.ts'
import { useAdkLabels } from '../provider.tsx'
import { type Approval, type Decision, isPending } from '../reading/approval.ts'
import { getToolName, type Call } from '../reading/call.ts'
import { ANSWER_FIELD, toAnswer, toAnswerFields } from '../reading/form-fields.ts'
import { toLiteral } from '../../shared/literal-text.ts'
import { toQuestionTitle, toShownAnswer } from '../reading/question.ts'
import type { ApprovalCardProps } from './approval-card.tsx'
import { ArgumentsForm } from './arguments-form.tsx'
import { ArgumentsTable, LiteralText, ValueView } from './call-details.tsx'
import { closeOnEscape, type Draft, DenyForm, EMPTY_DRAFT, UnsentDraft } from './approval-form.tsx'
import { DecidedBy, CancelDecision, describeWaiting, RefusalNote } from './approval-parts.tsx'
import type { WaitingDecision } from '../../client/api/decision-outbox.ts'
import type { ServerError } from '../reading/problem.ts'
import { OutlinedButton } from './buttons.tsx'
import { Countdown } from './countdown.tsx'
import { useFocusStatus } from './focus.ts'

/** Shows a question of the agent: the form for the answer, and then the answer. */
export function QuestionCard(props: ApprovalCardProps) {
  const { call, approval, onDecide, refusal, waitingDecision, onCancelDecision } = props
  const labels = useAdkLabels()
  const { question } = labels
  const [draft, setDraft] = useState(EMPTY_DRAFT)
  const { state, hint = '', reason } = approval
  const title = toLiteral(toQuestionTitle(approval, call.input, labels))
  const status = state === 'requested' ? question.waiting : question.states[state]
  const hidden = !isPending(call, approval) || waitingDecision !== undefined
  return (
    <QuestionFrame
      className="adk-question"
      {...{ call, approval, refusal, title, waitingDecision, onCancelDecision }}
      label={`${title}: ${toLiteral(hint)}`}
      status={withReason(status, reason)}
      decidedBy={<DecidedBy approval={approval} />}
    >
      <LiteralText
        in="p"
        className="adk-call-description"
        text={hint === '' ? getToolName(call) : hint}
        multiline
      />
      {state === 'requested' && (
        <QuestionForm
          {...{ approval, draft, hidden, onDecide }}
          args={call.input}
          onDraft={setDraft}
        />
      )}
      {waitingDecision?.decision.approved === true && (
        <Answer answer={waitingDecision.decision.payload} schema={approval.schema} />
      )}
      {state !== 'requested' && (
        <>
          {state === 'approved' && (
            <Answer answer={approval.approvedPayload} schema={approval.schema} />
          )}
          {(state === 'expired' || state === 'cancelled') && (
            <UnsentDraft draft={draft} args={{}} />
          )}
        </>
      )}
    </QuestionFrame>
  )
}

function withReason(status: string, reason: string | undefined): string {
  return reason === undefined ? status : `${status} ${toLiteral(reason)}`
}

interface QuestionFormProps {
  readonly approval: {
    readonly kind?: Approval['kind'] | undefined
    readonly schema?: Approval['schema'] | undefined
  }
  /** The arguments of the call that asks. */
  readonly args: unknown
  readonly hidden: boolean
  readonly draft: Draft
  readonly onDraft: (draft: Draft) => void
  readonly onDecide: (decision: Decision) => void
}

/** Answers a question: with a form, or by opening the URL that it names. */
export function QuestionForm(props: QuestionFormProps) {
  const { approval, args, hidden, onDecide } = props
  const url = readUrlQuestion(approval, args)
  if (url) return <OpenUrlForm {...{ url, hidden, onDecide }} />
  return (
    <>
      <SignInLink approval={approval} args={args} />
      <AnswerForm {...props} schema={approval.schema} />
    </>
  )
}

interface AnswerFormProps extends Omit<QuestionFormProps, 'approval' | 'args'> {
  readonly schema: Approval['schema']
}

/** Answers a question, or declines it with a reason. */
function AnswerForm({ schema, hidden, draft, onDraft, onDecide }: AnswerFormProps) {
  const { question, locale } = useAdkLabels()
  const [isDeclining, setDeclining] = useState(false)
  const fields = draft.fields ?? toAnswerFields(schema, locale)
  const close = (): void => setDeclining(false)
  const onKeyDown = closeOnEscape(close)
  if (isDeclining)
    return (
      <div className="adk-approval-form" hidden={hidden}>
        <DenyForm
          label={question.confirmDecline}
          reason={draft.reason}
          onChange={(reason) => onDraft({ ...draft, reason })}
          onKeyDown={onKeyDown}
          onClose={close}
          onDeny={(reason) =>
            onDecide({ approved: false, ...(reason !== undefined && { reason }) })
          }
        />
      </div>
    )
  return (
    <ArgumentsForm
      fields={fields.map((field) =>
        field.name === ANSWER_FIELD && !field.label ? { ...field, label: question.field } : field,
      )}
      labels={{
        submit: fields.length === 0 ? question.proceed : question.send,
        close: question.decline,
      }}
      // A question appears while the person reads or types elsewhere.
      takesFocus={false}
      isHeld={false}
      hidden={hidden}
      onChange={(changed) => onDraft({ ...draft, fields: changed })}
      onKeyDown={onKeyDown}
      onClose={() => setDeclining(true)}
      onSubmit={(args) => onDecide({ approved: true, payload: toAnswer(schema, args) })}
    />
  )
}

interface AnswerProps {
  readonly answer: unknown
  readonly schema: Approval['schema']
}

function Answer({ answer, schema }: AnswerProps) {
  const { question } = useAdkLabels()
  const shown = toShownAnswer(schema, answer, question)
  if (shown === undefined) return null
  if (isRecord(shown)) return <ArgumentsTable args={shown} titles={readTitles(schema)} />
  return (
    <div className="adk-answer">
      <ValueView value={shown} />
    </div>
  )
}

/** Returns the titles that the schema of an answer gives its fields. */
function readTitles(schema: Approval['schema']): Readonly<Record<string, string>> {
  const properties = isRecord(schema) && isRecord(schema['properties']) ? schema['properties'] : {}
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, property]) =>
      isRecord(property) && typeof property['title'] === 'string'
        ? [[name, property['title']]]
        : [],
    ),
  )
}

interface QuestionFrameProps {
  readonly className: string
  readonly call: Call
  readonly approval: Approval
  readonly refusal: ServerError | undefined
  readonly title: string
  readonly label: string
  /** The state of the question, for screen readers while it is pending and for everybody afterwards. */
  readonly status: string
  /** The answer, if it waits for the connection. */
  readonly waitingDecision: WaitingDecision | undefined
  /** Takes back an answer that waits for the connection. */
  readonly onCancelDecision: (() => boolean) | undefined
  /** Shown next to the status when the question is decided. */
  readonly decidedBy?: ReactNode
  /** Shown below the status when the question is decided. */
  readonly details?: ReactNode
  readonly children: ReactNode
}

/** The parts of a card that all questions have: title, countdown, refusal and status. */
export function QuestionFrame(props: QuestionFrameProps) {
  const { call, approval, title, decidedBy, details, waitingDecision: waiting } = props
  const labels = useAdkLabels()
  const [isOverdue, setOverdue] = useState(false)
  const pending = isPending(call, approval)
  const { state, deadline } = approval
  const ending = pending && isOverdue ? labels.approval.deadlinePassed : props.status
  const status = waiting
    ? toLiteral(describeWaiting(waiting, { labels, isQuestion: true }))
    : ending
  const statusRef = useFocusStatus(pending && !waiting)
  return (
    <div
      className={`adk-tool adk-approval ${props.className}`}
      role="group"
      data-state={call.state}
      data-ending={state}
      data-phase={pending ? 'pending' : 'ended'}
      data-approval={approval.approvalId}
      data-tool={getToolName(call)}
      data-tool-call={call.toolCallId}
      aria-label={props.label}
      // Focusable by script, and not by the Tab key.
      tabIndex={-1}
    >
      <header className="adk-tool-header">
        <span className="adk-dot" aria-hidden="true" />
        <span className="adk-title">{title}</span>
        {pending && deadline !== undefined && (
          <Countdown deadline={deadline} onOverdue={setOverdue} />
        )}
      </header>
      {props.children}
      <RefusalNote refusal={props.refusal} />
      <div className="adk-ending">
        <p
          className={pending && !isOverdue && !waiting ? 'adk-hidden' : 'adk-status'}
          role="status"
          tabIndex={-1}
          ref={statusRef}
        >
          {status}
        </p>
        {!pending && decidedBy}
      </div>
      <CancelDecision {...props} isWaiting={waiting?.mayHaveArrived === false} />
      {!pending && details}
    </div>
  )
}

/** Returns the URL that an MCP server asks a person to open. Returns undefined for any other question. */
function readUrlQuestion(
  { kind, schema }: QuestionFormProps['approval'],
  args: unknown,
): URL | undefined {
  const url = isRecord(args) ? args['url'] : undefined
  if (kind !== 'elicitation' || schema !== undefined || typeof url !== 'string') return undefined
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  return parsed && /^https?:$/.test(parsed.protocol) ? parsed : undefined
}

/** Returns the page at which a remote agent asks a person to sign in. Only https is safe. Returns undefined for any other question. */
function readSignInPage({ kind }: QuestionFormProps['approval'], args: unknown): URL | undefined {
  const url = isRecord(args) ? args['url'] : undefined
  if (kind !== 'input' || typeof url !== 'string' || !URL.canParse(url)) return undefined
  const parsed = new URL(url)
  return parsed.protocol === 'https:' ? parsed : undefined
}

/** Links to the page at which a remote agent asks a person to sign in. To open it is no answer. */
function SignInLink({ approval, args }: Pick<QuestionFormProps, 'approval' | 'args'>) {
  const { question } = useAdkLabels()
  const url = readSignInPage(approval, args)
  if (!url) return null
  return (
    <>
      <ShownUrl url={url} />
      <p>
        <a className="adk-button" href={url.href} target="_blank" rel="noopener noreferrer">
          {question.openUrl(toLiteral(url.host))}
        </a>
      </p>
    </>
  )
}

function ShownUrl({ url }: { readonly url: URL }) {
  const { question } = useAdkLabels()
  return (
    <>
      <p>
        {question.asksToOpen} <strong>{toLiteral(url.host)}</strong>
      </p>
      <LiteralText in="p" text={url.href} />
    </>
  )
}

interface OpenUrlFormProps {
  readonly url: URL
  readonly hidden: boolean
  readonly onDecide: (decision: Decision) => void
}

/** Asks a person to open a URL. It opens only by their click, which is the answer. */
function OpenUrlForm({ url, hidden, onDecide }: OpenUrlFormProps) {
  const { question } = useAdkLabels()
  return (
    <div className="adk-approval-form" hidden={hidden}>
      <ShownUrl url={url} />
      <div className="adk-actions">
        <a
          className="adk-button"
          href={url.href}
          target="_blank"
          rel="noopener noreferrer"
          onClick={() => onDecide({ approved: true })}
        >
          {question.openUrl(toLiteral(url.host))}
        </a>
        <OutlinedButton onClick={() => onDecide({ approved: false })}>
          {question.decline}
        </OutlinedButton>
      </div>
    </div>
  )
}
