import { useEffect } from 'react'

import type { AdkApi } from '../../client/api/adk-api.ts'
import type { AttachedChat } from '../../client/sync/attached-chat.ts'

/** How long events are collected before the list is loaded again, in ms. */
const MERGE_MS = 50

/** When a list is read again. */
export interface RefreshOptions {
  readonly pollMs: number
  readonly whileHidden: boolean
  /** Without `watch`, the list is only polled. */
  readonly api: Partial<Pick<AdkApi, 'watch'>>
  readonly attached: AttachedChat | undefined
  /** The newest request. Cleared when the component is removed, so that its response is ignored. */
  readonly newest: { current: Promise<void> | undefined }
}

/** Reads a list of approvals when the server reports a change, when the page becomes visible, and every `pollMs`. */
export function useAutoRefresh(
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
