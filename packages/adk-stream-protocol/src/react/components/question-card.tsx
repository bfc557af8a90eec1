import type { KeyboardEvent } from 'react'
import { useState } from 'react'

import { isRecord } from '../../protocol/guards.ts'
import { useAdkLabels } from '../provider.tsx'
import type { Approval, Decision } from '../reading/approval.ts'
import { isPending } from '../reading/approval.ts'
import { getToolName } from '../reading/call.ts'
import { ANSWER_FIELD, toAnswer, toAnswerFields } from '../reading/edit-arguments.ts'
import { toLiteral } from '../reading/literal-text.ts'
import { toQuestionTitle, toShownAnswer } from '../reading/question.ts'
import type { ApprovalCardProps } from './approval-card.tsx'
import { ArgumentsForm } from './arguments-form.tsx'
import { ArgumentsTable, LiteralText, ValueView } from './arguments-table.tsx'
import type { Draft } from './approval-form.tsx'
import { DenyForm, EMPTY_DRAFT, UnsentDraft } from './approval-form.tsx'
import { OpenUrlForm, readUrlQuestion, SignInLink } from './open-url-form.tsx'
import { QuestionFrame } from './question-frame.tsx'
import { DecidedBy } from './receipt.tsx'

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
  const url = readUrlQuestion(approval, call.input)
  return (
    <QuestionFrame
      className="adk-question"
      {...{ call, approval, refusal, title, waitingDecision, onCancelDecision }}
      label={`${title}: ${toLiteral(hint)}`}
      status={withReason(status, reason)}
      decidedBy={<DecidedBy approval={approval} />}
    >
      <p className="adk-call-description">
        <LiteralText text={hint === '' ? getToolName(call) : hint} />
      </p>
      {state === 'requested' && url && <OpenUrlForm {...{ url, hidden, onDecide }} />}
      {state === 'requested' && !url && (
        <>
          <SignInLink approval={approval} args={call.input} />
          <AnswerForm
            schema={approval.schema}
            {...{ draft, hidden, onDecide }}
            onDraft={setDraft}
          />
        </>
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

interface AnswerFormProps {
  readonly schema: Approval['schema']
  readonly hidden: boolean
  readonly draft: Draft
  readonly onDraft: (draft: Draft) => void
  readonly onDecide: (decision: Decision) => void
}

/** Answers a question, or declines it with a reason. */
export function AnswerForm({ schema, hidden, draft, onDraft, onDecide }: AnswerFormProps) {
  const { question, locale } = useAdkLabels()
  const [isDeclining, setDeclining] = useState(false)
  const fields = draft.fields ?? toAnswerFields(schema, locale)
  const close = (): void => setDeclining(false)
  const onKeyDown = (event: KeyboardEvent): void => {
    // Escape also closes the candidate window of an input method.
    if (event.key !== 'Escape' || event.nativeEvent.isComposing) return
    event.stopPropagation()
    close()
  }
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
