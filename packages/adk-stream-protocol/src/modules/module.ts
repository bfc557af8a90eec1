import type { BaseArtifactService } from '@google/adk'

import type { AgentServices } from '../agent/agent-services.ts'
import type { Approval } from '../approvals/approval.ts'
import type { Substitutes } from '../approvals/substitutes.ts'
import type { ApprovalPolicy } from '../approvals/policy.ts'
import type { CallKind } from '../calls/call-kind.ts'
import type { PriorDecisions } from '../calls/prior-decisions.ts'
import type { RootAgent } from '../server/chats/chat-agents.ts'
import type { Backend, LazyBackend, WaitingCalls } from '../server/chats/backend.ts'
import type { ChatRuns } from '../server/chats/chat-runs.ts'
import type { ChatService } from '../server/chats/chat-service.ts'
import type { ApprovalDecisions } from '../server/chats/decisions/approval-decisions.ts'
import type { ReadDecision } from '../server/chats/decisions/message-decisions.ts'
import type { DecidedCallRef } from '../server/chats/host/stored-calls.ts'
import type { OtherServers } from '../server/chats/other-servers.ts'
import type { ContextOptions } from '../server/chats/request-context.ts'
import type { ChangeChat } from '../server/chats/turns/free-chat.ts'
import type { TurnService } from '../server/chats/turns/turn-service.ts'
import type { Route } from '../server/http/http-router.ts'
import type { LevelName } from '../server/operations/metrics.ts'
import type { BridgeLimits } from '../server/settings/limits.ts'
import type { TurnInfo } from '../server/settings/observers.ts'
import type { FindNames } from '../server/routes/principal-names.ts'
import type { OpenHandlers } from '../server/sockets/connection.ts'
import type { Store } from '../store/store.ts'
import type { ChatEvents, UntilMet } from '../turns/chat-events.ts'
import type { OtherTurns, TurnRegistry } from '../turns/turn-registry.ts'

/** Opens a feature that the core does not know. `Options` are those options of `createBridge` that belong to the feature. */
export type OpenModule<Options> = (settings: CoreSettings & Options) => Module

/** The settings that every module gets. */
export interface CoreSettings {
  readonly appName: string
  readonly agents: ReadonlyMap<string, RootAgent>
  readonly approvals: ApprovalPolicy
  readonly onError: (error: unknown) => void
}

/** What a feature adds to a bridge. Without its options, it may add nothing. */
export interface Module {
  /** Opens its part of the store, and returns its kinds of calls. Called before the first request, and again if the store failed. */
  readonly openKinds?: (store: Store) => readonly CallKind[] | Promise<readonly CallKind[]>
  /** Returns a policy that also judges the calls of tools that the feature provides. */
  readonly extendPolicy?: (policy: ApprovalPolicy) => ApprovalPolicy
  /** Opens its part of the store, and returns the decisions of people for calls that follow. Called when `openKinds` is. */
  readonly openPrior?: (store: Store) => PriorDecisions | undefined
  /** Opens its part of the store, and says who decides in whose place. Called when `openKinds` is. */
  readonly openSubstitutes?: (store: Store) => Substitutes
  /** Returns a function that finds decisions in the words of people. */
  readonly readDecisions?: (core: DecisionCore) => ReadDecision
  /** Starts its work in the background. Called when the store is open and all kinds are known. */
  readonly start?: (backend: Backend) => void
  readonly waitingCalls?: Partial<WaitingCalls>
  /** Whether work of the module runs that a closing bridge waits for. */
  readonly isBusy?: () => boolean
  /** Ends or resumes work whose time has come. Called at an interval, in every process. */
  readonly sweep?: (core: SweepCore) => Promise<void>
  /** Creates its endpoints. */
  readonly createRoutes?: (core: Core) => readonly Route[]
  /** Called after the last turn has ended, and before the store closes. */
  readonly close?: () => Promise<void>
}

/** A feature whose runs of agents stay open in their chats. A bridge has one such module. */
export interface RunsModule extends Module {
  /** The name of the number of open runs in metrics. */
  readonly runsLevel: LevelName
  readonly openRuns: (core: RunsCore) => OpenedRuns
}

interface OpenedRuns {
  readonly runs: ChatRuns
  /** Returns what handles the frames of a socket. */
  readonly openHandlers: (core: FrameCore) => OpenHandlers
}

/** The parts of the core with which such runs execute calls and stream messages. */
interface RunsCore {
  readonly backend: LazyBackend
  readonly limits: BridgeLimits
  readonly services: AgentServices
  readonly policy: ApprovalPolicy
  /** Whether the model receives the message of an error that a tool throws. */
  readonly exposeErrors: boolean
  readonly turnService: TurnService
  readonly servers: OtherServers
  /** The turns of other processes. */
  readonly otherTurns: OtherTurns
  readonly events: ChatEvents
  readonly untilMet: UntilMet
  /** A request of this process reads the end of an approval. */
  readonly noteRead: (approval: Approval) => void
  /** Another process has recorded a decision about a call of this one. */
  readonly onDecidedElsewhere: (approval: Approval) => void
  /** A result was stored in a message that is not streamed any more. */
  readonly onLateResults: (turn: TurnInfo) => void
  /** An error has ended the work on a call, before the conversation had its result. Returns whether a sweep continues it. */
  readonly onLeft: (call: DecidedCallRef, error: unknown) => boolean
  readonly onError: (error: unknown) => void
}

/** The parts of the core with which the frames of sockets are handled. */
interface FrameCore extends DecisionCore {
  readonly limits: BridgeLimits
  readonly chats: ChatService
  readonly turns: TurnRegistry
  readonly turnService: TurnService
  readonly readDecision: ReadDecision
  readonly whenShortened: 'keep' | 'rewind'
  readonly context: ContextOptions | undefined
}

/** The parts of the core with which a feature decides. */
export interface DecisionCore {
  readonly backend: LazyBackend
  readonly decisions: ApprovalDecisions
}

/** The parts of the core with which a feature resumes turns. */
export interface SweepCore {
  readonly backend: LazyBackend
  readonly turnService: Pick<TurnService, 'resume'>
  readonly onError: (error: unknown) => void
}

/** The parts of the core that a feature may use. */
export interface Core extends DecisionCore {
  readonly limits: BridgeLimits
  readonly artifactService: BaseArtifactService | undefined
  readonly changeChat: ChangeChat
  readonly findNames: FindNames
  readonly onError: (error: unknown) => void
}
