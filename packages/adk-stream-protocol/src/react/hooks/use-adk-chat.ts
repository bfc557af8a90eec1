import { type Chat, useChat, type UseChatHelpers } from '@ai-sdk/react'
import type { UITools } from 'ai'
import {
  type RefObject,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useSyncExternalStore,
} from 'react'

import type { AdkApi } from '../../client/api/adk-api.ts'
import type { RefusedDecision, WaitingDecisions } from '../../client/api/decision-outbox.ts'
import { DECISION_CANCELLED, type ResponseChannel } from '../../client/transports/transport.ts'
import type { AdkUIMessage } from '../../client/adk-ui-message.ts'
import type { BrowserTools } from '../../client/tools/browser-tools.ts'
import {
  type ConnectionState,
  isBrowserOffline,
  onNetworkBack,
  retryConnections,
} from '../../client/transports/connection-state.ts'
import type { ApprovalDetails, Decision, Votes } from '../reading/approval.ts'
import { isBusy } from '../../client/sync/attachable-chat.ts'
import { type Problem, readProblem } from '../reading/problem.ts'
import { markStopped, sendDecision, recoverChat } from './chat-actions.ts'
import { type Refusals, useAttachedChat } from './use-attached-chat.ts'
import {
  type BrowserToolsOf,
  type TypedAttachedChat,
  useBrowserTools,
  useLocalBrowserTools,
} from './use-browser-tools.ts'
import { useConnection } from './use-connection.ts'
import { type ChatApi, useLatest, useStableApi } from './use-stable.ts'
import {
  type AnyChatTransport,
  bindChat,
  useChatInstance,
  useReplayedMessages,
} from './use-chat-instance.ts'
import {
  usePendingIds,
  useRefusedDecisions,
  useWaitingDecisions,
  useVotes,
} from './use-pending-approvals.ts'

/** Options of `useAdkChat`. */
export interface UseAdkChatOptions<Tools extends UITools = UITools> {
  /** The id of the chat. Another id is another chat. */
  readonly id: string
  /** `webSocketTransport`, `sseTransport` or any other AI SDK transport. Pass a stable object: another transport is another chat. */
  readonly transport: AnyChatTransport<Tools>
  /** The initial messages of the chat. Later values are ignored. */
  readonly messages?: AdkUIMessage<Tools>[] | undefined
  /** Needed to follow other tabs, for approvals by several people, and for a safe `recover`. */
  readonly api?: AdkApi | undefined
  /** The browser tools of this page, by name. */
  readonly tools?: BrowserToolsOf<Tools> | undefined
  /** Whether to resume a running reply when the chat is mounted. Default false. */
  readonly resume?: boolean
  /** Called with every error, including those that are not the chat's `error`. */
  readonly onError?: (error: unknown) => void
  /** The minimum time between two renders while chunks arrive, in ms. A slow page renders less often. 0: every chunk renders. Default 33. */
  readonly throttleMs?: number
}

/** The result of `useChat`, with approvals, the connection and problems. */
export interface AdkChat<Tools extends UITools = UITools> extends UseChatHelpers<
  AdkUIMessage<Tools>
> {
  /** Approves a call, optionally with edited arguments. */
  readonly approve: (
    approvalId: string,
    options?: Pick<Decision, 'args' | 'payload' | 'preview' | 'reason'>,
  ) => Promise<void>
  /** Denies a call. The model receives the reason. */
  readonly deny: (approvalId: string, reason?: string) => Promise<void>
  /** Approves or denies a call. Pass it to `MessageList`. If the server refuses the decision, `refusals` says why. */
  readonly decide: (approvalId: string, decision: Decision) => Promise<void>
  /** Why the server refused decisions, by approval id. */
  readonly refusals: Refusals
  /** How many people have approved, by approval id. Needs `api`. */
  readonly votes: ReadonlyMap<string, Votes>
  /** The policy's current hints of pending approvals, by approval id. Needs `api`. */
  readonly hints: ReadonlyMap<string, string>
  /** The current previews and schemas of pending approvals, by approval id. Needs `api`. */
  readonly details: ReadonlyMap<string, ApprovalDetails>
  /** Reads a pending approval again, for its preview. Undefined without `api`. */
  readonly onRefresh: ((approvalId: string) => void) | undefined
  /** The attached chat, for `useInbox` and `useBrowserTools`. Undefined with a plain AI SDK transport. */
  readonly attached: TypedAttachedChat<Tools> | undefined
  /** The state of the connection, for `ConnectionBadge`. */
  readonly connection: ConnectionState
  /** False while the connection is lost or closed. */
  readonly isConnected: boolean
  /** The ids of decisions and tool results that the server has not confirmed. */
  readonly unconfirmed: ReadonlySet<string>
  /** Votes and answers that wait for the connection, by approval id. Pass it to `MessageList`. Needs a stable `api`. */
  readonly waitingDecisions: WaitingDecisions
  /** Decisions that the server refused after they had waited for the connection, in chats that are not open any more. */
  readonly refusedDecisions: readonly RefusedDecision[]
  /** Removes a decision from `refusedDecisions`. */
  readonly dismissRefused: (approvalId: string) => void
  /** Why there is no reply, for `ProblemCard`. */
  readonly problem: Problem | undefined
  /** Takes back a decision that waits for the connection. Returns false if it may have arrived. */
  readonly cancelDecision: (approvalId: string) => boolean
  /** Opens lost connections again without waiting for the next attempt, and recovers. */
  readonly reconnect: () => void
  /** Recovers from a problem: sends the message again, resumes the reply or regenerates it. Never repeats a call that ran. */
  readonly recover: () => Promise<void>
}

/** `useChat` for an ADK agent: sends decisions and browser tool results at any time, and follows the chat in other tabs. Works with any transport. */
export function useAdkChat<Tools extends UITools = UITools>(
  options: UseAdkChatOptions<Tools>,
): AdkChat<Tools> {
  const { id, transport, messages, tools, resume = false, throttleMs = 33 } = options
  const api = useStableApi(options.api)
  const onError = useLatest(options.onError)
  const report = useCallback((error: unknown) => onError.current?.(error), [onError])
  const instance = useChatInstance({ id, transport, messages, onError: report })
  const { chat, results, channel } = instance
  const connection = useConnection(transport)
  // AI SDK 7 calls the option `throttle`.
  const throttle = { throttle: throttleMs, experimental_throttle: throttleMs }
  const shown = useChat<AdkUIMessage<Tools>>({ chat, ...throttle })
  const { status, error } = shown
  const last = shown.messages.at(-1)
  const drawn = useReplayedMessages(shown.messages, status)
  const { votes, hints, details, onApproval, onRefresh } = useVotes(api, drawn)
  const { attached, refusals, refuse, clearRefusal, clearUnavailable } = useAttachedChat(instance, {
    api,
    onApproval,
    onError,
  })
  useResumeOnce(chat, resume)
  useBrowserTools(attached, tools)
  useLocalBrowserTools({ chat, results, tools: tools as BrowserTools | undefined }, last)

  const latestApi = useLatest(options.api)
  const waitingDecisions = useWaitingDecisions(options.api)
  const refusedDecisions = useRefusedDecisions(options.api)
  const decide = useDecide(
    { chat, attached, api, connection },
    { clearRefusal, refuse, onDecided: onApproval, outbox: latestApi },
  )
  // `retryAt` counts from the moment of the error. The messages do not change after it.
  // oxlint-disable-next-line react-hooks/exhaustive-deps
  const problem = useMemo(() => error && readProblem(error, shown.messages, Date.now()), [error])
  const isRefusal = error !== undefined && [...refusals.values()].includes(error as never)
  useEffect(() => {
    // The card says why. Nothing else has failed, so that a message that was queued meanwhile is sent.
    if (isRefusal) chat.clearError()
  }, [chat, isRefusal, error])
  const stop = useStop(chat, status)
  const recover = useCallback(() => recoverChat(chat, api, attached), [chat, api, attached])
  const isDisconnected = problem?.kind === 'disconnected' && !isBusy({ status })
  const reconnect = useReconnect({ recover: api && recover, isDisconnected, connection })
  useEffect(() => {
    // The server can be reached again, so that the reason does not apply any more.
    if (connection.state === 'open') clearUnavailable()
  }, [connection, clearUnavailable])
  const actions = useMemo(
    () => ({
      ...bindChat(chat),
      stop,
      recover,
      reconnect,
      cancelDecision: (approvalId: string) =>
        attached?.cancelDecision(approvalId) === true ||
        latestApi.current?.cancelDecision(approvalId) === true,
      decide,
      dismissRefused: (approvalId: string) => latestApi.current?.dismissRefused?.(approvalId),
      approve: (
        approvalId: string,
        response: Pick<Decision, 'args' | 'payload' | 'preview' | 'reason'> = {},
      ) => decide(approvalId, { approved: true, ...response }),
      deny: (approvalId: string, reason?: string) =>
        decide(approvalId, { approved: false, ...(reason !== undefined && { reason }) }),
    }),
    [chat, attached, latestApi, recover, reconnect, decide, stop],
  )
  return {
    ...shown,
    messages: drawn,
    ...actions,
    refusals,
    votes,
    hints,
    details,
    onRefresh,
    attached,
    connection,
    isConnected: connection.state !== 'lost' && connection.state !== 'closed',
    unconfirmed: useUnconfirmed(channel),
    waitingDecisions,
    refusedDecisions,
    problem: isBusy({ status }) || isRefusal ? undefined : problem,
  }
}

interface DecisionParts<Tools extends UITools> {
  readonly chat: Chat<AdkUIMessage<Tools>>
  readonly attached: TypedAttachedChat<Tools> | undefined
  readonly api: ChatApi | undefined
  readonly connection: ConnectionState
}

/** Stable functions that a decision calls. */
interface DecisionEvents {
  readonly clearRefusal: (approvalId: string) => void
  readonly refuse: (approvalIds: readonly string[], reason: unknown) => void
  readonly onDecided: () => void
  readonly outbox: RefObject<Pick<AdkApi, 'dismissRefused'> | undefined>
}

/** Returns a function that decides an approval. A second decision is ignored while the first one is being sent. */
function useDecide<Tools extends UITools>(
  { chat, attached, api, connection }: DecisionParts<Tools>,
  { clearRefusal, refuse, onDecided, outbox }: DecisionEvents,
): AdkChat<Tools>['decide'] {
  const latestConnection = useLatest(connection)
  const shownChat = useShown(chat)
  const { add, remove } = usePendingIds()
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
        if (shownChat.current === chat) outbox.current?.dismissRefused?.(approvalId)
      }
      onDecided()
      remove(approvalId)
    },
    [
      chat,
      attached,
      api,
      outbox,
      latestConnection,
      shownChat,
      clearRefusal,
      refuse,
      onDecided,
      add,
      remove,
    ],
  )
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

interface ReconnectParts {
  /** Undefined without an `api`: only the server knows what it has received. */
  readonly recover: (() => Promise<void>) | undefined
  readonly isDisconnected: boolean
  readonly connection: ConnectionState
}

/** Recovers once whenever the connection is back. Returns a function that does so without waiting for it. */
function useReconnect({ recover, isDisconnected, connection }: ReconnectParts): () => void {
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
  return retryConnections
}

/** Returns a function that stops the reply and shows where it was stopped. The server's mark arrives with the stream that was left. */
function useStop<Tools extends UITools>(
  chat: Chat<AdkUIMessage<Tools>>,
  status: string,
): () => Promise<void> {
  const stopped = useRef<object>(undefined)
  useEffect(() => {
    if (stopped.current !== chat || isBusy({ status })) return
    stopped.current = undefined
    markStopped(chat)
  }, [chat, status])
  return useCallback(() => {
    if (isBusy(chat)) stopped.current = chat
    return chat.stop()
  }, [chat])
}

const NO_IDS: ReadonlySet<string> = new Set()

/** Returns the ids of responses that the server has not confirmed. Empty if the transport does not report them. */
function useUnconfirmed(channel: ResponseChannel | undefined): ReadonlySet<string> {
  const subscribe = useCallback(
    (listener: () => void) => channel?.responses.subscribe(listener) ?? (() => undefined),
    [channel],
  )
  const read = () => channel?.responses.unconfirmed ?? NO_IDS
  return useSyncExternalStore(subscribe, read, () => NO_IDS)
}

interface Resumable {
  resumeStream(): Promise<void>
}

const RESUMED = new WeakSet<object>()

/** Resumes once per chat, however often the effect runs: a second request would abort the first. The chat reports a failure. */
function useResumeOnce(chat: Resumable, resume: boolean): void {
  useEffect(() => {
    if (!resume || RESUMED.has(chat)) return
    RESUMED.add(chat)
    void chat.resumeStream()
  }, [chat, resume])
}
