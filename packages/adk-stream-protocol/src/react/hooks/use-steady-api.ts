import { useMemo } from 'react'

import type { AdkApi } from '../../client/api/adk-api.ts'
import { useLatest } from './use-latest.ts'

/** What a chat asks of an api. */
export type ChatApi = Pick<AdkApi, 'loadChat' | 'watchChat' | 'decide' | 'readApproval'>

/** An api that stays the same, though the page may make another at every rendering: a chat is not attached anew for that. */
export function useSteadyApi(api: ChatApi | undefined): ChatApi | undefined {
  const latest = useLatest(api)
  const isThere = api !== undefined
  return useMemo((): ChatApi | undefined => {
    if (!api) return undefined
    const now = (): ChatApi => latest.current ?? api
    return {
      loadChat: (...given) => now().loadChat(...given),
      watchChat: (...given) => now().watchChat(...given),
      decide: (...given) => now().decide(...given),
      readApproval: (...given) => now().readApproval(...given),
    }
    // The newest one is asked for when it is needed.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [isThere, latest])
}
