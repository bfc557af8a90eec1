import { useCallback, useRef, useState } from 'react'

import type { AdkApi } from '../../client/api/adk-api.ts'
import type { AttachedChat } from '../../client/sync/attached-chat.ts'
import type { PendingApproval } from '../../protocol/server-views.ts'
import type { WaitingDecisions } from '../../client/api/decision-outbox.ts'
import { DECISION_CANCELLED } from '../../client/transports/transport.ts'
import { type Decision, mayWait } from '../reading/approval.ts'
import { type ServerError, toServerError } from '../reading/problem.ts'
import type { Refusals } from './use-attached-chat.ts'
import { useAutoRefresh } from './use-auto-refresh.ts'
import { usePendingIds, type OutboxApi, useWaitingDecisions } from './decisions-in-progress.ts'
import { useLatest } from './use-stable.ts'

/**
 * When the inbox is refreshed, in addition to the server's feed.
 *
 * @inline
 */
export interface UseInboxOptions {
  /** The interval between refreshes while the page is visible, in ms. It covers a lost feed. Default 60,000. */
  readonly pollMs?: number
  /** Whether the list is also refreshed while the page is hidden, for notifications. Default false. */
  readonly whileHidden?: boolean | undefined
  /** Refreshes the inbox when a call of this chat progresses. */
  readonly attached?: AttachedChat | undefined
}

/** Pending approvals of all chats, and the actions to decide them. */
export interface Inbox {
  /** The loaded approvals that this person may decide, in their own chats and in those of others, oldest first. */
  readonly approvals: readonly PendingApproval[]
  /** Whether more approvals are pending than `approvals` contains. */
  readonly hasMore: boolean
  /** Loads the next 100 approvals. */
  readonly loadMore: () => void
  /** Whether more approvals are being loaded. */
  readonly loadingMore: boolean
  /** Why the last refresh failed. `approvals` may be out of date. */
  readonly problem: ServerError | undefined
  /** Why the server refused decisions, by approval id. */
  readonly refusals: Refusals
  /** The ids of approvals whose decision is being sent. Another decision for them is ignored. */
  readonly deciding: ReadonlySet<string>
  /** Decisions that wait for the connection, by approval id. */
  readonly waitingDecisions: WaitingDecisions
  /** Takes back a decision that waits for the connection. Returns false if it may have arrived. */
  readonly cancelDecision: (approvalId: string) => boolean
  /** Sends a decision. If the server refuses it, `refusals` says why. */
  readonly decide: (approvalId: string, decision: Decision) => Promise<void>
  /** Withdraws the person's vote while the approval is pending. */
  readonly withdraw: (approvalId: string) => Promise<void>
  /** Reads the list again. */
  readonly refresh: () => void
}

/**
 * The part of `AdkApi` that the inbox uses. Without `watch`, the inbox only polls. Without `listApprovalsPage`, it loads all
 * approvals at once. Without `withdrawVote`, votes are final. Without `cancelDecision`, decisions are not kept while the server cannot
 * be reached.
 */
export type InboxApi = Pick<AdkApi, 'listApprovals' | 'decide'> &
  Partial<Pick<AdkApi, 'watch' | 'listApprovalsPage' | 'withdrawVote'> & OutboxApi>

/** The number of approvals that the server returns at once. */
const PAGE_SIZE = 100

const EMPTY: readonly PendingApproval[] = []

/** Lists the pending approvals of all chats. Refreshes when the server reports a change, when the page becomes visible, and every `pollMs`. */
export function useInbox(
  api: InboxApi,
  { pollMs = 60_000, whileHidden = false, attached }: UseInboxOptions = {},
): Inbox {
  const [approvals, setApprovals] = useState(EMPTY)
  const [problem, setProblem] = useState<ServerError>()
  const [refusals, setRefusals] = useState<Refusals>(new Map())
  const { pending: deciding, add, remove } = usePendingIds()
  const newest = useRef<Promise<void>>(undefined)
  const [hasMore, setHasMore] = useState(false)
  const [loadingMore, setLoadingMore] = useState(false)
  /** How many approvals to load. */
  const wanted = useRef(PAGE_SIZE)
  const load = useCallback((): Promise<void> => {
    const show = (list: Listed | Failure): void => {
      setProblem('failure' in list ? list.failure : undefined)
      if ('failure' in list) return
      setApprovals((known) => (isSame(known, list.approvals) ? known : list.approvals))
      setHasMore(list.hasMore)
    }
    const response = readPages(api, wanted.current).catch(toFailure)
    // A response that arrives after a newer one is out of date.
    const own: Promise<void> = response.then((list) =>
      own === newest.current ? show(list) : newest.current,
    )
    newest.current = own
    return own
  }, [api])
  const refresh = useCallback(() => void load(), [load])
  const loadMore = useCallback(() => {
    wanted.current += PAGE_SIZE
    setLoadingMore(true)
    void load().finally(() => setLoadingMore(false))
  }, [load])
  useAutoRefresh(refresh, { api, pollMs, whileHidden, attached, newest })
  const change = useCallback(
    async (approvalId: string, ask: () => Promise<unknown>): Promise<void> => {
      if (!add(approvalId)) return
      setRefusals((known) => new Map([...known].filter(([id]) => id !== approvalId)))
      try {
        await ask()
      } catch (error) {
        const refusal = toServerError(error)
        if (error !== DECISION_CANCELLED)
          setRefusals((known) => new Map([...known, [approvalId, refusal]]))
        // The list asks again.
        if (refusal.code === 'preview-changed') api.dismissRefused?.(approvalId)
      }
      // Until the list is loaded again, it shows the decided approval as pending.
      await load()
      remove(approvalId)
    },
    [api, load, add, remove],
  )
  const listed = useLatest(approvals)
  const decide = useCallback(
    (approvalId: string, decision: Decision) => {
      const approval = listed.current.find(({ id }) => id === approvalId)
      const keep = api.cancelDecision !== undefined && mayWait(decision, approval)
      return change(approvalId, () => api.decide(approvalId, decision, { keep }))
    },
    [api, change, listed],
  )
  const waitingDecisions = useWaitingDecisions(api)
  const cancelDecision = useCallback(
    (approvalId: string) => api.cancelDecision?.(approvalId) ?? false,
    [api],
  )
  const withdraw = useCallback(
    (approvalId: string) => change(approvalId, async () => api.withdrawVote?.(approvalId)),
    [api, change],
  )
  return {
    approvals,
    hasMore,
    loadMore,
    loadingMore,
    problem,
    refusals,
    deciding,
    waitingDecisions,
    cancelDecision,
    decide,
    withdraw,
    refresh,
  }
}

interface Listed {
  readonly approvals: readonly PendingApproval[]
  readonly hasMore: boolean
}

/** Reads pages until `wanted` approvals are loaded or there are no more. */
async function readPages(api: InboxApi, wanted: number): Promise<Listed> {
  if (!api.listApprovalsPage) return { approvals: await api.listApprovals(), hasMore: false }
  const approvals: PendingApproval[] = []
  let after: string | undefined
  do {
    const page = await api.listApprovalsPage(after === undefined ? {} : { after })
    approvals.push(...page.approvals)
    after = page.next
  } while (after !== undefined && approvals.length < wanted)
  return { approvals, hasMore: after !== undefined }
}

function isSame(known: readonly PendingApproval[], list: readonly PendingApproval[]): boolean {
  return JSON.stringify(known) === JSON.stringify(list)
}

interface Failure {
  readonly failure: ServerError
}

function toFailure(error: unknown): Failure {
  return { failure: toServerError(error) }
}
