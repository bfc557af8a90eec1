import { useId } from 'react'

import type { PendingApproval, ShownPerson } from '../../protocol/server-views.ts'
import { useAdkLabels } from '../provider.tsx'
import { toDisplayName } from '../reading/display-name.ts'
import { toLiteral } from '../reading/literal-text.ts'
import { namePerson } from './approval-people.tsx'

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
