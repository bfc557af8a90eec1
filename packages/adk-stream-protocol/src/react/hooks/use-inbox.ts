import { useCallback, useEffect, useRef, useState } from 'react'

import type { AdkApi } from '../../client/adk-api.ts'
import type { AttachedChat } from '../../client/attach-chat.ts'
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
  /** What waits for this person in all chats, and in those of others. */
  readonly approvals: readonly PendingApproval[]
  /** Why the list could not be read last; it may be out of date. */
  readonly problem: ToldError | undefined
  readonly refusals: Refusals
  /** Approvals whose decision is on its way; another one for them is not taken meanwhile. */
  readonly deciding: ReadonlySet<string>
  readonly decide: (approvalId: string, decision: Decision) => Promise<void>
  readonly refresh: () => void
}

/** What the inbox needs of an api. Without `watch` it is looked up at intervals alone. */
export type InboxApi = Pick<AdkApi, 'listApprovals' | 'decide'> & Partial<Pick<AdkApi, 'watch'>>

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
  const look = useCallback((): Promise<void> => {
    const show = (list: PendingApproval[] | Failure): void => {
      setProblem('failure' in list ? list.failure : undefined)
      if (!('failure' in list)) setApprovals((known) => (isSame(known, list) ? known : list))
    }
    const asked = api.listApprovals().catch(toFailure)
    // An answer that was overtaken by a later one is out of date.
    const own: Promise<void> = asked.then((list) =>
      own === newest.current ? show(list) : newest.current,
    )
    newest.current = own
    return own
  }, [api])
  const refresh = useCallback(() => void look(), [look])
  useRefreshing(refresh, { api, pollMs, attached, newest })
  const decide = useCallback(
    async (approvalId: string, decision: Decision): Promise<void> => {
      if (!begin(approvalId)) return
      setRefusals((known) => new Map([...known].filter(([id]) => id !== approvalId)))
      try {
        await api.decide(approvalId, decision)
      } catch (error) {
        setRefusals((known) => new Map([...known, [approvalId, toTold(error)]]))
      }
      // Until then the list shows as open what was decided.
      await look()
      end(approvalId)
    },
    [api, look, begin, end],
  )
  return { approvals, problem, refusals, deciding, decide, refresh }
}

interface Refreshing extends Required<Pick<UseInboxOptions, 'pollMs'>> {
  readonly api: InboxApi
  readonly attached: AttachedChat | undefined
  readonly newest: { current: Promise<void> | undefined }
}

function useRefreshing(refresh: () => void, { api, pollMs, attached, newest }: Refreshing): void {
  useEffect(() => {
    const watch = (): (() => void) | undefined =>
      api.watch?.((event) => {
        if (event.type === 'approval' || (event.type === 'open' && event.again)) refresh()
      })
    let unwatch: (() => void) | undefined
    let timer: ReturnType<typeof setInterval> | undefined
    const rest = (): void => {
      unwatch?.()
      clearInterval(timer)
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
