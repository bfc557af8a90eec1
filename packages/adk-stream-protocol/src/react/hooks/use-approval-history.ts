import { useCallback, useRef, useState } from 'react'

import type { AdkApi, ApprovalQuery } from '../../client/api/adk-api.ts'
import type { PendingApproval } from '../../protocol/server-views.ts'
import { type ServerError, toServerError } from '../reading/problem.ts'
import { useAutoRefresh } from './use-auto-refresh.ts'

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

interface Loaded {
  /** The query of these approvals, as JSON. */
  readonly key: string
  readonly approvals: readonly PendingApproval[]
  readonly hasMore: boolean
}

/** Lists the approvals that this person may see, pending and decided. Refreshes like `useInbox`. */
export function useApprovalHistory(
  api: HistoryApi,
  options: UseApprovalHistoryOptions = {},
): ApprovalHistory {
  const { state = 'decided', toolName, requester, pageSize = 20, pollMs = 60_000 } = options
  const key = JSON.stringify([state, toolName, requester, pageSize])
  const [loaded, setLoaded] = useState<Loaded>()
  const [problem, setProblem] = useState<ServerError>()
  const [loadingMore, setLoadingMore] = useState(false)
  const newest = useRef<Promise<void>>(undefined)
  /** How many approvals to load, and of which query. */
  const wanted = useRef({ key, count: pageSize })
  const load = useCallback((): Promise<void> => {
    if (wanted.current.key !== key) wanted.current = { key, count: pageSize }
    const query = {
      state: state === 'all' || state === 'decided' ? state : state.split(','),
      limit: pageSize,
      ...(toolName !== undefined && { toolName }),
      ...(requester !== undefined && { requester }),
    } as const
    const show = async (): Promise<void> => {
      const page = await readPages(api, query, wanted.current.count).catch(toFailure)
      // A response that arrives after a newer request was sent is out of date.
      if (own !== newest.current) return
      setProblem('failure' in page ? page.failure : undefined)
      if (!('failure' in page)) setLoaded({ key, ...page })
    }
    const own: Promise<void> = show()
    newest.current = own
    return own
  }, [api, key, state, toolName, requester, pageSize])
  const refresh = useCallback(() => void load(), [load])
  const loadMore = useCallback(() => {
    wanted.current = { key, count: wanted.current.count + pageSize }
    setLoadingMore(true)
    void load().finally(() => setLoadingMore(false))
  }, [load, key, pageSize])
  useAutoRefresh(refresh, { api, pollMs, whileHidden: false, attached: undefined, newest })
  // The approvals of another query are not shown under the new filter.
  const current = loaded?.key === key ? loaded : undefined
  return {
    approvals: current?.approvals ?? NONE,
    hasMore: current?.hasMore ?? false,
    loadMore,
    loadingMore,
    loading: !current && problem === undefined,
    problem,
    refresh,
  }
}

const NONE: readonly PendingApproval[] = []

/** Reads pages until `count` approvals are loaded or there are no more. */
async function readPages(
  api: HistoryApi,
  query: ApprovalQuery,
  count: number,
): Promise<Omit<Loaded, 'key'>> {
  const approvals: PendingApproval[] = []
  let after: string | undefined
  do {
    const page = await api.listApprovalHistory({ ...query, ...(after !== undefined && { after }) })
    approvals.push(...page.approvals)
    after = page.next
  } while (after !== undefined && approvals.length < count)
  return { approvals, hasMore: after !== undefined }
}

function toFailure(error: unknown): { readonly failure: ServerError } {
  return { failure: toServerError(error) }
}
