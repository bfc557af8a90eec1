import { useCallback, useEffect, useMemo, useRef, useState } from 'react'

import type { AdkApi, ApprovalPaging, ApprovalQuery } from '../../client/api/adk-api.ts'
import type { WaitingDecisions } from '../../client/api/decision-outbox.ts'
import type { AttachedChat } from '../../client/sync/attached-chat.ts'
import { DECISION_CANCELLED } from '../../client/connection/transport.ts'
import type { ApprovalPage, PendingApproval } from '../../protocol/server-views.ts'
import { type Decision, isUndecided, mayWait } from '../reading/approval.ts'
import { type ServerError, toServerError } from '../reading/problem.ts'
import {
  usePendingIds,
  type WaitingDecisionsApi,
  useWaitingDecisions,
} from './use-pending-approvals.ts'
import type { Refusals } from './use-attached-chat.ts'
import { useLatest } from '../use-stable.ts'

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
  /** Those of `approvals` that wait for this person: the server has no vote of theirs. Count these, as `useAttention` does. */
  readonly undecided: readonly PendingApproval[]
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
  /** Sends decisions about several approvals in one request. Undefined if the API cannot. If the server refuses some, `refusals` says why. */
  readonly decideTogether:
    | ((approvals: readonly PendingApproval[], approved: boolean) => Promise<void>)
    | undefined
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
  Partial<
    Pick<AdkApi, 'watch' | 'listApprovalsPage' | 'withdrawVote' | 'decideTogether'> &
      WaitingDecisionsApi
  >

/** The number of approvals that the server returns at once. */
const INBOX_PAGE = 100

/** Lists the pending approvals of all chats. Refreshes when the server reports a change, when the page becomes visible, and every `pollMs`. */
export function useInbox(
  api: InboxApi,
  { pollMs = 60_000, whileHidden = false, attached }: UseInboxOptions = {},
): Inbox {
  const readPage = useCallback(
    async (paging: ApprovalPaging): Promise<ApprovalPage> =>
      api.listApprovalsPage?.(paging) ?? { approvals: await api.listApprovals() },
    [api],
  )
  const list = { key: 'inbox', readPage, pageSize: INBOX_PAGE }
  const { shown, load } = useApprovalPages(list, { api, pollMs, whileHidden, attached })
  const [refusals, setRefusals] = useState<Refusals>(new Map())
  const { pending: deciding, add, remove } = usePendingIds()
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
  const listed = useLatest(shown.approvals)
  const decide = useCallback(
    (approvalId: string, decision: Decision) => {
      const approval = listed.current.find(({ id }) => id === approvalId)
      const keep = api.cancelDecision !== undefined && mayWait(decision, approval)
      return change(approvalId, () => api.decide(approvalId, decision, { keep }))
    },
    [api, change, listed],
  )
  const decideTogether = useCallback(
    async (chosen: readonly PendingApproval[], approved: boolean): Promise<void> => {
      const sent = chosen.filter(({ id }) => add(id))
      const given = sent.map(({ id, preview }) => ({
        approvalId: id,
        approved,
        preview: preview?.digest,
      }))
      const ids = new Set(sent.map(({ id }) => id))
      const refused = await api.decideTogether?.(given).catch((error: unknown): Refusals => {
        const refusal = toServerError(error)
        return new Map(sent.map(({ id }) => [id, refusal]))
      })
      setRefusals(
        (known) => new Map([...[...known].filter(([id]) => !ids.has(id)), ...(refused ?? [])]),
      )
      await load()
      for (const id of ids) remove(id)
    },
    [api, load, add, remove],
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
  const { approvals } = shown
  const undecided = useMemo(() => approvals.filter(isUndecided), [approvals])
  return {
    ...shown,
    undecided,
    refusals,
    deciding,
    waitingDecisions,
    cancelDecision,
    decide,
    decideTogether: api.decideTogether && decideTogether,
    withdraw,
  }
}

/**
 * Which approvals to list, and when the list is refreshed in addition to the server's feed.
 *
 * @inline
 */
export interface UseApprovalHistoryOptions extends Pick<ApprovalQuery, 'toolName' | 'requester'> {
  /** The states, separated by commas: `decided` (default), `all`, or names such as `denied,expired`. */
  readonly state?: string
  /** How many approvals a page has, 1 to 100. Default 20. */
  readonly pageSize?: number
  /** The interval between refreshes while the page is visible, in ms. Default 60,000. */
  readonly pollMs?: number
}

/** Approvals of all chats that this person may see, newest first. */
export interface ApprovalHistory {
  readonly approvals: readonly PendingApproval[]
  readonly hasMore: boolean
  readonly loadMore: () => void
  /** Whether more approvals are being loaded. */
  readonly loadingMore: boolean
  /** Whether the first page of this query has not arrived yet. */
  readonly loading: boolean
  /** Why the last refresh failed. `approvals` may be out of date. */
  readonly problem: ServerError | undefined
  readonly refresh: () => void
}

export type HistoryApi = Pick<AdkApi, 'listApprovalHistory'> & Partial<Pick<AdkApi, 'watch'>>

/** Lists the approvals that this person may see, pending and decided. Refreshes like `useInbox`. */
export function useApprovalHistory(
  api: HistoryApi,
  options: UseApprovalHistoryOptions = {},
): ApprovalHistory {
  const { state = 'decided', toolName, requester, pageSize = 20, pollMs = 60_000 } = options
  const readPage = useCallback(
    (paging: ApprovalPaging) =>
      api.listApprovalHistory({
        state: state === 'all' || state === 'decided' ? state : state.split(','),
        limit: pageSize,
        ...(toolName !== undefined && { toolName }),
        ...(requester !== undefined && { requester }),
        ...paging,
      }),
    [api, state, toolName, requester, pageSize],
  )
  const list = { key: JSON.stringify([state, toolName, requester, pageSize]), readPage, pageSize }
  const when = { api, pollMs, whileHidden: false, attached: undefined }
  const { shown, loading } = useApprovalPages(list, when)
  return { ...shown, loading }
}

interface List {
  /** Identifies the query. The approvals of one are not shown under another. */
  readonly key: string
  readonly readPage: (paging: ApprovalPaging) => Promise<ApprovalPage>
  readonly pageSize: number
}

interface Loaded {
  readonly key: string
  readonly approvals: readonly PendingApproval[]
  readonly hasMore: boolean
}

const NONE: readonly PendingApproval[] = []

/** Loads the first pages of a list of approvals, and keeps them up to date. */
function useApprovalPages(
  { key, readPage, pageSize }: List,
  refreshing: Omit<RefreshOptions, 'newest'>,
) {
  const [loaded, setLoaded] = useState<Loaded>()
  const [problem, setProblem] = useState<ServerError>()
  const [loadingMore, setLoadingMore] = useState(false)
  const newest = useRef<Promise<void>>(undefined)
  /** How many approvals to load, and of which list. */
  const wanted = useRef({ key, count: pageSize })
  const load = useCallback((): Promise<void> => {
    if (wanted.current.key !== key) wanted.current = { key, count: pageSize }
    const show = async (): Promise<void> => {
      const result = await readPages(readPage, wanted.current.count).catch(toServerError)
      // A response that arrives after a newer request was sent is out of date.
      if (own !== newest.current) return newest.current
      setProblem('code' in result ? result : undefined)
      if ('code' in result) return
      const next = { key, ...result }
      // An unchanged list renders nothing again.
      setLoaded((known) => (JSON.stringify(known) === JSON.stringify(next) ? known : next))
    }
    const own: Promise<void> = show()
    newest.current = own
    return own
  }, [key, readPage, pageSize])
  const refresh = useCallback(() => void load(), [load])
  const loadMore = useCallback(() => {
    wanted.current = { key, count: wanted.current.count + pageSize }
    setLoadingMore(true)
    void load().finally(() => setLoadingMore(false))
  }, [load, key, pageSize])
  useAutoRefresh(refresh, { ...refreshing, newest })
  const current = loaded?.key === key ? loaded : undefined
  const shown = {
    approvals: current?.approvals ?? NONE,
    hasMore: current?.hasMore ?? false,
    loadMore,
    loadingMore,
    problem,
    refresh,
  }
  return { shown, loading: !current && problem === undefined, load }
}

/** Reads pages until `count` approvals are loaded or there are no more. */
async function readPages(readPage: List['readPage'], count: number): Promise<Omit<Loaded, 'key'>> {
  const approvals: PendingApproval[] = []
  let after: string | undefined
  do {
    const page = await readPage(after === undefined ? {} : { after })
    approvals.push(...page.approvals)
    after = page.next
  } while (after !== undefined && approvals.length < count)
  return { approvals, hasMore: after !== undefined }
}

/** How long events are collected before the list is loaded again, in ms. */
const MERGE_MS = 50

/** When a list is read again. */
interface RefreshOptions {
  readonly pollMs: number
  readonly whileHidden: boolean
  /** Without `watch`, the list is only polled. */
  readonly api: Partial<Pick<AdkApi, 'watch'>>
  readonly attached: AttachedChat | undefined
  /** The newest request. Cleared when the component is removed, so that its response is ignored. */
  readonly newest: { current: Promise<void> | undefined }
}

/** Reads a list of approvals when the server reports a change, when the page becomes visible, and every `pollMs`. */
function useAutoRefresh(
  refresh: () => void,
  { api, pollMs, whileHidden, attached, newest }: RefreshOptions,
): void {
  useEffect(() => {
    let pendingRefresh: ReturnType<typeof setTimeout> | undefined
    // A decision causes several events within milliseconds. One request covers them.
    const refreshSoon = (): void => {
      pendingRefresh ??= setTimeout(() => {
        pendingRefresh = undefined
        refresh()
      }, MERGE_MS)
    }
    const watch = (): (() => void) | undefined =>
      api.watch?.((event) => {
        if (event.type === 'approval' || (event.type === 'open' && event.again)) refreshSoon()
      })
    let unwatch: (() => void) | undefined
    let timer: ReturnType<typeof setInterval> | undefined
    const stop = (): void => {
      unwatch?.()
      clearInterval(timer)
      clearTimeout(pendingRefresh)
      pendingRefresh = undefined
    }
    const isWanted = (): boolean => whileHidden || document.visibilityState === 'visible'
    // A browser opens few connections per server, so a hidden page holds none for long.
    const start = (): void => {
      stop()
      if (!isWanted()) return
      refresh()
      unwatch = watch()
      timer = setInterval(() => isWanted() && refresh(), pollMs)
    }
    start()
    document.addEventListener('visibilitychange', start)
    return () => {
      stop()
      document.removeEventListener('visibilitychange', start)
      // Ignores the response of a request in progress.
      newest.current = undefined
    }
  }, [api, refresh, pollMs, whileHidden, newest])
  useEffect(() => attached?.onProgress(refresh), [attached, refresh])
}
