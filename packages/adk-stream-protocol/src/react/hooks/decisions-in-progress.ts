import { useCallback, useSyncExternalStore, useRef, useState } from 'react'

import type { AdkApi } from '../../client/api/adk-api.ts'
import {
  NONE_REFUSED,
  NONE_WAITING,
  type RefusedDecision,
  type WaitingDecisions,
} from '../../client/api/decision-outbox.ts'

/** The part of `AdkApi` that keeps decisions. */
export type OutboxApi = Pick<
  AdkApi,
  | 'waitingDecisions'
  | 'onWaitingDecisions'
  | 'cancelDecision'
  | 'refusedDecisions'
  | 'dismissRefused'
>

/** Returns the decisions that wait for the connection, by approval id, whichever part of the page sent them. */
export function useWaitingDecisions(api: Partial<OutboxApi> | undefined): WaitingDecisions {
  return useOutbox(api, () => api?.waitingDecisions ?? NONE_WAITING)
}

/** Returns the decisions that the server refused after they had waited. */
export function useRefusedDecisions(
  api: Partial<OutboxApi> | undefined,
): readonly RefusedDecision[] {
  return useOutbox(api, () => api?.refusedDecisions ?? NONE_REFUSED)
}

function useOutbox<Snapshot>(api: Partial<OutboxApi> | undefined, read: () => Snapshot): Snapshot {
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
