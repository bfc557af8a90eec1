import { sleep } from '../shared/backoff.ts'

const listeners = new Set<() => void>()

/**
 * Calls the listener when a lost connection is worth another attempt: the network is back, the person returns to the page, or
 * `retryConnections` is called. Returns a function that unsubscribes.
 */
export function onNetworkBack(listener: () => void): () => void {
  const { window, document } = globalThis as { window?: Window; document?: Document }
  const onVisible = (): void => {
    if (document?.visibilityState === 'visible') listener()
  }
  const own = (): void => listener()
  listeners.add(own)
  window?.addEventListener('online', listener)
  window?.addEventListener('focus', listener)
  document?.addEventListener('visibilitychange', onVisible)
  return () => {
    listeners.delete(own)
    window?.removeEventListener('online', listener)
    window?.removeEventListener('focus', listener)
    document?.removeEventListener('visibilitychange', onVisible)
  }
}

/** Opens lost connections again without waiting for their next attempt. */
export function retryConnections(): void {
  // A copy: an attempt that fails at once subscribes again.
  for (const listener of Array.from(listeners)) listener()
}

/** Resolves after `ms`, as soon as the signal is aborted, or when another attempt is worthwhile. */
export async function waitForNextAttempt(ms: number, signal: AbortSignal): Promise<void> {
  const back = new AbortController()
  const unsubscribe = onNetworkBack(() => back.abort())
  await sleep(ms, AbortSignal.any([signal, back.signal]))
  unsubscribe()
}

/** Whether the browser says that it is offline. Node has no `navigator`, or one without `onLine`. */
export function isBrowserOffline(): boolean {
  const { navigator } = globalThis as { navigator?: { readonly onLine?: boolean } }
  return navigator?.onLine === false
}
