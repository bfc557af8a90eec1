import type { AuditHeadBridgeOptions } from '../modules/audit-head/audit-head-module.ts'
import {
  AuditHeadBridgeOptionsSchema,
  openAuditHead,
} from '../modules/audit-head/audit-head-module.ts'
import { openBrowser } from '../modules/browser/browser-module.ts'
import type { DelegationBridgeOptions } from '../modules/delegation/delegation-module.ts'
import {
  DelegationBridgeOptionsSchema,
  openDelegation,
} from '../modules/delegation/delegation-module.ts'
import type { GrantsBridgeOptions } from '../modules/grants/grants-module.ts'
import { GrantsBridgeOptionsSchema, openGrants } from '../modules/grants/grants-module.ts'
import type { DeveloperBridgeOptions } from '../modules/developer/developer-module.ts'
import {
  DeveloperBridgeOptionsSchema,
  openDeveloper,
} from '../modules/developer/developer-module.ts'
import type { LiveBridgeOptions } from '../modules/live/live-module.ts'
import { LiveBridgeOptionsSchema, openLive } from '../modules/live/live-module.ts'
import type { LinksBridgeOptions } from '../modules/links/links-module.ts'
import { LinksBridgeOptionsSchema, openLinks } from '../modules/links/links-module.ts'
import type { McpBridgeOptions } from '../modules/mcp/mcp-module.ts'
import { McpBridgeOptionsSchema, openMcp } from '../modules/mcp/mcp-module.ts'
import type {
  Core,
  CoreSettings,
  DecisionCore,
  Module,
  RunsModule,
  SweepCore,
} from '../modules/module.ts'
import { openRemote } from '../modules/remote/remote-module.ts'
import { openReplies } from '../modules/replies/replies-module.ts'
import { openSignIn } from '../modules/sign-in/sign-in-module.ts'
import type { SignInBridgeOptions } from '../modules/sign-in/sign-in-options.ts'
import { SignInBridgeOptionsSchema } from '../modules/sign-in/sign-in-options.ts'
import type { NotifyBridgeOptions } from '../modules/notify/notify-module.ts'
import { NotifyBridgeOptionsSchema, openNotify } from '../modules/notify/notify-module.ts'
import type { Substitutes } from '../approvals/substitutes.ts'
import type { ApprovalPolicy } from '../approvals/policy.ts'
import type { CallKind } from '../calls/call-kind.ts'
import type { PriorDecisions } from '../calls/prior-decisions.ts'
import type { Store } from '../store/store.ts'
import type { ReadDecision } from './chats/decisions/message-decisions.ts'
import type { Backend, WaitingCalls } from './chats/backend.ts'
import type { Route } from './http/http-router.ts'

/** `dev` asks before it opens a bridge whether the agents can run live. */
export { toLiveModelAgent } from '../modules/live/live-conversations.ts'

/** The options of `createBridge` that belong to modules. */
export interface ModuleOptions
  extends
    LiveBridgeOptions,
    SignInBridgeOptions,
    McpBridgeOptions,
    LinksBridgeOptions,
    NotifyBridgeOptions,
    GrantsBridgeOptions,
    DelegationBridgeOptions,
    DeveloperBridgeOptions,
    AuditHeadBridgeOptions {}

/** The schemas of these options. */
export const ModuleOptionsSchema = {
  ...LiveBridgeOptionsSchema,
  ...SignInBridgeOptionsSchema,
  ...McpBridgeOptionsSchema,
  ...LinksBridgeOptionsSchema,
  ...NotifyBridgeOptionsSchema,
  ...GrantsBridgeOptionsSchema,
  ...DelegationBridgeOptionsSchema,
  ...DeveloperBridgeOptionsSchema,
  ...AuditHeadBridgeOptionsSchema,
}

/** The modules of a bridge, besides the one whose runs stay open. This file is the only one that names them. */
const MODULES = [
  openSignIn,
  openMcp,
  openLinks,
  openReplies,
  openBrowser,
  openRemote,
  openNotify,
  openGrants,
  openDelegation,
  openDeveloper,
  openAuditHead,
] as const

export { browserTool } from '../modules/browser/browser-tool.ts'
export { planTool } from '../modules/grants/plan-tool.ts'

/** What the modules of a bridge add to it. */
export interface BridgeModules extends Pick<RunsModule, 'openRuns'> {
  readonly start: (backend: Backend) => void
  readonly openKinds: (store: Store) => Promise<CallKind[]>
  readonly extendPolicy: (policy: ApprovalPolicy) => ApprovalPolicy
  readonly openPrior: (store: Store) => PriorDecisions | undefined
  readonly openSubstitutes: (store: Store) => Substitutes | undefined
  readonly readDecisions: (core: DecisionCore) => ReadDecision
  readonly waitingCalls: WaitingCalls
  readonly busy: boolean
  readonly sweep: (core: SweepCore) => Promise<void>
  readonly createRoutes: (core: Core) => Route[]
  readonly close: () => Promise<void>
}

/** Opens the modules of a bridge. Each one follows from its options and from the agents. */
export function openModules(settings: CoreSettings & ModuleOptions): BridgeModules {
  const live = openLive(settings)
  const modules: readonly Module[] = [live, ...MODULES.map((open) => open(settings))]
  return {
    openRuns: live.openRuns,
    openKinds: async (store) => {
      const kinds: CallKind[] = []
      for (const { openKinds } of modules) kinds.push(...((await openKinds?.(store)) ?? []))
      return kinds
    },
    extendPolicy: (policy) =>
      modules.reduce((known, { extendPolicy }) => extendPolicy?.(known) ?? known, policy),
    openPrior: (store) => modules.find(({ openPrior }) => openPrior)?.openPrior?.(store),
    openSubstitutes: (store) =>
      modules.find(({ openSubstitutes }) => openSubstitutes)?.openSubstitutes?.(store),
    readDecisions: (core) => {
      const all = modules.flatMap(({ readDecisions }) => readDecisions?.(core) ?? [])
      return (said) => {
        for (const read of all) {
          const decision = read(said)
          if (decision) return decision
        }
        return undefined
      }
    },
    start: (backend) => {
      for (const { start } of modules) start?.(backend)
    },
    waitingCalls: joinWaitingCalls(modules.flatMap(({ waitingCalls }) => waitingCalls ?? [])),
    get busy() {
      return modules.some(({ isBusy }) => isBusy?.() === true)
    },
    sweep: async (core) => {
      for (const { sweep } of modules) await sweep?.(core)
    },
    createRoutes: (core) => modules.flatMap(({ createRoutes }) => createRoutes?.(core) ?? []),
    close: async () => {
      for (const { close } of modules) await close?.()
    },
  }
}

function joinWaitingCalls(all: readonly Partial<WaitingCalls>[]): WaitingCalls {
  const tell = async (one: (calls: Partial<WaitingCalls>) => Promise<void> | undefined) => {
    for (const calls of all) await one(calls)
  }
  return {
    onWaiting: (...waiting) => tell((calls) => calls.onWaiting?.(...waiting)),
    onHandedOver: (...handedOver) => tell((calls) => calls.onHandedOver?.(...handedOver)),
    listHandedOver: async (...chat) =>
      (
        await Promise.all(all.map(async (calls) => (await calls.listHandedOver?.(...chat)) ?? []))
      ).flat(),
    onDelivered: (...delivered) => tell((calls) => calls.onDelivered?.(...delivered)),
    onCancelled: (...cancelled) => tell((calls) => calls.onCancelled?.(...cancelled)),
    onChatDeleted: (...deleted) => tell((calls) => calls.onChatDeleted?.(...deleted)),
  }
}
