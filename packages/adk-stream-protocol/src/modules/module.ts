import type { BaseArtifactService } from '@google/adk'

import type { ApprovalPolicy } from '../approvals/policy.ts'
import type { CallKind } from '../calls/call-kind.ts'
import type { PriorDecisions } from '../calls/prior-decisions.ts'
import type { RootAgent } from '../server/chats/chat-agents.ts'
import type { Backend, LazyBackend, WaitingCalls } from '../server/chats/backend.ts'
import type { ApprovalDecisions } from '../server/chats/decisions/approval-decisions.ts'
import type { ReadDecision } from '../server/chats/decisions/message-decisions.ts'
import type { ChangeChat } from '../server/chats/turns/free-chat.ts'
import type { TurnService } from '../server/chats/turns/turn-service.ts'
import type { Route } from '../server/http/http-router.ts'
import type { BridgeLimits } from '../server/settings/limits.ts'
import type { FindNames } from '../server/routes/principal-names.ts'
import type { Store } from '../store/store.ts'

/** Opens a feature that the core does not know. `Options` are those options of `createBridge` that belong to the feature. */
export type OpenModule<Options> = (settings: CoreSettings & Options) => Module

/** The settings that every module gets. */
export interface CoreSettings {
  readonly appName: string
  readonly agents: ReadonlyMap<string, RootAgent>
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
