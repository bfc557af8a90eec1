import type { ApprovalStore } from '../../../src/approvals/approval-store.ts'
import type { Approval, ApprovalState } from '../../../src/approvals/approval.ts'
import { isRefusal, type Refusal } from '../../../src/approvals/approval.ts'
import type { AuditEvent } from '../../../src/approvals/audit-entry.ts'
import { currentStep } from '../../../src/approvals/deciders.ts'
import type { Call } from '../../../src/approvals/digest.ts'
import { Ledger, type LedgerOptions } from '../../../src/approvals/ledger.ts'
import {
  argsToRun,
  nextApproval,
  type Decision,
  type Transition,
} from '../../../src/approvals/next-approval.ts'
import type { LedgerSimulation, MakeLedger } from './simulation.ts'

/** Ledgers with one deliberate fault each, and the invariant by which the checker must find it. */
interface Fault {
  readonly make: MakeLedger
  readonly breaks: RegExp
  /** The seed of programs of which an early one finds the fault. Default: 42. */
  readonly seed?: number
}

export const faults: Record<string, Fault> = {
  'a claim that checks, then acts': {
    make: (options) => new CheckThenAct(options),
    breaks: /once:/,
    seed: 44,
  },
  'a decision without compare-and-set': {
    make: (options) => new Ledger({ ...options, store: withoutCompare(options.store) }),
    breaks: /decision:/,
  },
  'no check of the digest': {
    make: (options) => new NoDigest(options),
    breaks: /authorised:/,
    seed: 51,
  },
  'arguments read again when they run': {
    make: (options, simulation) => new RereadArguments(options, simulation),
    breaks: /authorised:/,
    seed: 52,
  },
  'no check of who decides': {
    make: (options) => new AnyoneDecides(options),
    breaks: /authorised:/,
  },
  'a second run after a crash': {
    make: (options) => new RunsAgain(options),
    breaks: /once:/,
    seed: 51,
  },
  'the clock of the instance': {
    make: (options, simulation, instance) =>
      new Ledger({ ...options, store: withOwnClock(options.store, simulation, instance) }),
    breaks: /expiry:/,
  },
  'a timeout that fires on what is approved': {
    make: (options) => new ExpiresApproved(options),
    breaks: /kept:/,
  },
  'decisions in a queue in memory': {
    make: (options) => new DecisionsInMemory(options),
    breaks: /kept:/,
  },
  'leases by the clock of the day': {
    make: (options, simulation) =>
      new Ledger({ ...options, store: withLeasesByDay(options.store, simulation) }),
    breaks: /lease:/,
    seed: 64,
  },
  'a worker that judges its own calls': {
    make: (options) => new JudgesItself(options),
    breaks: /own-call:/,
    seed: 66,
  },
  'no quota': {
    make: (options) => new Ledger({ ...options, quota: { perChat: 1e9, perPrincipal: 1e9 } }),
    breaks: /quota:/,
  },
  'a deadline checked before, but not when storing': {
    make: (options) => new Ledger({ ...options, store: withoutLimit(options.store) }),
    breaks: /authorised:/,
    seed: 43,
  },
}

class FaultyLedger extends Ledger {
  protected readonly store: ApprovalStore

  constructor(options: LedgerOptions) {
    super(options)
    this.store = options.store
  }

  /** Overwrites the stored approval. */
  protected async force(
    approval: Approval,
    state: ApprovalState,
    event: AuditEvent,
  ): Promise<Approval> {
    const { version } = (await this.store.get(approval.id)) ?? approval
    const { id: approvalId, chat } = approval
    const next = { ...approval, state, version: version + 1 }
    const entry = { approvalId, chat, version: version + 1, at: await this.store.now(), event }
    return (await this.store.replace({ next, entry })) ? next : this.force(approval, state, event)
  }
}

class CheckThenAct extends FaultyLedger {
  override async claim(id: string): Promise<Approval | Refusal> {
    const approval = await this.store.get(id)
    if (approval?.state.name !== 'approved') return { refused: 'not-approved' }
    const { worker } = this
    const edit = approval.state.editedArgs ? { editedArgs: approval.state.editedArgs } : {}
    const state = { name: 'executing', at: await this.store.now(), worker, ...edit } as const
    return this.force(approval, state, { type: 'started', worker, args: argsToRun(approval) })
  }
}

function withoutCompare(store: ApprovalStore): ApprovalStore {
  const replace = async (transition: Transition): Promise<boolean> => {
    const { next, entry } = transition
    if (next.state.name !== 'approved' && next.state.name !== 'denied')
      return store.replace(transition)
    const version = ((await store.get(next.id))?.version ?? 0) + 1
    const stored = { next: { ...next, version }, entry: { ...entry, version } }
    return (await store.replace(stored)) || replace(transition)
  }
  return overriding(store, { replace })
}

class NoDigest extends FaultyLedger {
  override async claim(id: string, call: Call): Promise<Approval | Refusal> {
    const approval = await this.store.get(id)
    if (!approval) return { refused: 'unknown-approval' }
    const claimed = await super.claim(id, approval)
    return isRefusal(claimed) ? claimed : { ...claimed, args: call.args }
  }
}

class RereadArguments extends FaultyLedger {
  readonly #simulation: LedgerSimulation

  constructor(options: LedgerOptions, simulation: LedgerSimulation) {
    super(options)
    this.#simulation = simulation
  }

  override async claim(id: string, call: Call): Promise<Approval | Refusal> {
    const claimed = await super.claim(id, call)
    if (isRefusal(claimed)) return claimed
    await this.store.now()
    return { ...claimed, args: this.#simulation.callOf(Number(call.toolCallId.split('-')[1])).args }
  }
}

class AnyoneDecides extends FaultyLedger {
  override async decide(id: string, decision: Decision): Promise<Approval | Refusal> {
    const approval = await this.store.get(id)
    const step = approval?.terms.chain[currentStep(approval) ?? 0]
    const roles = step?.roles ?? []
    const by = { id: roles.length > 0 ? decision.by.id : (step?.principals[0] ?? ''), roles }
    return super.decide(id, { ...decision, by })
  }
}

class RunsAgain extends FaultyLedger {
  override async recover(): Promise<Approval[]> {
    const stale = await this.store.stale(this.leaseMs)
    return Promise.all(
      stale.map(async (approval) => {
        const event = { type: 'lost', worker: 'it', becomes: 'approved' } as const
        return this.force(approval, { name: 'approved', at: await this.store.now() }, event)
      }),
    )
  }
}

function withOwnClock(
  store: ApprovalStore,
  simulation: LedgerSimulation,
  instance: number,
): ApprovalStore {
  const now = async () => (await store.now(), simulation.now + (instance - 1) * 60)
  return overriding(store, {
    now,
    replace: ({ next, entry }) => store.replace({ next, entry }),
    due: async (limit) => {
      const waiting = await store.list({ states: ['requested'], limit })
      const time = await now()
      return waiting.filter(({ deadline }) => deadline <= time)
    },
  })
}

class ExpiresApproved extends FaultyLedger {
  override async expireDue(): Promise<Approval[]> {
    const open = await this.store.list({
      states: ['requested', 'approved', 'executing'],
      limit: 100,
    })
    const now = await this.store.now()
    const due = open.filter(({ deadline }) => deadline <= now)
    return Promise.all(
      due.map((approval) =>
        this.force(approval, { name: 'expired', at: now }, { type: 'expired' }),
      ),
    )
  }
}

class DecisionsInMemory extends FaultyLedger {
  readonly #decided = new Map<string, Transition>()

  override async decide(id: string, decision: Decision): Promise<Approval | Refusal> {
    const approval = this.#decided.get(id)?.next ?? (await this.store.get(id))
    if (!approval) return { refused: 'unknown-approval' }
    const result = nextApproval(approval, { type: 'decide', ...decision }, await this.store.now())
    if (isRefusal(result)) return result
    this.#decided.set(id, result)
    return result.next
  }

  override async claim(id: string, call: Call): Promise<Approval | Refusal> {
    const decided = this.#decided.get(id)
    if (decided) await this.store.replace(decided)
    return super.claim(id, call)
  }
}

function withLeasesByDay(store: ApprovalStore, simulation: LedgerSimulation): ApprovalStore {
  return overriding(withoutSecondLook(store), {
    stale: async (leaseMs) => {
      const running = await store.list({ states: ['executing'], limit: 100 })
      return running.filter(({ state }) => 'at' in state && state.at <= simulation.now - leaseMs)
    },
  })
}

function withoutSecondLook(store: ApprovalStore): ApprovalStore {
  return overriding(store, {
    replace: ({ silent: _silent, ...transition }) => store.replace(transition),
  })
}

class JudgesItself extends FaultyLedger {
  override async recover(): Promise<Approval[]> {
    const lost: Approval[] = []
    for (const approval of await this.store.stale(this.leaseMs)) {
      if (approval.state.name !== 'executing') continue
      const command = { type: 'lose', worker: approval.state.worker } as const
      const result = nextApproval(approval, command, await this.store.now())
      if (!isRefusal(result) && (await this.store.replace(result))) lost.push(result.next)
    }
    return lost
  }
}

function withoutLimit(store: ApprovalStore): ApprovalStore {
  return overriding(store, { replace: ({ next, entry }) => store.replace({ next, entry }) })
}

function overriding(store: ApprovalStore, changes: Partial<ApprovalStore>): ApprovalStore {
  return { ...store, ...changes }
}
