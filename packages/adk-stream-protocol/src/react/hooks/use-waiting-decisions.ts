import { useCallback, useSyncExternalStore } from 'react'

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
