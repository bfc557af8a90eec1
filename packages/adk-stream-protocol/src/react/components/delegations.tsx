import { useCallback, useEffect, useId, useState } from 'react'

import type { AdkApi } from '../../client/api/adk-api.ts'
import type { DelegationLists, ShownDelegation } from '../../protocol/delegations.ts'
import type { PendingApproval } from '../../protocol/server-views.ts'
import { toLiteral } from '../../shared/literal-text.ts'
import { useAdkLabels } from '../provider.tsx'
import type { Decision } from '../reading/approval.ts'
import { ApprovalInbox } from './approval-inbox.tsx'
import { Time } from './approval-parts.tsx'
import { OutlinedButton } from './buttons.tsx'

type DelegationApi = Pick<
  AdkApi,
  'listDelegations' | 'delegate' | 'endDelegation' | 'listDelegated' | 'decideDelegated' | 'watch'
>

/**
 * Props of `Delegations`.
 *
 * @inline
 */
interface DelegationsProps {
  readonly api: DelegationApi
  /** The people whom the person can name. Default: the person enters an id. */
  readonly people?: readonly { readonly id: string; readonly name?: string }[] | undefined
}

const DAY_MS = 24 * 3_600_000
const DAYS = [1, 3, 7, 14, 30] as const

/**
 * Shows who decides in the place of the person, with a form to name somebody, and what the person can decide in the place of others. Place it
 * beside the inbox.
 */
export function Delegations({ api, people }: DelegationsProps) {
  const labels = useAdkLabels().delegations
  const { lists, waiting, hasFailed, act } = useDelegations(api)
  return (
    <section className="adk-delegations" aria-label={labels.title}>
      {hasFailed && <p className="adk-failure">{labels.failed}</p>}
      {lists.received.map((delegation) => (
        <div key={delegation.id}>
          <p>
            {labels.received(nameOf(delegation.from))} <End at={delegation.expiresAt} />{' '}
            <EndButton delegation={delegation} person={delegation.from} act={act} api={api} />
          </p>
          <ApprovalInbox
            approvals={waiting.get(delegation.id) ?? []}
            onDecide={(id, decision: Decision) =>
              act(() => api.decideDelegated(delegation.id, id, toDecision(decision)))
            }
          />
        </div>
      ))}
      {lists.given.length > 0 && (
        <ul>
          {lists.given.map((delegation) => (
            <li key={delegation.id}>
              {labels.given(nameOf(delegation.to))} <End at={delegation.expiresAt} />{' '}
              <EndButton delegation={delegation} person={delegation.to} act={act} api={api} />
            </li>
          ))}
        </ul>
      )}
      <DelegateForm people={people} onGive={(to, forMs) => act(() => api.delegate(to, forMs))} />
    </section>
  )
}

/** Returns the name of a person, or their id. */
function nameOf({ name, id }: ShownDelegation['to']): string {
  return toLiteral(name ?? id)
}

type Act = (action: () => Promise<unknown>) => Promise<void>

/** A delegate edits nothing. */
function toDecision({ approved, reason, preview }: Decision) {
  return {
    approved,
    ...(reason !== undefined && { reason }),
    ...(preview !== undefined && { preview }),
  }
}

function End({ at }: { readonly at: number | undefined }) {
  const { until } = useAdkLabels().delegations
  if (at === undefined) return null
  return (
    <span>
      {until} <Time at={at} />
    </span>
  )
}

function EndButton({
  delegation,
  person,
  act,
  api,
}: {
  readonly delegation: ShownDelegation
  readonly person: ShownDelegation['to']
  readonly act: Act
  readonly api: DelegationApi
}) {
  const labels = useAdkLabels().delegations
  return (
    <OutlinedButton
      aria-label={labels.endNamed(nameOf(person))}
      onClick={() => void act(() => api.endDelegation(delegation.id))}
    >
      {labels.end}
    </OutlinedButton>
  )
}

interface DelegateFormProps extends Pick<DelegationsProps, 'people'> {
  readonly onGive: (to: string, forMs: number) => Promise<void>
}

function DelegateForm({ people, onGive }: DelegateFormProps) {
  const labels = useAdkLabels().delegations
  const [to, setTo] = useState('')
  const [days, setDays] = useState<number>(DAYS[0])
  const ids = { person: useId(), days: useId() }
  const give = async (): Promise<void> => {
    if (to === '') return
    await onGive(to, days * DAY_MS)
    setTo('')
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void give()
      }}
    >
      <label htmlFor={ids.person}>{labels.person}</label>
      {people ? (
        <select id={ids.person} value={to} onChange={(event) => setTo(event.target.value)}>
          <option value="">{labels.nobody}</option>
          {people.map((person) => (
            <option key={person.id} value={person.id}>
              {person.name ?? person.id}
            </option>
          ))}
        </select>
      ) : (
        <input id={ids.person} value={to} onChange={(event) => setTo(event.target.value)} />
      )}
      <label htmlFor={ids.days}>{labels.time}</label>
      <select id={ids.days} value={days} onChange={(event) => setDays(Number(event.target.value))}>
        {DAYS.map((each) => (
          <option key={each} value={each}>
            {labels.days(each)}
          </option>
        ))}
      </select>
      <OutlinedButton type="submit">{labels.give}</OutlinedButton>
    </form>
  )
}

const NO_LISTS: DelegationLists = { given: [], received: [] }

/** Reads the delegations and what waits for the delegate, and again when an approval changes and after each action. */
function useDelegations(api: DelegationApi) {
  const [lists, setLists] = useState(NO_LISTS)
  const [waiting, setWaiting] = useState<ReadonlyMap<string, readonly PendingApproval[]>>(new Map())
  const [hasFailed, setFailed] = useState(false)
  const load = useCallback(async (): Promise<void> => {
    // If this fails, the lists stay as they were, and the next change reads them again.
    const found = await api.listDelegations().catch(() => undefined)
    if (!found) return
    const entries = found.received.map(
      async ({ id }) => [id, await api.listDelegated(id).catch(() => [])] as const,
    )
    setWaiting(new Map(await Promise.all(entries)))
    setLists(found)
  }, [api])
  useEffect(() => {
    // The state is set when the server has answered.
    // oxlint-disable-next-line react/set-state-in-effect
    void load()
    return api.watch(() => void load())
  }, [api, load])
  const act: Act = async (action) => {
    const isDone = await action().then(
      () => true,
      () => false,
    )
    setFailed(!isDone)
    await load()
  }
  return { lists, waiting, hasFailed, act }
}
