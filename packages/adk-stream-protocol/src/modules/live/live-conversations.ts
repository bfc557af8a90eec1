import type { BaseAgent, RunConfig } from '@google/adk'
import { Gemini, isLlmAgent, PluginManager } from '@google/adk'
import { Modality } from '@google/genai'

import { assertRunsLive } from '../../agent/tree/run-methods.ts'
import type { ApprovalPolicy } from '../../approvals/policy.ts'
import { ToolErrors } from '../../calls/run-call.ts'
import { toLiveAgent } from './gemini/live-agent.ts'
import { completesCalls, isNeverLive, takesNonBlockingCalls } from './gemini/live-models.ts'
import { ReconnectingLiveModel } from './gemini/reconnecting-model.ts'
import { LiveConversation } from './session/live-conversation.ts'
import type { LiveHost } from './session/live-parts.ts'
import type { LiveSnapshot } from './session/live-snapshot.ts'
import type { LiveListener } from './session/live-watchers.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import type { TurnInfo } from '../../server/settings/observers.ts'
import type { Backend, LazyBackend } from '../../server/chats/backend.ts'
import { toAppChat } from '../../server/chats/backend.ts'
import type { RootAgent } from '../../server/chats/chat-agents.ts'
import type { LiveLease } from './live-leases.ts'
import type { DecidedCallRef } from '../../server/chats/host/stored-calls.ts'
import type { AgentServices } from '../../agent/agent-services.ts'
import type { TurnService } from '../../server/chats/turns/turn-service.ts'

/** Options of Gemini Live sessions: the option `live` of `createBridge`. */
export interface LiveOptions {
  /** The live model, or its name. Default: the model of the agent. */
  readonly model?: Gemini | string
  /** Configures the live run of ADK. Default: audio replies, with transcripts of both sides. */
  readonly runConfig?: Partial<RunConfig>
  /** How long a person may take to decide, in ms, if the policy sets no deadline. Default: 5 minutes. */
  readonly approvalDeadlineMs?: number
  /** How long a session stays open after its last client disconnects, in ms. Default 60,000. */
  readonly graceMs?: number
}

interface ConversationStarterOptions extends Omit<LiveOptions, 'graceMs'> {
  readonly graceMs: number
  readonly backend: LazyBackend
  readonly turnService: Pick<TurnService, 'streamFrom'>
  /** The agents by name. */
  readonly agents: ReadonlyMap<string, RootAgent>
  readonly policy: ApprovalPolicy
  /** Whether the model receives the message of an error that a tool throws. */
  readonly exposeErrors: boolean
  readonly services: AgentServices
  /** Called when a result was stored in a message that is not streamed any more. */
  readonly onLateResults: (turn: TurnInfo) => void
  /** An error has ended the work on a call of a live session, before the conversation had its result. Returns whether a sweep continues it. */
  readonly onLeft: (call: DecidedCallRef, error: unknown) => boolean
  readonly onError: (error: unknown) => void
}

/** The lease of a conversation, and the session of another process that it continues. */
export interface TakenSession {
  readonly lease: LiveLease
  readonly continues: LiveSnapshot | undefined
}

/** Finds the agent of a chat. Returns a function that starts a conversation with it at once. */
export type PrepareConversation = (
  chat: ChatRef,
) => Promise<(listener: LiveListener, taken: TakenSession) => LiveConversation>

const MINUTE_MS = 60_000

/** Returns the function that prepares the live conversations of a bridge. Throws if one of its agents cannot run live. */
export function createConversationStarter(
  options: ConversationStarterOptions,
): PrepareConversation {
  const { turnService, policy, graceMs, approvalDeadlineMs = 5 * MINUTE_MS, onError } = options
  const agents = new Map(
    Array.from(options.agents, ([name, agent]) => [
      name,
      toLiveModelAgent(name, agent, options.model),
    ]),
  )
  const errors = new ToolErrors({ exposeErrors: options.exposeErrors, onNestedError: onError })
  const { plugins = [], ...adkServices } = options.services
  const hostPlugins = new PluginManager([...plugins])
  const terms = { policy, deadlineMs: approvalDeadlineMs, onError }
  const runConfig = { ...SPOKEN, ...options.runConfig }
  /** By the names of the agents. */
  const hosts = new Map<string, LiveHost>()

  const createHost = (backend: Backend, name: string): LiveHost => {
    const { host, sessions, ledger, appName, kinds, prior, waitingCalls } = backend
    const found = agents.get(name)
    if (!found) throw new ProtocolError('unknown-agent')
    const { agent, model } = found
    return {
      errors,
      hostPlugins,
      terms: { ...terms, kinds, prior },
      runConfig,
      agent,
      prepareCall: (call, outer) => host.prepareOutsideAdk(name, call, outer),
      services: {
        ...adkServices,
        appName,
        sessionService: host.endings.observe(sessions.service),
      },
      createModel: (hooks, resumeFrom) => new ReconnectingLiveModel(model, { hooks, resumeFrom }),
      hasNonBlockingCalls: takesNonBlockingCalls(model.model),
      completesCalls: completesCalls(model.model),
      ledger,
      onHandedOver: (call, timeoutMs) => waitingCalls.onHandedOver(backend, call, timeoutMs),
      onDelivered: (chat, ids) => waitingCalls.onDelivered(backend, chat, ids),
      onCancelled: (chat, calls) => waitingCalls.onCancelled(backend, chat, calls),
      openTurn: ({ principalId, chatId }, messageId, stream) =>
        turnService.streamFrom({ principalId, chatId }, messageId, { ...stream, graceMs }),
      onLeft: (chat, toolCallIds, error) =>
        toolCallIds.map((toolCallId) => options.onLeft({ chat, toolCallId }, error)).some(Boolean),
      onLateResult: ({ principalId, chatId }, messageId) =>
        options.onLateResults({ principalId, chatId, messageId }),
      onError,
    }
  }

  return async (ref) => {
    const backend = await options.backend.get()
    const chat = toAppChat(backend, ref)
    const name = await backend.agents.of(chat)
    const host = hosts.get(name) ?? createHost(backend, name)
    hosts.set(name, host)
    return (listener, { lease, continues }) =>
      new LiveConversation({ host, chat, listener, continues, lease })
  }
}

const SPOKEN: Partial<RunConfig> = {
  responseModalities: [Modality.AUDIO],
  inputAudioTranscription: {},
  outputAudioTranscription: {},
}

/** Returns an agent with its live model. Throws if it cannot run live. */
export function toLiveModelAgent(
  name: string,
  agent: RootAgent,
  override: Gemini | string | undefined,
): { readonly agent: BaseAgent; readonly model: Gemini } {
  assertRunsLive(name, agent)
  const model = findLiveModel(agent, override)
  if (isNeverLive(model.model))
    throw new TypeError(
      `createBridge: \`live\` needs a live model, and ${model.model} has no live sessions. Pass \`live.model\`, for example gemini-3.1-flash-live-preview.`,
    )
  // Throws if the agent creates its sub-agents itself.
  toLiveAgent(agent, model)
  return { agent, model }
}

function findLiveModel(agent: BaseAgent, override: Gemini | string | undefined): Gemini {
  if (typeof override === 'string') return new Gemini({ model: override })
  const model = override ?? (isLlmAgent(agent) ? agent.canonicalModel : undefined)
  if (model instanceof Gemini) return model
  throw new TypeError('createBridge: `live` needs a Gemini model: pass `live.model`.')
}
