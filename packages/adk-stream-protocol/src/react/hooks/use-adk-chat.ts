import { useChat, type UseChatHelpers } from '@ai-sdk/react'
import type { UITools } from 'ai'
import { useCallback, useEffect, useMemo, useSyncExternalStore } from 'react'

import type { AdkApi } from '../../client/api/adk-api.ts'
import type { ResponseChannel } from '../../client/transports/response-channel.ts'
import type { AdkUIMessage } from '../../client/adk-ui-message.ts'
import type { BrowserTools } from '../../client/tools/browser-tools.ts'
import type { ConnectionState } from '../../client/transports/connection-state.ts'
import type { Decision, Votes } from '../reading/approval.ts'
import { isBusy } from '../../client/sync/attachable-chat.ts'
import { type Problem, readProblem } from '../reading/problem.ts'
import { bindChat } from './bind-chat.ts'
import { decideIn } from './decide-in.ts'
import { recoverChat } from './recover-chat.ts'
import { type Refusals, useAttachedChat } from './use-attached-chat.ts'
import {
  type BrowserToolsOf,
  type TypedAttachedChat,
  useBrowserTools,
} from './use-browser-tools.ts'
import { useConnection } from './use-connection.ts'
import { useLatest } from './use-latest.ts'
import { type AnyChatTransport, useOpenedChat } from './use-opened-chat.ts'
import { usePageTools } from './use-page-tools.ts'
import { useSteadyApi } from './use-steady-api.ts'
import { useUnderWay } from './use-under-way.ts'
import { useVotes } from './use-votes.ts'

/** Which chat it is, and by which transport. */
export interface UseAdkChatOptions<Tools extends UITools = UITools> {
  readonly id: string
  /** `webSocketTransport`, `sseTransport`, or any other of the AI SDK. One that stays the same: another one is another chat. */
  readonly transport: AnyChatTransport<Tools>
  /** What the chat begins with. Later ones are not looked at. */
  readonly messages?: AdkUIMessage<Tools>[] | undefined
  /** For what happens in other tabs, for approvals of several people, and to recover. */
  readonly api?: AdkApi | undefined
  /** What the agent may ask of the page. */
  readonly tools?: BrowserToolsOf<Tools> | undefined
  /** Whether an answer that is being written is read on, once the chat is there. Default false. */
  readonly resume?: boolean
  /** All that goes wrong, also what is not the chat's error. */
  readonly onError?: (error: unknown) => void
  /** The least time between two renderings of chunks, in ms. Default 33. */
  readonly throttleMs?: number
}

/** All of `useChat`, with answers that travel when they are given, and what went wrong. */
export interface AdkChat<Tools extends UITools = UITools> extends UseChatHelpers<
  AdkUIMessage<Tools>
> {
  readonly approve: (
    approvalId: string,
    options?: Pick<Decision, 'args' | 'payload' | 'reason'>,
  ) => Promise<void>
  readonly deny: (approvalId: string, reason?: string) => Promise<void>
  /** Either of them; the form that components ask for. */
  readonly decide: (approvalId: string, decision: Decision) => Promise<void>
  readonly refusals: Refusals
  /** How far approvals of several people have come; known where there is `api`. */
  readonly votes: ReadonlyMap<string, Votes>
  /** The hints of pending approvals as the policy gives them now, by approval; known where there is `api`. */
  readonly hints: ReadonlyMap<string, string>
  /** Nothing with a foreign transport. */
  readonly attached: TypedAttachedChat<Tools> | undefined
  readonly connection: ConnectionState
  /** Whether what is sent can reach the server now. */
  readonly isConnected: boolean
  /** The ids of decisions and outputs that the server has not confirmed. */
  readonly unconfirmed: ReadonlySet<string>
  /** Why there is no answer, while there is none. */
  readonly problem: Problem | undefined
  /** Goes on after a problem: sends again, reads on, or has the answer made anew. */
  readonly recover: () => Promise<void>
}

/** A chat that answers approvals and browser tools when they are given, over any transport; else as `useChat`. */
export function useAdkChat<Tools extends UITools = UITools>(
  options: UseAdkChatOptions<Tools>,
): AdkChat<Tools> {
  const { id, transport, messages, tools, resume = false, throttleMs = 33 } = options
  const api = useSteadyApi(options.api)
  const onError = useLatest(options.onError)
  const report = useCallback((error: unknown) => onError.current?.(error), [onError])
  const opened = useOpenedChat({ id, transport, messages, onError: report })
  const { chat, answers, channel } = opened
  const connection = useConnection(transport)
  // Both names: ai 7 calls it `throttle`.
  const throttle = { throttle: throttleMs, experimental_throttle: throttleMs }
  const shown = useChat<AdkUIMessage<Tools>>({ chat, ...throttle })
  const { status, error } = shown
  const last = shown.messages.at(-1)
  const { votes, hints, onApproval } = useVotes(api, shown.messages)
  const attaching = useAttachedChat(opened, { api, onApproval, onError })
  const { attached, refusals, refuse, forgive } = attaching
  useResumption(chat, resume)
  useBrowserTools(attached, tools)
  usePageTools({ chat, answers, tools: tools as BrowserTools | undefined }, last)

  const { begin, end } = useUnderWay()
  const decide = useCallback(
    async (approvalId: string, decision: Decision): Promise<void> => {
      if (!begin(approvalId)) return
      forgive(approvalId)
      try {
        await decideIn({ chat, attached, api }, approvalId, decision)
      } catch (reason) {
        refuse([approvalId], reason)
      }
      onApproval()
      end(approvalId)
    },
    [chat, attached, api, forgive, refuse, onApproval, begin, end],
  )
  // The time counts from when it failed. What it is read from does not change after that.
  // oxlint-disable-next-line react-hooks/exhaustive-deps
  const problem = useMemo(() => error && readProblem(error, shown.messages, Date.now()), [error])
  const isRefusal = error !== undefined && [...refusals.values()].includes(error as never)
  const actions = useMemo(
    () => ({
      ...bindChat(chat),
      recover: () => recoverChat(chat, api),
      decide,
      approve: (approvalId: string, given: Pick<Decision, 'args' | 'payload' | 'reason'> = {}) =>
        decide(approvalId, { approved: true, ...given }),
      deny: (approvalId: string, reason?: string) =>
        decide(approvalId, { approved: false, ...(reason !== undefined && { reason }) }),
    }),
    [chat, api, decide],
  )
  return {
    ...shown,
    ...actions,
    refusals,
    votes,
    hints,
    attached,
    connection,
    isConnected: connection.state !== 'lost' && connection.state !== 'closed',
    unconfirmed: useUnconfirmed(channel),
    problem: isBusy({ status }) || isRefusal ? undefined : problem,
  }
}

const NO_IDS: ReadonlySet<string> = new Set()

/** The answers of this page that the server has not confirmed; none where the transport cannot tell. */
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

/** Once per chat, however often the effect runs: a second time would cut off the first. What fails is the chat's error. */
function useResumption(chat: Resumable, resume: boolean): void {
  useEffect(() => {
    if (!resume || RESUMED.has(chat)) return
    RESUMED.add(chat)
    void chat.resumeStream()
  }, [chat, resume])
}
