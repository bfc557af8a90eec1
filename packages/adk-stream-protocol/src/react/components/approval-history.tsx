import { type ReactNode, useRef, useId } from 'react'

import type { PendingApproval, ShownPerson } from '../../protocol/server-views.ts'
import { useAdkLabels, useCallDescription, useDescribeCall } from '../provider.tsx'
import { asksForAnswer } from '../reading/approval.ts'
import type { CallPhase } from '../reading/call.ts'
import { toDisplayName } from '../reading/display-name.ts'
import { toLiteral } from '../../shared/literal-text.ts'
import type { ServerError } from '../reading/problem.ts'
import { toCallTitle, toQuestionTitle } from '../reading/question.ts'
import { ApprovalLine, ApprovalList, LoadMore } from './approval-list.tsx'
import { ApprovalPeople, Fact, namePerson, Time, UnderstoodFrom } from './approval-parts.tsx'
import { ArgumentsTable, LiteralText, FunctionName } from './call-details.tsx'
import { PreviewView } from './call-preview.tsx'

/**
 * Approvals, as `useApprovalHistory` returns them.
 *
 * @inline
 */
export interface ApprovalHistoryListProps {
  readonly approvals: readonly PendingApproval[]
  /** Why the list could not be refreshed. */
  readonly problem?: ServerError | undefined
  /** Whether the first page has not arrived yet. Default false. */
  readonly loading?: boolean | undefined
  readonly hasMore?: boolean | undefined
  readonly onLoadMore?: (() => void) | undefined
  readonly loadingMore?: boolean | undefined
  /** Renders a link to the call's chat. The server sends `chatId` to the owner of the chat only. */
  readonly renderChatLink?: ((chatId: string) => ReactNode) | undefined
}

/** Lists approvals with what became of them: who decided, when, why, and what the call did. */
export function ApprovalHistoryList(props: ApprovalHistoryListProps) {
  const { approvals, problem, loading = false, renderChatLink } = props
  const { inbox, history } = useAdkLabels()
  const describe = useDescribeCall()
  const listRef = useRef<HTMLElement>(null)
  const isEmpty = approvals.length === 0 && !problem
  return (
    <ApprovalList
      label={history.title}
      collapsible
      sectionRef={listRef}
      before={
        <>
          {problem && <p className="adk-failure">{inbox.loadFailed}</p>}
          <p className="adk-inbox-empty" role="status">
            {isEmpty && (loading ? history.loading : history.empty)}
          </p>
        </>
      }
      after={<LoadMore {...props} onGone={() => listRef.current?.focus()} />}
      items={approvals.map((approval) => ({
        id: approval.id,
        label:
          readQuestion(approval) ??
          describe(approval.toolName, approval.args, approval.receipt?.headline),
        severity: undefined,
        summary: <HistorySummary approval={approval} />,
        details: (
          <HistoryDetails
            approval={approval}
            link={approval.chatId !== undefined && renderChatLink?.(approval.chatId)}
          />
        ),
      }))}
    />
  )
}

function HistorySummary({ approval }: { readonly approval: PendingApproval }) {
  const labels = useAdkLabels()
  const { history } = labels
  const { toolName, args, editedArgs, title, kind, state, at, requestedAt, requester, receipt } =
    approval
  const { description } = useCallDescription(toolName, editedArgs ?? args, {
    phase: PHASES[state] ?? 'pending',
    headline: receipt?.headline,
  })
  return (
    <ApprovalLine
      title={
        kind === 'elicitation'
          ? toQuestionTitle(approval, args, labels)
          : toCallTitle(toolName, title, labels)
      }
      description={readQuestion(approval) ?? description}
      values={editedArgs ?? args}
      mark={
        <span className="adk-tool-state" data-state={state}>
          {history.states[state] ?? state}
        </span>
      }
      requester={requester}
      time={<Time at={at ?? requestedAt} />}
    />
  )
}

/** Returns the text of a question. Undefined for other approvals. */
function readQuestion(approval: PendingApproval): string | undefined {
  return asksForAnswer(approval) ? approval.hint : undefined
}

/** How a call is described. A call that runs is described like a pending one. */
const PHASES: Readonly<Record<string, CallPhase>> = {
  denied: 'denied',
  expired: 'expired',
  cancelled: 'cancelled',
  succeeded: 'succeeded',
  failed: 'failed',
  unknown: 'unknown',
}

interface HistoryDetailsProps {
  readonly approval: PendingApproval
  readonly link: ReactNode
}

function HistoryDetails({ approval, link }: HistoryDetailsProps) {
  const { inbox, history } = useAdkLabels()
  const { toolName, args, editedArgs, state, by = [], reason, reply, receipt } = approval
  return (
    <>
      <FunctionName name={toolName} />
      <ArgumentsTable args={args} edited={editedArgs} />
      <ApprovalPeople approval={approval} />
      <dl className="adk-people">
        {state === 'denied' && by.length > 0 && (
          <Fact name={history.deniedBy}>
            {by.map((person) => (
              <LiteralText key={person.id} text={namePerson(person, inbox.context)} />
            ))}
          </Fact>
        )}
        {reason !== undefined && (
          <Fact name={history.reason}>
            <LiteralText text={reason} />
          </Fact>
        )}
      </dl>
      <UnderstoodFrom reply={reply} />
      {receipt?.blocked !== undefined && (
        <LiteralText in="p" className="adk-failure" text={receipt.blocked} />
      )}
      {receipt && <PreviewView preview={receipt} />}
      {link}
    </>
  )
}

/**
 * The conditions of `useApprovalHistory`.
 *
 * @inline
 */
interface ApprovalFilter {
  /** `decided`, `all`, or names of states separated by commas. */
  readonly state: string
  readonly toolName?: string | undefined
  /** The id of a principal. */
  readonly requester?: string | undefined
}

/** @inline */
export interface ApprovalFiltersProps {
  readonly filter: ApprovalFilter
  readonly onChange: (filter: ApprovalFilter) => void
  /** The approvals that are shown. Their tools and requesters can be selected. */
  readonly approvals: readonly PendingApproval[]
}

const STATES = [
  'decided',
  'all',
  'requested',
  'succeeded',
  'failed',
  'denied',
  'expired',
  'cancelled',
]

/** Selects the state, the tool and the requester of the approvals to list. */
export function ApprovalFilters({ filter, onChange, approvals }: ApprovalFiltersProps) {
  const { history, inbox, tool: toolLabels } = useAdkLabels()
  const tools = [
    ...new Set([...listed(filter.toolName), ...approvals.map(({ toolName }) => toolName)]),
  ]
  const people = new Map<string, ShownPerson>([
    ...listed(filter.requester).map((id) => [id, { id }] as const),
    ...approvals.flatMap(({ requester }) =>
      requester ? [[requester.id, requester] as const] : [],
    ),
  ])
  return (
    <form className="adk-filters" role="search" aria-label={history.filters}>
      <Choice
        label={history.state}
        value={filter.state}
        options={[...new Set([...STATES, filter.state])].map((state) => ({
          value: state,
          name: history.states[state] ?? state,
        }))}
        onChange={(state) => onChange({ ...filter, state })}
      />
      <Choice
        label={history.tool}
        value={filter.toolName ?? ''}
        options={[
          { value: '', name: history.any },
          ...tools.map((tool) => ({
            value: tool,
            name: toLiteral(toDisplayName(tool, toolLabels.names)),
          })),
        ]}
        onChange={(tool) => onChange({ ...filter, toolName: tool === '' ? undefined : tool })}
      />
      <Choice
        label={inbox.context.requestedBy}
        value={filter.requester ?? ''}
        options={[
          { value: '', name: history.any },
          ...[...people.values()].map((person) => ({
            value: person.id,
            name: toLiteral(namePerson(person, inbox.context)),
          })),
        ]}
        onChange={(id) => onChange({ ...filter, requester: id === '' ? undefined : id })}
      />
    </form>
  )
}

function listed(value: string | undefined): string[] {
  return value === undefined ? [] : [value]
}

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly options: readonly { readonly value: string; readonly name: string }[]
  readonly onChange: (value: string) => void
}

function Choice({ label, value, options, onChange }: ChoiceProps) {
  const id = useId()
  return (
    <p>
      <label htmlFor={id}>{label}</label>
      <select
        id={id}
        className="adk-field"
        value={value}
        onChange={(event) => onChange(event.target.value)}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.name}
          </option>
        ))}
      </select>
    </p>
  )
}
