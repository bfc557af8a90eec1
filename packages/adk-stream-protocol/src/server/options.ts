import type { BaseSessionService } from '@google/adk'

import { splitServices } from '../agent/agent-services.ts'
import type { ApprovalPolicy } from '../approvals/policy.ts'
import type { Chunk } from '../protocol/chunk.ts'
import type { Store } from '../store/store.ts'
import type { ModuleOptions } from './bridge-modules.ts'
import type { Authenticate } from './auth/authenticate.ts'
import type { ChooseAgent, RootAgent } from './chats/chat-agents.ts'
import { UNNAMED_AGENT } from './chats/chat-agents.ts'
import type { RecordModelCalls } from './chats/model-calls.ts'
import type { NamePrincipal } from './routes/principal-names.ts'
import type { RetentionOptions } from './chats/recovery/sweepers.ts'
import type { ContextOptions } from './chats/request-context.ts'
import type { TurnRunConfig } from './chats/host/agent-host.ts'
import type { AgentServices } from '../agent/agent-services.ts'
import type { AllowedHosts, TrustedProxies } from './http/hosts-and-proxies.ts'
import { DRAIN_MS } from './settings/drain.ts'
import type { BridgeLimits } from './settings/limits.ts'
import { toLimits } from './settings/limits.ts'
import type { Observers, TurnInfo } from './settings/observers.ts'
import type { LogEntry } from './operations/operations.ts'
import type { MayReadAudit } from './routes/audit-and-timeline.ts'
import type { MayCompleteCalls } from './routes/call-completion.ts'

/** Options of `createBridge` for one agent. */
export interface BridgeOptions extends AgentServices, ModuleOptions {
  /** The agent to serve: an ADK agent or a workflow. To serve several agents, pass `agents` (`SeveralAgentsOptions`). */
  readonly agent: RootAgent
  /** The application name that ADK stores with every session. Default `adk-stream-protocol`. */
  readonly appName?: string
  /** Stores conversations and approvals. Default: an in-memory SQLite database, which is lost when the process exits. */
  readonly store?: Store | Promise<Store>
  /** Stores ADK sessions, in place of the store's own session service. */
  readonly sessionService?: BaseSessionService
  /** Identifies the principal of a request. Default: every browser is a principal of its own, identified by a signed cookie. */
  readonly authenticate?: Authenticate
  /** Origins of pages that may use the bridge, in addition to its own origin. Default: none. */
  readonly allowedOrigins?: readonly string[]
  /**
   * Host names of the server, such as `chat.example.com`. `localhost` and IP addresses are always allowed. A request with another
   * `Host` header is rejected with `forbidden-host`. This protects a local or private server against DNS rebinding. Default: any host
   * (`any`) if you pass `authenticate`; otherwise the hosts of `allowedOrigins`, because every browser gets the default identity.
   */
  readonly allowedHosts?: AllowedHosts
  /**
   * The proxies in front of the server, given as their number or as a list of addresses and networks (`10.0.0.0/8`). The bridge
   * trusts their `X-Forwarded-For` and `X-Forwarded-Proto` headers. Default: none, and the headers are ignored.
   */
  readonly trustedProxies?: TrustedProxies
  /** The path prefix of the bridge, if the host does not remove it from the URL. Default: none. */
  readonly basePath?: string
  /**
   * How long a turn continues after its last reader disconnects, in ms. Default 0: a disconnect or `stop()` stops the model at once.
   * With a longer time, clients can reload the page or reconnect and resume the turn. To stop the turn, they then call
   * `POST /chats/:chatId/stop`.
   */
  readonly disconnectGraceMs?: number
  /**
   * What happens to a message that arrives while a turn of the same chat runs and is read. `refuse` rejects it with 409; `queue`
   * starts its turn after the running one. Default `refuse`.
   */
  readonly whileRunning?: 'refuse' | 'queue'
  /**
   * Defines which tool calls need approval, and on which terms: an object with a verdict for each tool, or a function of the call.
   * The policy overrides a tool's `requireConfirmation`. If the policy returns nothing for a call, the tool decides.
   */
  readonly approvals?: ApprovalPolicy
  /** The version of `approvals`, such as a commit or a date. The audit record keeps it with each request. Default: none. */
  readonly policyVersion?: string
  /** How long a person may take to decide, in ms, if the policy sets no deadline. Default: 24 hours. */
  readonly approvalDeadlineMs?: number
  /**
   * What happens to pending approvals when the person sends another message. `keep` leaves them pending; `cancel` cancels them.
   * Default `keep`.
   */
  readonly whilePending?: 'keep' | 'cancel'
  /**
   * What happens when a client sends a message after a history that ends before the stored one. `rewind` removes the stored messages
   * that follow. assistant-ui edits messages this way (`setMessages(slice)`, then `sendMessage`). Default `keep`: a second tab that has
   * not loaded the newest messages sends the same request, and must not remove them.
   */
  readonly whenShortened?: 'keep' | 'rewind'
  /**
   * Returns true if a principal may complete a long-running call over HTTP (`POST /chats/:chatId/calls/:toolCallId`). Default: no
   * principal may. `bridge.completeCall()` does not check this permission.
   */
  readonly mayCompleteCalls?: MayCompleteCalls
  /**
   * Returns true if a principal may read the audit record of all chats over HTTP (`GET /audit`), for example by a role:
   * `({ roles = [] }) => roles.includes('auditor')`. Default: no principal may. `bridge.audit()` does not check this permission.
   */
  readonly mayReadAudit?: MayReadAudit
  /**
   * Returns the name of a principal, for the people who decide about its calls: the requester, the voters and the approvers of an
   * approval. Only those who may see an approval see the names in it. Default: clients receive the ids only.
   */
  readonly namePrincipal?: NamePrincipal
  /**
   * Converts the `body` and `metadata` of a request, and the attributes of the principal, to session state. Default: the agent
   * receives none of them.
   */
  readonly context?: ContextOptions
  /**
   * Returns true for the session state keys that clients receive as `data-state-delta` parts. Default: none. State often contains
   * secrets: ADK's `SessionStateCredentialService` stores access tokens in it.
   */
  readonly exposeState?: (key: string) => boolean
  /**
   * Whether the model receives the message of an error that a tool throws. The message may contain addresses and secrets, which the
   * model may repeat. Clients only receive the fact that the tool failed; `onError` receives the error. Default false.
   */
  readonly exposeToolErrors?: boolean
  /**
   * For development: keeps the newest 100 requests to the model and its replies in memory, for inspectors
   * (`GET /chats/:chatId/model-calls/:callId`). The owner of a chat then reads the instructions of the agent, the declarations of its
   * tools and everything that the model received, without what looks like a secret. They are never stored. Refused if `NODE_ENV` is
   * `production`, and with `authenticate` unless the value is `with-authentication`. Live sessions are not recorded. Default false.
   */
  readonly recordModelCalls?: RecordModelCalls
  /** Configures the ADK run of a turn. Live sessions use `live.runConfig` instead. */
  readonly runConfig?: TurnRunConfig
  /** Limits for requests, sockets and principals. Each limit has a default. */
  readonly limits?: Partial<BridgeLimits>
  /**
   * How long `close()` waits for running calls and turns, in ms. New work is rejected with 503 meanwhile. Pending approvals stay in
   * the store for other processes or for the next start. Default 30,000.
   */
  readonly drainMs?: number
  /**
   * What happens if another program changed the audit record. `report`: `onError` receives a `StoreError` with the code `tampered`,
   * `GET /ready` returns a warning, and the bridge continues. `refuse`: every request is rejected with 503. Default `report`.
   */
  readonly whenTampered?: 'report' | 'refuse'
  /**
   * Removes old data: chats that were not used for `chatsMs`, and audit entries that are older than `auditMs`, with their approvals.
   * Chats with a running turn, a pending approval or an unreported outcome stay. Default: all data is kept.
   */
  readonly retention?: RetentionOptions
  /** Receives every error whose details clients do not receive. Default: `console.error`. */
  readonly onError?: (error: unknown) => void
  /**
   * Receives an entry for each event that operators need to know: start and close, failed turns, approvals, lost leases, unknown calls,
   * refused requests, an unavailable store. Entries contain ids and figures, never prompts, replies or arguments. Errors in full go to
   * `onError`. With pino: `log: ({ level, message, ...fields }) => logger[level](fields, message)`. Default: none.
   */
  readonly log?: (entry: LogEntry) => void
  /** Receives every chunk of every turn. */
  readonly onChunk?: (chunk: Chunk, turn: TurnInfo) => void
}

/** Options of `createBridge` for several agents. All other options apply to every agent. */
export interface SeveralAgentsOptions extends Omit<BridgeOptions, 'agent'> {
  /**
   * The agents by name. A name starts with a letter, followed by letters, digits, `.`, `_` or `-`, and has at most 64 characters. The
   * first message of a chat selects its agent, and the chat keeps it. Chats that are older than this option use the first agent. If
   * you pass `sessionService`, also pass `store`, because the store records the agent of each chat.
   */
  readonly agents: Readonly<Record<string, RootAgent>>
  /**
   * Returns the name of the agent for a new chat. Default: the agent that the client names with `agent` in the body or `?agent=` in
   * the URL, or the first of `agents`.
   */
  readonly chooseAgent?: ChooseAgent
}

/** Options of `createBridge`. */
export type AnyBridgeOptions = BridgeOptions | SeveralAgentsOptions

/** The options of a bridge with the defaults that several of its parts need, and with observers that never throw. */
export interface BridgeSettings
  extends
    Omit<BridgeOptions, 'agent' | 'limits' | keyof AgentServices | keyof Observers | Defaulted>,
    Required<Pick<BridgeOptions, Defaulted>>,
    Observers {
  /** The agents by name. The agent of a bridge with `agent` has an empty name. */
  readonly agents: ReadonlyMap<string, RootAgent>
  readonly chooseAgent: ChooseAgent | undefined
  readonly services: AgentServices
  readonly limits: BridgeLimits
}

type Defaulted = 'appName' | 'approvals' | 'exposeState' | 'exposeToolErrors' | 'drainMs'

/** Returns the settings of a bridge. */
export function toSettings(options: AnyBridgeOptions, observers: Observers): BridgeSettings {
  const [services, rest] = splitServices(options)
  const isNamed = hasAgents(options)
  return {
    ...rest,
    ...observers,
    appName: options.appName ?? 'adk-stream-protocol',
    approvals: options.approvals ?? {},
    // A promise is not a yes.
    exposeState: (key) => options.exposeState?.(key) === true,
    exposeToolErrors: options.exposeToolErrors ?? false,
    drainMs: options.drainMs ?? DRAIN_MS,
    agents: new Map(isNamed ? Object.entries(options.agents) : [[UNNAMED_AGENT, options.agent]]),
    chooseAgent: isNamed ? options.chooseAgent : undefined,
    services,
    limits: toLimits(options.limits),
  }
}

function hasAgents(options: AnyBridgeOptions): options is SeveralAgentsOptions {
  return 'agents' in options && (options.agents as unknown) !== undefined
}
