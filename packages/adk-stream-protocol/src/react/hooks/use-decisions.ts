import type { Chat } from '@ai-sdk/react'
import type { UITools } from 'ai'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'

import type { AdkUIMessage } from '../../client/adk-ui-message.ts'
import type { AdkApi } from '../../client/api/adk-api.ts'
import { type ConnectionState, isBrowserOffline } from '../../client/connection/connection-state.ts'
import { DECISION_CANCELLED } from '../../client/connection/transport.ts'
import type { Approval, Decision } from '../reading/approval.ts'
import { toServerError } from '../reading/problem.ts'
import { sendDecision } from './chat-actions.ts'
import type { Refusals } from './use-attached-chat.ts'
import type { TypedAttachedChat } from './use-browser-tools.ts'
import { usePendingIds, useRefusedDecisions, useWaitingDecisions } from './use-pending-approvals.ts'
import { type ChatApi, useLatest } from '../use-stable.ts'

/** A chat with what sends its decisions and recovers it. */
export interface ChatTarget<Tools extends UITools> {
  readonly chat: Chat<AdkUIMessage<Tools>>
  readonly attached: TypedAttachedChat<Tools> | undefined
  /** A stable object. */
  readonly api: ChatApi | undefined
  readonly connection: ConnectionState
}

/** An approval with the preview that the person sees. */
type ApprovalSeen = Pick<Approval, 'approvalId' | 'preview'>

interface DecisionOptions {
  /** Keeps decisions that wait for the connection. */
  readonly outbox: AdkApi | undefined
  /** This function and those below are stable. */
  readonly refuse: (approvalIds: readonly string[], reason: unknown) => void
  readonly clearRefusal: (approvalId: string) => void
  readonly clearUnavailable: () => void
  readonly onDecided: () => void
}

/** Returns the functions that decide approvals, and the decisions that wait for the connection or were refused after it. */
export function useDecisions<Tools extends UITools>(
  target: ChatTarget<Tools>,
  options: DecisionOptions,
) {
  const { attached, connection } = target
  const { outbox, clearUnavailable } = options
  const latestOutbox = useLatest(outbox)
  const sending = usePendingIds()
  const decide = useDecide(target, options, sending)
  const together = useDecideTogether(target, options, sending)
  useEffect(() => {
    // The server can be reached again, so that the reason does not apply any more.
    if (connection.state === 'open') clearUnavailable()
  }, [connection, clearUnavailable])
  const actions = useMemo(
    () => ({
      decide,
      approve: (
        approvalId: string,
        response: Pick<Decision, 'args' | 'payload' | 'preview' | 'reason'> = {},
      ) => decide(approvalId, { approved: true, ...response }),
      deny: (approvalId: string, reason?: string) =>
        decide(approvalId, { approved: false, ...(reason !== undefined && { reason }) }),
      cancelDecision: (approvalId: string) =>
        attached?.cancelDecision(approvalId) === true ||
        latestOutbox.current?.cancelDecision(approvalId) === true,
      dismissRefused: (approvalId: string) => latestOutbox.current?.dismissRefused?.(approvalId),
    }),
    [attached, decide, latestOutbox],
  )
  return {
    ...actions,
    ...together,
    waitingDecisions: useWaitingDecisions(outbox),
    refusedDecisions: useRefusedDecisions(outbox),
  }
}

/** Returns a function that decides an approval. A second decision is ignored while the first one is being sent. */
function useDecide<Tools extends UITools>(
  { chat, attached, api, connection }: ChatTarget<Tools>,
  { outbox, refuse, clearRefusal, onDecided }: DecisionOptions,
  { add, remove }: SendingIds,
): (approvalId: string, decision: Decision) => Promise<void> {
  const latestConnection = useLatest(connection)
  const latestOutbox = useLatest(outbox)
  const shownChat = useShown(chat)
  return useCallback(
    async (approvalId, decision) => {
      if (!add(approvalId)) return
      clearRefusal(approvalId)
      try {
        const isConnected = latestConnection.current.state !== 'lost' && !isBrowserOffline()
        await sendDecision({ chat, attached, api, isConnected }, approvalId, decision)
      } catch (reason) {
        if (reason !== DECISION_CANCELLED) refuse([approvalId], reason)
        // The card says why.
        if (shownChat.current === chat) latestOutbox.current?.dismissRefused?.(approvalId)
      }
      onDecided()
      remove(approvalId)
    },
    [
      chat,
      attached,
      api,
      latestConnection,
      latestOutbox,
      shownChat,
      refuse,
      clearRefusal,
      onDecided,
      add,
      remove,
    ],
  )
}

type SendingIds = Pick<ReturnType<typeof usePendingIds>, 'add' | 'remove'>

const NO_IDS: ReadonlySet<string> = new Set()

/** Returns a function that decides several approvals in one request, and the ids of those that it has sent and that were not refused. */
function useDecideTogether<Tools extends UITools>(
  { attached, api }: ChatTarget<Tools>,
  { refuse, clearRefusal, onDecided }: DecisionOptions,
  { add, remove }: SendingIds,
) {
  const [decidedTogether, setDecided] = useState(NO_IDS)
  const decideTogether = useCallback(
    async (approvals: readonly ApprovalSeen[], approved: boolean): Promise<void> => {
      const sent = approvals.filter(({ approvalId }) => add(approvalId))
      const ids = sent.map(({ approvalId }) => approvalId)
      for (const id of ids) clearRefusal(id)
      setDecided((known) => new Set([...known, ...ids]))
      const decisions = sent.map(({ approvalId, preview }) => ({
        approvalId,
        approved,
        ...(preview && { preview: preview.digest }),
      }))
      const refused = await api
        ?.decideTogether(decisions)
        .catch((error: unknown): Refusals => new Map(ids.map((id) => [id, toServerError(error)])))
      for (const [id, reason] of refused ?? []) refuse([id], reason)
      // The messages show what was decided when the turn continues. Until then, the cards have no forms.
      setDecided((known) => new Set([...known].filter((id) => refused?.has(id) !== true)))
      for (const id of ids) remove(id)
      onDecided()
    },
    [api, refuse, clearRefusal, onDecided, add, remove],
  )
  return { decidedTogether, decideTogether: api && attached ? decideTogether : undefined }
}

/** Returns the chat that the page shows. Undefined after it has left the page. */
function useShown(chat: object): { readonly current: object | undefined } {
  const shown = useRef<object>(undefined)
  useEffect(() => {
    shown.current = chat
    return () => void (shown.current = undefined)
  }, [chat])
  return shown
}
