import { useCallback, useSyncExternalStore } from 'react'

import type { AdkApi } from '../../client/api/adk-api.ts'
import { NONE_WAITING, type WaitingDecisions } from '../../client/api/decision-outbox.ts'

/** The part of `AdkApi` that keeps decisions. */
export type OutboxApi = Pick<AdkApi, 'waitingDecisions' | 'onWaitingDecisions' | 'cancelDecision'>

/** Returns the decisions that wait for the connection, by approval id, whichever part of the page sent them. */
export function useWaitingDecisions(api: Partial<OutboxApi> | undefined): WaitingDecisions {
  const subscribe = useCallback(
    (listener: () => void) => api?.onWaitingDecisions?.(listener) ?? (() => undefined),
    [api],
  )
  const read = () => api?.waitingDecisions ?? NONE_WAITING
  return useSyncExternalStore(subscribe, read, () => NONE_WAITING)
}
