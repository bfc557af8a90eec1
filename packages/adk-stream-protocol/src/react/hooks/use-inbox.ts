import { useCallback, useEffect, useRef, useState } from 'react'

import type { AdkApi } from '../../client/api/adk-api.ts'
import type { AttachedChat } from '../../client/sync/attached-chat.ts'
import type { PendingApproval } from '../../protocol/server-views.ts'
import type { Decision } from '../reading/approval.ts'
import { type ToldError, toTold } from '../reading/problem.ts'
import type { Refusals } from './use-attached-chat.ts'
import { useUnderWay } from './use-under-way.ts'

/** When the inbox is looked up, besides when the server says that it changed. */
export interface UseInboxOptions {
  /** How often it is looked up while the page is seen, should the feed be lost, in ms. Default 60,000. */
  readonly pollMs?: number
  /** A chat whose calls move on is a reason to look. */
  readonly attached?: AttachedChat | undefined
}

/** What waits for a decision, and how it is decided. */
export interface Inbox {
  /** What waits for this person in all chats, and in those of others, the oldest first: as much as was asked for. */
  readonly approvals: readonly PendingApproval[]
  /** Whether more waits than is listed. */
  readonly hasMore: boolean
  /** Lists a hundred more. */
  readonly loadMore: () => void
  /** Whether more is being loaded. */
  readonly loadingMore: boolean
  /** Why the list could not be read last; it may be out of date. */
  readonly problem: ToldError | undefined
  readonly refusals: Refusals
  /** Approvals whose decision is on its way; another one for them is not taken meanwhile. */
  readonly deciding: ReadonlySet<string>
  readonly decide: (approvalId: string, decision: Decision) => Promise<void>
  /** Takes the reader's vote back, while others have still to decide. */
  readonly withdraw: (approvalId: string) => Promise<void>
  readonly refresh: () => void
}

/**
 * What the inbox needs of an api. Without `watch` it is looked up at intervals alone, without `listApprovalsPage` all of it at
 * once, and without `withdrawVote` votes are final.
 */
export type InboxApi = Pick<AdkApi, 'listApprovals' | 'decide'> &
  Partial<Pick<AdkApi, 'watch' | 'listApprovalsPage' | 'withdrawVote'>>

/** How many approvals one page holds: the server gives no more at once. */
const PAGE = 100

/** For how long events are collected before the list is read again, in ms. */
const MERGE_MS = 50

const NOTHING: readonly PendingApproval[] = []

/** What waits for a decision: looked up when the server says that it changed, when the page is seen again, and now and then. */
export function useInbox(
  api: InboxApi,
  { pollMs = 60_000, attached }: UseInboxOptions = {},
): Inbox {
  const [approvals, setApprovals] = useState(NOTHING)
  const [problem, setProblem] = useState<ToldError>()
  const [refusals, setRefusals] = useState<Refusals>(new Map())
  const { deciding, begin, end } = useUnderWay()
  const newest = useRef<Promise<void>>(undefined)
  const [hasMore, setHasMore] = useState(false)
  const [loadingMore, setLoadingMore] = useState(false)
  /** How many are to be listed. */
  const wanted = useRef(PAGE)
  const look = useCallback((): Promise<void> => {
    const show = (list: Listed | Failure): void => {
      setProblem('failure' in list ? list.failure : undefined)
      if ('failure' in list) return
      setApprovals((known) => (isSame(known, list.approvals) ? known : list.approvals))
      setHasMore(list.hasMore)
    }
    const asked = readPages(api, wanted.current).catch(toFailure)
    // An answer that was overtaken by a later one is out of date.
    const own: Promise<void> = asked.then((list) =>
      own === newest.current ? show(list) : newest.current,
    )
    newest.current = own
    return own
  }, [api])
  const refresh = useCallback(() => void look(), [look])
  const loadMore = useCallback(() => {
    wanted.current += PAGE
    setLoadingMore(true)
    void look().finally(() => setLoadingMore(false))
  }, [look])
  useRefreshing(refresh, { api, pollMs, attached, newest })
  const change = useCallback(
    async (approvalId: string, ask: () => Promise<unknown>): Promise<void> => {
      if (!begin(approvalId)) return
      setRefusals((known) => new Map([...known].filter(([id]) => id !== approvalId)))
      try {
        await ask()
      } catch (error) {
        setRefusals((known) => new Map([...known, [approvalId, toTold(error)]]))
      }
      // Until then the list shows as open what was decided.
      await look()
      end(approvalId)
    },
    [look, begin, end],
  )
  const decide = useCallback(
    (approvalId: string, decision: Decision) =>
      change(approvalId, () => api.decide(approvalId, decision)),
    [api, change],
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
    decide,
    withdraw,
    refresh,
  }
}

interface Listed {
  readonly approvals: readonly PendingApproval[]
  readonly hasMore: boolean
}

/** Reads pages until so many approvals are known as are to be listed. */
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

interface Refreshing extends Required<Pick<UseInboxOptions, 'pollMs'>> {
  readonly api: InboxApi
  readonly attached: AttachedChat | undefined
  readonly newest: { current: Promise<void> | undefined }
}

function useRefreshing(refresh: () => void, { api, pollMs, attached, newest }: Refreshing): void {
  useEffect(() => {
    let soon: ReturnType<typeof setTimeout> | undefined
    // A decision brings several events within milliseconds: one request answers them all.
    const refreshSoon = (): void => {
      soon ??= setTimeout(() => {
        soon = undefined
        refresh()
      }, MERGE_MS)
    }
    const watch = (): (() => void) | undefined =>
      api.watch?.((event) => {
        if (event.type === 'approval' || (event.type === 'open' && event.again)) refreshSoon()
      })
    let unwatch: (() => void) | undefined
    let timer: ReturnType<typeof setInterval> | undefined
    const rest = (): void => {
      unwatch?.()
      clearInterval(timer)
      clearTimeout(soon)
      soon = undefined
    }
    const isSeen = (): boolean => document.visibilityState === 'visible'
    // A browser has few connections to a server: a page that nobody sees holds none.
    const begin = (): void => {
      rest()
      if (!isSeen()) return
      refresh()
      unwatch = watch()
      timer = setInterval(() => isSeen() && refresh(), pollMs)
    }
    begin()
    document.addEventListener('visibilitychange', begin)
    return () => {
      rest()
      document.removeEventListener('visibilitychange', begin)
      // What is under way was asked for somebody who has left.
      newest.current = undefined
    }
  }, [api, refresh, pollMs, newest])
  useEffect(() => attached?.onProgress(refresh), [attached, refresh])
}

function isSame(known: readonly PendingApproval[], list: readonly PendingApproval[]): boolean {
  return JSON.stringify(known) === JSON.stringify(list)
}

interface Failure {
  readonly failure: ToldError
}

function toFailure(error: unknown): Failure {
  return { failure: toTold(error) }
}
