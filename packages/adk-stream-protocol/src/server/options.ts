import type { BaseSessionService } from '@google/adk'

import type { ApprovalPolicy } from '../approvals/policy.ts'
import type { Chunk } from '../protocol/chunk.ts'
import type { MessageLimits } from '../protocol/stream-request.ts'
import type { Store } from '../store/store.ts'
import type { SocketLimits } from './sockets/socket-peer.ts'
import type { AgentServices } from './chats/agent-host.ts'
import type { AllowedHosts } from './http/allowed-hosts.ts'
import type { Authenticate } from './auth/authenticate.ts'
import type { MayCompleteCalls } from './routes/call-completion.ts'
import type { ChooseAgent, RootAgent } from './chats/chat-agents.ts'
import type { ContextOptions } from './chats/request-context.ts'
import type { LiveOptions } from './chats/live-runs.ts'
import type { TrustedProxies } from './http/trusted-proxies.ts'

/** How an agent is put in front of people. */
export interface BridgeOptions extends AgentServices {
  /** The agent to put in front of people: an ADK agent, or a workflow. For several, pass `agents` (`SeveralAgentsOptions`). */
  readonly agent: RootAgent
  /** ADK's name for the application; part of every session's key. Default `adk-stream-protocol`. */
  readonly appName?: string
  /** Where conversations live. Default: SQLite in memory, gone with the process. */
  readonly store?: Store | Promise<Store>
  /** Another ADK session service in place of the store's own. */
  readonly sessionService?: BaseSessionService
  /** Who is asking. Default: every browser is its own principal, by a signed cookie. */
  readonly authenticate?: Authenticate
  /** Origins of pages, beside the server's own, that may use it. Default none. */
  readonly allowedOrigins?: readonly string[]
  /**
   * Names under which clients reach the server, such as `chat.example.com`; `localhost` and IP addresses are always accepted.
   * A request with another `Host` is refused with `forbidden-host`, which protects a server on this machine or in a private
   * network from foreign pages (DNS rebinding). Default: with `authenticate`, every name (`any`); without it, the hosts of
   * `allowedOrigins`, because the default identity is given to every browser that asks.
   */
  readonly allowedHosts?: AllowedHosts
  /**
   * The proxies before the server, whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed: their number, or their addresses
   * and networks (`10.0.0.0/8`). Default none: these headers are not read.
   */
  readonly trustedProxies?: TrustedProxies
  /** The path below which the bridge is mounted, where the host does not strip it. Default none. */
  readonly basePath?: string
  /**
   * How long a turn goes on after its last reader has left, in ms. Default 0: a client that leaves, or calls `stop()`, stops the
   * model at once. With more, a client may lose its connection or reload the page and resume; then stop by
   * `POST /chats/:chatId/stop`.
   */
  readonly disconnectGraceMs?: number
  /** What happens to a message that comes while the chat's answer is being written and read. Default `refuse`, with 409. */
  readonly whileRunning?: 'refuse' | 'queue'
  /**
   * Which calls need approval and on which terms, by tool or by function of the call. A policy has the last word over a tool's
   * own `requireConfirmation`; where it says nothing, the tool decides.
   */
  readonly approvals?: ApprovalPolicy
  /** How long a person may take to decide where the policy does not say, in ms. Default 24 hours. */
  readonly approvalDeadlineMs?: number
  /** What happens to open approvals when the person writes something else. Default `keep`: they stay open. */
  readonly whilePending?: 'keep' | 'cancel'
  /**
   * What happens when a client sends a message after a history that ends before the stored one. With `rewind` the stored messages
   * behind it are removed: this is how assistant-ui edits a message (`setMessages(slice)` and `sendMessage`). Default `keep`: a
   * second tab that has not seen the newest messages sends the same, and must not remove them.
   */
  readonly whenShortened?: 'keep' | 'rewind'
  /**
   * Who may complete long-running calls over HTTP, with `POST /chats/:chatId/calls/:toolCallId`. Default: nobody; the application
   * itself uses `bridge.completeCall()`, which asks for no permission.
   */
  readonly mayCompleteCalls?: MayCompleteCalls
  /**
   * How the `body` and `metadata` of a request, and the attributes of the principal, become session state. Default: nothing of them
   * reaches the agent.
   */
  readonly context?: ContextOptions
  /** Live conversations on `WS /live`, in writing and in speech. Default: sockets are answered turn by turn. */
  readonly live?: LiveOptions
  /**
   * Which keys of the session state clients may see, as `data-state-delta` parts. Default: none. State often holds secrets: ADK's
   * `SessionStateCredentialService` keeps access tokens in it.
   */
  readonly exposeState?: (key: string) => boolean
  /**
   * Whether the model is told the words of an error that a tool threw, which may hold addresses and secrets that it repeats. Clients are
   * told only that the tool failed; `onError` gets the error. Default false.
   */
  readonly exposeToolErrors?: boolean
  /** What ADK's run of a turn is configured with. Live conversations have their own, `live.runConfig`. */
  readonly runConfig?: TurnRunConfig
  readonly limits?: Partial<BridgeLimits>
  /**
   * How long `close()` waits for calls and answers that run, in ms. Default 30,000. New work is refused meanwhile with 503. What
   * waits for people is left to other processes, or to this one when it is started again.
   */
  readonly drainMs?: number
  /**
   * What happens if the audit record of approvals was changed by another program. Default `report`: `onError` gets a `StoreError` with
   * the code `tampered`, `GET /ready` answers with a warning, and the bridge goes on. `refuse`: every request is answered with 503.
   */
  readonly whenTampered?: 'report' | 'refuse'
  /** Gets every error that clients are told only in general. Default: `console.error`. */
  readonly onError?: (error: unknown) => void
  /** Sees every chunk of every turn. */
  readonly onChunk?: (chunk: Chunk, turn: TurnInfo) => void
}

/** How several agents are put in front of people. All options but these are for all of them, as for one agent. */
export interface SeveralAgentsOptions extends Omit<BridgeOptions, 'agent'> {
  /**
   * The agents by name: a letter, then letters, digits, `.`, `_` and `-`, at most 64. A chat gets its agent with its first message and
   * keeps it. Chats that began before the bridge had several agents have the first one. Needs `store` if `sessionService` is given:
   * the agent of each chat is recorded in the store.
   */
  readonly agents: Readonly<Record<string, RootAgent>>
  /**
   * Returns the name of the agent for a new chat. Default: the agent that the client names, by `agent` in the body or `?agent=` in the
   * address, or the first one of `agents`.
   */
  readonly chooseAgent?: ChooseAgent
}

/** The options of any bridge. */
export type AnyBridgeOptions = BridgeOptions | SeveralAgentsOptions

/** The part of ADK's `RunConfig` that a host may choose for a turn. */
export interface TurnRunConfig {
  /** How often the model may be called for one request. Default 100; a turn that reaches it ends with an error. */
  readonly maxLlmCalls?: number
  /**
   * Whether ADK stores the files of a message as artifacts, and tells the model their names in place of their content. Needs
   * `artifactService`. Stored messages then show the names. Default false.
   */
  readonly saveInputBlobsAsArtifacts?: boolean
}

/** The turn that a chunk belongs to. */
export interface TurnInfo {
  readonly chatId: string
  readonly principalId: string
  readonly messageId: string
}

/** What one request, one socket and one principal may take. */
export interface BridgeLimits extends MessageLimits, SocketLimits {
  /** Bytes of a request body, and of a socket's frame. Default 8 MiB. */
  readonly maxBodyBytes: number
  /** Answers being written at once for all principals; one more message is refused with `overloaded`. Default 1,000. */
  readonly maxTurns: number
  /** Sockets open at once, of all principals. Default 20,000. */
  readonly maxSockets: number
  /**
   * Sockets open at once from one address. Without `trustedProxies`, addresses of this machine and of private networks are not
   * counted: they are those of a proxy. Default 1,000.
   */
  readonly maxSocketsPerAddress: number
  /** Answers being written at once for one principal. Default 16. */
  readonly maxTurnsPerPrincipal: number
  /** Feeds of `GET /events` and `GET /chats/:chatId/events` that one principal may have open: one for every page that is seen. Default 64. */
  readonly maxFeedsPerPrincipal: number
  /** Messages that wait in one chat when `whileRunning` is `queue`. Default 8. */
  readonly maxQueued: number
  /** How far a reader may fall behind another one before it is let go, in characters. Default 1 Mi. */
  readonly maxLag: number
  /** How long a reader may take nothing before it is let go, in ms. Default 30,000. */
  readonly stallTimeoutMs: number
  /** How much of a running turn is kept for those who resume, in characters. Default 8 Mi. */
  readonly maxReplay: number
  /** Approvals that may wait in one chat. Default 16. */
  readonly maxPendingPerChat: number
  /** Approvals that may wait in all chats of one principal. Default 100. */
  readonly maxPendingPerPrincipal: number
  /** Characters of JSON in the payload of one decision. Default 65,536. */
  readonly maxPayloadLength: number
  /** How long a process that died keeps what it ran, in ms. Default 15,000. */
  readonly leaseMs: number
  /**
   * How long the event loop of this process may be blocked before another process takes over what it runs, in ms. Default 120,000.
   * A shared database is told by a thread of its own that the process lives.
   */
  readonly maxBlockedMs: number
  /** How often deadlines, leases and what other servers decided are looked at, in ms. Default 1,000. */
  readonly sweepMs: number
  /** Sockets that one principal may have open. Default 16. */
  readonly maxSocketsPerPrincipal: number
  /** Live conversations that one principal may have open, also those that are kept for who may come back. Default 64: a page stays in every chat that it has talked in. */
  readonly maxLiveChatsPerPrincipal: number
  /** Answers that are read at once over one socket. Default 32. */
  readonly maxRequestsPerSocket: number
  /** How often the credentials of an open socket or feed are checked again, in ms. Default 300,000. */
  readonly reauthenticateMs: number
  /** Silence after which a comment keeps a stream alive, and a socket's client is asked whether it is there, in ms. Default 15,000. */
  readonly keepAliveMs: number
}

const MEBI = 1_048_576

export const DEFAULT_LIMITS: BridgeLimits = {
  maxBodyBytes: 8 * MEBI,
  maxMessages: 100_000,
  maxParts: 64,
  maxAnswers: 256,
  maxTextLength: 200_000,
  maxFileBytes: 5 * MEBI,
  fileTypes: [
    'image/png',
    'image/jpeg',
    'image/webp',
    'image/gif',
    'image/heic',
    'image/heif',
    'audio/*',
    'application/pdf',
    'text/plain',
  ],
  maxTurns: 1_000,
  maxSockets: 20_000,
  maxSocketsPerAddress: 1_000,
  maxTurnsPerPrincipal: 16,
  maxFeedsPerPrincipal: 64,
  maxQueued: 8,
  maxLag: MEBI,
  stallTimeoutMs: 30_000,
  maxReplay: 8 * MEBI,
  keepAliveMs: 15_000,
  maxPendingPerChat: 16,
  maxPendingPerPrincipal: 100,
  maxPayloadLength: 65_536,
  leaseMs: 15_000,
  maxBlockedMs: 120_000,
  sweepMs: 1_000,
  maxSocketsPerPrincipal: 16,
  maxLiveChatsPerPrincipal: 64,
  maxRequestsPerSocket: 32,
  maxFramesPerSecond: 100,
  maxAudioFrameBytes: 65_536,
  maxAudioBytesPerSecond: 128_000,
  reauthenticateMs: 300_000,
}

/** The limits that hold: a default for each that is not given. */
export function toLimits(given: Partial<BridgeLimits> = {}): BridgeLimits {
  const defined = Object.entries(given).filter(([, value]) => value !== undefined)
  return { ...DEFAULT_LIMITS, ...Object.fromEntries(defined) }
}
