import { useCallback, useSyncExternalStore, useRef, useState, useEffect, useMemo } from 'react'
import type { UIMessage } from 'ai'

import type { AdkApi } from '../../client/api/adk-api.ts'
import {
  NONE_REFUSED,
  NONE_WAITING,
  type RefusedDecision,
  type WaitingDecisions,
} from '../../client/api/decision-outbox.ts'
import { type ApprovalDetails, readApprovals, type Votes } from '../reading/approval.ts'
import { useLatest } from '../use-stable.ts'

/** The part of `AdkApi` that keeps decisions. */
export type WaitingDecisionsApi = Pick<
  AdkApi,
  | 'waitingDecisions'
  | 'onWaitingDecisions'
  | 'cancelDecision'
  | 'refusedDecisions'
  | 'dismissRefused'
>

/** Returns the decisions that wait for the connection, by approval id, whichever part of the page sent them. */
export function useWaitingDecisions(
  api: Partial<WaitingDecisionsApi> | undefined,
): WaitingDecisions {
  return useOutbox(api, () => api?.waitingDecisions ?? NONE_WAITING)
}

/** Returns the decisions that the server refused after they had waited. */
export function useRefusedDecisions(
  api: Partial<WaitingDecisionsApi> | undefined,
): readonly RefusedDecision[] {
  return useOutbox(api, () => api?.refusedDecisions ?? NONE_REFUSED)
}

function useOutbox<Snapshot>(
  api: Partial<WaitingDecisionsApi> | undefined,
  read: () => Snapshot,
): Snapshot {
  const subscribe = useCallback(
    (listener: () => void) => api?.onWaitingDecisions?.(listener) ?? (() => undefined),
    [api],
  )
  return useSyncExternalStore(subscribe, read, read)
}

const NO_IDS: ReadonlySet<string> = new Set()

/** Tracks operations in progress by id. A ref rejects a second click before the next render. */
export function usePendingIds() {
  const [pending, setPending] = useState(NO_IDS)
  const ids = useRef(new Set<string>())
  /** Returns false if the operation is already in progress. */
  const add = useCallback((id: string): boolean => {
    if (ids.current.has(id)) return false
    setPending(new Set(ids.current.add(id)))
    return true
  }, [])
  const remove = useCallback((id: string): void => {
    ids.current.delete(id)
    setPending(new Set(ids.current))
  }, [])
  return { pending, add, remove }
}

/** How long changes are collected before the pending approvals are read again, in ms. A decision alone is three changes. */
const MERGE_MS = 50

const NO_VOTES: ReadonlyMap<string, Votes> = new Map()
const NO_HINTS: ReadonlyMap<string, string> = new Map()
const NO_DETAILS: ReadonlyMap<string, ApprovalDetails> = new Map()

/**
 * Reads what the messages do not contain about pending approvals: how many people have approved, the policy's current hint and preview,
 * and the schema of the arguments. Reads them again when an approval of the chat changes, because a call that ran may have changed a
 * hint.
 */
export function useVotes(
  api: Pick<AdkApi, 'readApproval'> | undefined,
  messages: readonly UIMessage[],
) {
  const [votes, setVotes] = useState(NO_VOTES)
  const [hints, setHints] = useState(NO_HINTS)
  const [details, setDetails] = useState(NO_DETAILS)
  const update = useCallback(
    async (approvalId: string): Promise<void> => {
      // If this fails, the card shows what the message contains, and the server refuses a second vote.
      const response = await api?.readApproval(approvalId).catch(() => undefined)
      if (!response) return
      const { approvals, voted, version, hint, preview, argsSchema } = response.approval
      if (approvals.needed > 1)
        setVotes((known) =>
          keepNewerVotes(known, approvalId, { given: approvals.given, voted, version }),
        )
      if (hint !== undefined)
        setHints((known) =>
          known.get(approvalId) === hint ? known : new Map([...known, [approvalId, hint]]),
        )
      setDetails((known) => keepDetails(known, approvalId, { preview, argsSchema }))
    },
    [api],
  )
  const pending = useMemo(() => listPending(messages), [messages])
  const ids = pending.join(' ')
  useEffect(() => {
    // The state is set later, when the server responds.
    // oxlint-disable-next-line react/set-state-in-effect
    for (const id of ids === '' ? [] : ids.split(' ')) void update(id)
  }, [ids, update])
  const latest = useLatest(pending)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const onApproval = useCallback(() => {
    if (timer.current !== undefined) return
    timer.current = setTimeout(() => {
      timer.current = undefined
      for (const id of latest.current) void update(id)
    }, MERGE_MS)
  }, [latest, update])
  useEffect(
    () => () => {
      clearTimeout(timer.current)
      timer.current = undefined
    },
    [],
  )
  const onRefresh = useCallback((approvalId: string) => void update(approvalId), [update])
  return { votes, hints, details, onApproval, onRefresh: api ? onRefresh : undefined }
}

/** Keeps the known details if the new ones are the same, so that no card renders again. */
function keepDetails(
  known: ReadonlyMap<string, ApprovalDetails>,
  approvalId: string,
  details: ApprovalDetails,
): ReadonlyMap<string, ApprovalDetails> {
  const before = known.get(approvalId)
  const isSame =
    before &&
    before.preview?.digest === details.preview?.digest &&
    (before.argsSchema === undefined) === (details.argsSchema === undefined)
  return isSame ? known : new Map([...known, [approvalId, details]])
}

function listPending(messages: readonly UIMessage[]): string[] {
  return messages
    .flatMap((message) => [...readApprovals(message).values()])
    .filter(({ state }) => state === 'requested')
    .map(({ approvalId }) => approvalId)
}

/** Ignores a response that is older than the known one. */
function keepNewerVotes(
  known: ReadonlyMap<string, Votes>,
  approvalId: string,
  votes: Votes,
): ReadonlyMap<string, Votes> {
  const before = known.get(approvalId)
  const isNew = !before || (votes.version ?? votes.given) > (before.version ?? before.given)
  return isNew ? new Map([...known, [approvalId, votes]]) : known
}
