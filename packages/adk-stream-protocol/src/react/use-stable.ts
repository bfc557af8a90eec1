import type { RefObject } from 'react'
import { useCallback, useMemo, useLayoutEffect, useRef } from 'react'

import type { AdkApi } from '../client/api/adk-api.ts'

/** The part of `AdkApi` that a chat uses. */
export type ChatApi = Pick<
  AdkApi,
  'loadChat' | 'watchChat' | 'decide' | 'decideTogether' | 'readApproval'
>

/** Returns a stable `api`, even if the page creates one at every render. A new object would attach the chat again. */
export function useStableApi(api: ChatApi | undefined): ChatApi | undefined {
  const latest = useLatest(api)
  const hasApi = api !== undefined
  return useMemo((): ChatApi | undefined => {
    if (!api) return undefined
    const current = (): ChatApi => latest.current ?? api
    return {
      loadChat: (...args) => current().loadChat(...args),
      watchChat: (...args) => current().watchChat(...args),
      decide: (...args) => current().decide(...args),
      decideTogether: (...args) => current().decideTogether(...args),
      readApproval: (...args) => current().readApproval(...args),
    }
    // `latest` has the current one.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [hasApi, latest])
}

/** Returns the same object until one of its values changes. The object must always have the same keys. */
export function useSameObject<Fields extends object>(fields: Fields): Fields {
  // oxlint-disable-next-line react-hooks/exhaustive-deps
  return useMemo(() => fields, Object.values(fields))
}

/** Returns a ref with the value of the latest render, for callbacks that run later. */
export function useLatest<Value>(value: Value): RefObject<Value> {
  const ref = useRef(value)
  useLayoutEffect(() => {
    ref.current = value
  })
  return ref
}

/** Returns a stable function that calls the one of the latest render, if there is one. */
export function useStableCallback<Args extends unknown[]>(
  callback: ((...args: Args) => void) | undefined,
): (...args: Args) => void {
  const latest = useLatest(callback)
  return useCallback((...args: Args) => latest.current?.(...args), [latest])
}
