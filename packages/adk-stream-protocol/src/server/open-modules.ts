import type { z } from 'zod'

import type { Substitutes } from '../approvals/substitutes.ts'
import type { ApprovalPolicy } from '../approvals/policy.ts'
import type { CallKind } from '../calls/call-kind.ts'
import type { PriorDecisions } from '../calls/prior-decisions.ts'
import type {
  Core,
  CoreSettings,
  DecisionCore,
  Module,
  OpenModule,
  RunsModule,
  SweepCore,
} from '../modules/module.ts'
import type { Store } from '../store/store.ts'
import type { ReadDecision } from './chats/decisions/message-decisions.ts'
import type { Backend, WaitingCalls } from './chats/backend.ts'
import type { Route } from './http/http-router.ts'

/** The modules of a bridge, and their options. */
export interface ModuleList<Options> {
  /** The module whose runs stay open. */
  readonly openRuns: (settings: CoreSettings & Options) => RunsModule
  /** All others. */
  readonly open: readonly OpenModule<Options>[]
  /** The schemas of their options. */
  readonly options: Readonly<Record<keyof Options, z.ZodType>>
}

/** What the modules of a bridge add to it. */
export interface BridgeModules extends Pick<RunsModule, 'openRuns' | 'runsLevel'> {
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
export function openModules<Options>(
  list: ModuleList<Options>,
  settings: CoreSettings & Options,
): BridgeModules {
  const runs = list.openRuns(settings)
  const modules: readonly Module[] = [runs, ...list.open.map((open) => open(settings))]
  return {
    openRuns: runs.openRuns,
    runsLevel: runs.runsLevel,
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
