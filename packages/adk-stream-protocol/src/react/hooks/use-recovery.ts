import type { UseChatHelpers } from '@ai-sdk/react'
import type { UITools } from 'ai'
import { useCallback, useEffect, useMemo, useRef } from 'react'

import type { AdkUIMessage } from '../../client/adk-ui-message.ts'
import { isBusy } from '../../client/sync/attachable-chat.ts'
import {
  type ConnectionState,
  onNetworkBack,
  retryConnections,
} from '../../client/connection/connection-state.ts'
import { readProblem } from '../reading/problem.ts'
import { recoverChat } from './chat-actions.ts'
import type { Refusals } from './use-attached-chat.ts'
import type { ChatTarget } from './use-decisions.ts'

/** Returns why there is no reply, and what to do about it. With an `api`, the chat also recovers when the connection is back. */
export function useRecovery<Tools extends UITools>(
  { chat, attached, api, connection }: ChatTarget<Tools>,
  {
    error,
    status,
    messages,
  }: Pick<UseChatHelpers<AdkUIMessage<Tools>>, 'error' | 'status' | 'messages'>,
  refusals: Refusals,
) {
  // `retryAt` counts from the moment of the error. The messages do not change after it.
  // oxlint-disable-next-line react-hooks/exhaustive-deps
  const problem = useMemo(() => error && readProblem(error, messages, Date.now()), [error])
  const isRefusal = error !== undefined && [...refusals.values()].includes(error as never)
  useEffect(() => {
    // The card says why. Nothing else has failed, so that a message that was queued meanwhile is sent.
    if (isRefusal) chat.clearError()
  }, [chat, isRefusal, error])
  const recover = useCallback(() => recoverChat(chat, api, attached), [chat, api, attached])
  const isDisconnected = problem?.kind === 'disconnected' && !isBusy({ status })
  useRecoverOnReconnect({ recover: api && recover, isDisconnected, connection })
  return {
    problem: isBusy({ status }) || isRefusal ? undefined : problem,
    recover,
    reconnect: retryConnections,
  }
}

interface ReconnectParts {
  /** Undefined without an `api`: only the server knows what it has received. */
  readonly recover: (() => Promise<void>) | undefined
  readonly isDisconnected: boolean
  readonly connection: ConnectionState
}

/** Recovers once whenever the connection is back. */
function useRecoverOnReconnect({ recover, isDisconnected, connection }: ReconnectParts): void {
  const recoveredOver = useRef<ConnectionState>(undefined)
  // If the server cannot be reached, the problem stays, and the next connection recovers from it.
  const recoverNow = useCallback(() => void recover?.().catch(() => undefined), [recover])
  useEffect(() => {
    if (!isDisconnected || connection.state !== 'open') return
    if (recoveredOver.current === connection) return
    recoveredOver.current = connection
    recoverNow()
  }, [isDisconnected, connection, recoverNow])
  useEffect(
    () => (isDisconnected ? onNetworkBack(recoverNow) : undefined),
    [isDisconnected, recoverNow],
  )
}
