import { type Chat, useChat, type UseChatHelpers } from '@ai-sdk/react'
import type { UITools } from 'ai'
import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from 'react'

import type { AdkApi } from '../../client/api/adk-api.ts'
import type { RefusedDecision, WaitingDecisions } from '../../client/api/decision-outbox.ts'
import type { ResponseChannel } from '../../client/connection/transport.ts'
import type { AdkUIMessage } from '../../client/adk-ui-message.ts'
import type { BrowserTools } from '../../client/tools/browser-tools.ts'
import type { ConnectionState } from '../../client/connection/connection-state.ts'
import type { Approval, ApprovalDetails, Decision, Votes } from '../reading/approval.ts'
import { isBusy } from '../../client/sync/attachable-chat.ts'
import type { Problem } from '../reading/problem.ts'
import type { AttachedChat } from '../../client/sync/attached-chat.ts'
import { markStopped } from './chat-actions.ts'
import { type Refusals, useAttachedChat } from './use-attached-chat.ts'
import {
  type BrowserToolsOf,
  type TypedAttachedChat,
  useBrowserTools,
  useLocalBrowserTools,
} from './use-browser-tools.ts'
import { useConnection, useDraftKey } from './use-connection.ts'
import { useDecisions } from './use-decisions.ts'
import { useRecovery } from './use-recovery.ts'
import { useStableApi, useStableCallback } from '../use-stable.ts'
import {
  type AnyChatTransport,
  bindChat,
  useChatInstance,
  useReplayedMessages,
} from './use-chat-instance.ts'
import { useVotes } from './use-pending-approvals.ts'

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
  /**
   * Approves or denies several calls in one request, with the previews that the person sees. If the server refuses some, `refusals` says why.
   * Undefined without `api`, and with a plain AI SDK transport.
   */
  readonly decideTogether:
    | ((
        approvals: readonly Pick<Approval, 'approvalId' | 'preview'>[],
        approved: boolean,
      ) => Promise<void>)
    | undefined
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
  /** The `draftKey` of `Composer`: a draft is shown only to the person who wrote it. Undefined until a response of the server shows who that is. */
  readonly draftKey: string | undefined
  /** The ids of decisions and tool results that the server has not confirmed. */
  readonly unconfirmed: ReadonlySet<string>
  /** Votes and answers that wait for the connection, by approval id. Pass it to `MessageList`. Needs a stable `api`. */
  readonly waitingDecisions: WaitingDecisions
  /** Decisions that the server refused after they had waited for the connection, in chats that are no longer open. */
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
  const { id, transport, messages: initial, tools, resume = false, throttleMs = 33 } = options
  const api = useStableApi(options.api)
  const onError = useStableCallback(options.onError)
  const instance = useChatInstance({ id, transport, messages: initial, onError })
  const { chat, results, channel } = instance
  const connection = useConnection(transport)
  // AI SDK 7 calls the option `throttle`.
  const throttle = { throttle: throttleMs, experimental_throttle: throttleMs }
  const shown = useChat<AdkUIMessage<Tools>>({ chat, ...throttle })
  const messages = useReplayedMessages(shown.messages, shown.status)
  const { onApproval, ...pending } = useVotes(api, messages)
  const { attached, ...refused } = useAttachedChat(instance, { api, onApproval, onError })
  const { refusals } = refused

  useResumeOnce(chat, resume)
  useBrowserTools(attached, tools)
  const localTools = { chat, results, tools: tools as BrowserTools | undefined }
  useLocalBrowserTools(localTools, shown.messages.at(-1))
  const target = { chat, attached, api, connection }
  const { decidedTogether, ...decisions } = useDecisions(target, {
    ...refused,
    outbox: options.api,
    onDecided: onApproval,
  })
  const recovery = useRecovery(target, shown, refusals)
  const stop = useStop(chat, shown.status, attached)
  const methods = useMemo(() => bindChat(chat), [chat])
  return {
    ...shown,
    messages,
    ...methods,
    stop,
    ...decisions,
    ...recovery,
    ...pending,
    refusals,
    attached,
    connection,
    isConnected: connection.state !== 'lost' && connection.state !== 'closed',
    draftKey: useDraftKey(id, transport, options.api),
    unconfirmed: useUnconfirmed(channel, decidedTogether),
  }
}

/** Returns a function that stops the reply and shows where it was stopped. The server's mark arrives with the stream that was left. */
function useStop<Tools extends UITools>(
  chat: Chat<AdkUIMessage<Tools>>,
  status: string,
  attached: AttachedChat | undefined,
): () => Promise<void> {
  const stopped = useRef<object>(undefined)
  useEffect(() => {
    if (stopped.current !== chat || isBusy({ status })) return
    stopped.current = undefined
    markStopped(chat, attached)
  }, [chat, status, attached])
  return useCallback(() => {
    if (isBusy(chat)) stopped.current = chat
    return chat.stop()
  }, [chat])
}

const NO_IDS: ReadonlySet<string> = new Set()

/** Returns the ids of responses that the server has not confirmed. Empty if the transport does not report them. */
function useUnconfirmed(
  channel: ResponseChannel | undefined,
  decidedTogether: ReadonlySet<string>,
): ReadonlySet<string> {
  const subscribe = useCallback(
    (listener: () => void) => channel?.responses.subscribe(listener) ?? (() => undefined),
    [channel],
  )
  const read = () => channel?.responses.unconfirmed ?? NO_IDS
  const unconfirmed = useSyncExternalStore(subscribe, read, () => NO_IDS)
  return useMemo(
    () =>
      decidedTogether.size === 0 ? unconfirmed : new Set([...unconfirmed, ...decidedTogether]),
    [unconfirmed, decidedTogether],
  )
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
