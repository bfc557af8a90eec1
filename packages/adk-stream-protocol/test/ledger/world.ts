import type { Scheduler } from 'fast-check'
import type { Approval, ApprovalStep } from '../../src/approvals/approval.ts'
import type { ApprovalStore } from '../../src/approvals/approval-store.ts'
import { type Call } from '../../src/approvals/digest.ts'
import { Ledger, type LedgerOptions } from '../../src/approvals/ledger.ts'
import { argsToRun, type Decider } from '../../src/approvals/next-approval.ts'
import { isRefusal, type Refusal } from '../../src/approvals/refusal.ts'
import type { Transition } from '../../src/approvals/next-approval.ts'
import {
  executive,
  executiveStep,
  hanako,
  manager,
  managerStep,
  otherManager,
  ownerStep,
  stranger,
} from './fixture.ts'

/** One thing that happens on an instance, or to the world. */
export type Action =
  | { readonly act: 'request'; readonly call: number }
  | {
      readonly act: 'decide'
      readonly call: number
      /** By name, or the n-th of those who are asked. */
      readonly who: Person | number
      readonly approved: boolean
      readonly edited: boolean
    }
  | { readonly act: 'run'; readonly call: number; readonly as: number; readonly fails: boolean }
  | { readonly act: 'cancel'; readonly call: number }
  | { readonly act: 'expire' | 'recover' | 'beat' }
  | { readonly act: 'rewrite'; readonly call: number }
  | { readonly act: 'wait'; readonly ms: number }
  /** Others come first, so many times. */
  | { readonly act: 'pause'; readonly turns: number }
  | { readonly act: 'crash'; readonly instance: number }

export interface Program {
  readonly plans: readonly CallPlan[]
  readonly opening: readonly Action[]
  readonly lanes: readonly (readonly Action[])[]
  readonly chaos: readonly Action[]
}

export const people = { hanako, manager, otherManager, executive, stranger }
export type Person = keyof typeof people

/** The rules that a call is asked under. Who may decide is said here a second time, for the checker, in plain sight. */
export const rules = {
  owner: { chain: [ownerStep], deciders: [['hanako']] },
  'two managers': {
    chain: [{ ...managerStep, count: 2 }],
    deciders: [
      ['manager', 'otherManager'],
      ['manager', 'otherManager'],
    ],
  },
  'manager, then executive': {
    chain: [managerStep, executiveStep],
    deciders: [['manager', 'otherManager'], ['executive']],
  },
} as const satisfies Record<
  string,
  { chain: readonly ApprovalStep[]; deciders: readonly (readonly Person[])[] }
>

export interface CallPlan {
  readonly rule: keyof typeof rules
  readonly chat: number
  readonly idempotent: boolean
}

export const QUOTA = { perChat: 2, perPrincipal: 3 }
export const DEADLINE_MS = 100
export const LEASE_MS = 40

/** What happened, as an observer without an interest in the ledger saw it. */
export interface History {
  /** What the store took, in order, with the store's clock at that moment. */
  readonly commits: { readonly at: number; readonly approval: Approval }[]
  readonly pendings: { readonly ofChat: number; readonly ofPrincipal: number }[]
  readonly requests: { readonly call: number; readonly result: Approval | Refusal }[]
  readonly decisions: {
    readonly call: number
    readonly who: Person
    readonly approved: boolean
    readonly edited: boolean
    readonly answeredAt: number
    readonly result: Approval | Refusal
  }[]
  /** Tools that started: which call, with which arguments, by whose approval. */
  readonly starts: { readonly call: number; readonly args: unknown; readonly approvalId: string }[]
}

export interface Backing {
  readonly stores: readonly ApprovalStore[]
  readonly appName: string
  readonly start: number
  setClock(at: number): void
}

/** How a ledger, right or wrong, is made for an instance. */
export type MakeLedger = (options: LedgerOptions, world: World, instance: number) => Ledger

export class World {
  readonly history: History = {
    commits: [],
    pendings: [],
    requests: [],
    decisions: [],
    starts: [],
  }
  readonly plans: readonly CallPlan[]
  now: number
  readonly #backing: Backing
  readonly #scheduler: Scheduler
  readonly #makeLedger: MakeLedger
  readonly #instances: Instance[]
  readonly #rewritten = new Set<number>()
  #workers = 0

  constructor(
    plans: readonly CallPlan[],
    backing: Backing,
    { scheduler, makeLedger }: { scheduler: Scheduler; makeLedger: MakeLedger },
  ) {
    this.plans = plans
    this.#backing = backing
    this.#scheduler = scheduler
    this.#makeLedger = makeLedger
    this.now = backing.start
    backing.setClock(this.now)
    this.#instances = backing.stores.map((_, index) => this.#boot(index))
  }

  /** Runs the lanes side by side, one instance each and one for the world, and then lets everything come to rest. */
  async run({ opening, lanes, chaos }: Program): Promise<void> {
    await this.#scheduler.waitFor(this.#runLane(opening, 0))
    const all = lanes.map((lane, index) => this.#runLane(lane, index))
    await this.#scheduler.waitFor(Promise.all([...all, this.#runLane(chaos, 0)]))
    await this.#scheduler.waitFor(this.#rest())
  }

  /** The arguments as the conversation has them now; they may change behind the ledger's back. */
  callOf(index: number): Call {
    const { chat = 0 } = this.plans[index] ?? {}
    const { appName } = this.#backing
    return {
      chat: { appName, principalId: 'hanako', chatId: `chat-${chat}` },
      toolCallId: `call-${index}`,
      toolName: 'process_payment',
      args: this.#rewritten.has(index) ? { amount: 999_999 } : shownArgs(index),
    }
  }

  approvalId(call: number): string {
    return `${this.#backing.appName} ${call}`
  }

  async finalStates(): Promise<(Approval | undefined)[]> {
    const [store] = this.#backing.stores
    return Promise.all(this.plans.map((_, call) => store?.get(this.approvalId(call))))
  }

  audit() {
    const [store] = this.#backing.stores
    return store?.audit({ appName: this.#backing.appName }) ?? []
  }

  #boot(index: number): Instance {
    const store = this.#backing.stores[index]
    if (store === undefined) throw new Error(`no store ${index}`)
    this.#workers += 1
    const life = new Life()
    const watched = this.#watch(store, life)
    const { appName } = this.#backing
    const worker = `${appName} worker ${this.#workers}`
    const options = { store: watched, appName, worker, quota: QUOTA, leaseMs: LEASE_MS }
    return { life, ledger: this.#makeLedger(options, this, index) }
  }

  async #runLane(lane: readonly Action[], index: number): Promise<void> {
    for (const action of lane) {
      const instance = this.#instances[index]
      if (instance === undefined) continue
      // An instance that dies leaves what it did where it was; its successor goes on with what comes next.
      await Promise.race([this.#perform(action, instance.ledger), instance.life.ended])
    }
  }

  async #perform(action: Action, ledger: Ledger): Promise<void> {
    const { history } = this
    switch (action.act) {
      case 'request':
        history.requests.push({
          call: action.call,
          result: await this.#request(action.call, ledger),
        })
        return
      case 'decide':
        return this.#decide(action, ledger)
      case 'run':
        return this.#runTool(action, ledger)
      case 'cancel':
        await ledger.cancel(this.approvalId(action.call), 'cancelled')
        return
      case 'expire':
        await ledger.expireDue()
        return
      case 'recover':
        await ledger.recover()
        return
      case 'beat':
        return ledger.beat()
      case 'rewrite':
        await this.#scheduler.schedule(Promise.resolve(), 'rewrite')
        this.#rewritten.add(action.call)
        return
      case 'wait':
        await this.#scheduler.schedule(Promise.resolve(), 'wait')
        this.now += action.ms
        this.#backing.setClock(this.now)
        return
      case 'pause':
        for (let turn = 0; turn < action.turns; turn += 1)
          await this.#scheduler.schedule(Promise.resolve(), 'pause')
        return
      case 'crash':
        await this.#scheduler.schedule(Promise.resolve(), 'crash')
        this.#crash(action.instance)
    }
  }

  #crash(instance: number): void {
    const index = instance % this.#instances.length
    this.#instances[index]?.life.end()
    this.#instances[index] = this.#boot(index)
  }

  #request(call: number, ledger: Ledger): Promise<Approval | Refusal> {
    const plan = this.plans[call]
    const { chain } = rules[plan?.rule ?? 'owner']
    return ledger.request({
      ...this.callOf(call),
      id: this.approvalId(call),
      messageId: 'message',
      args: shownArgs(call),
      terms: { chain, idempotent: plan?.idempotent ?? false },
      deadlineMs: DEADLINE_MS,
    })
  }

  async #decide(action: Extract<Action, { act: 'decide' }>, ledger: Ledger): Promise<void> {
    const { call, approved, edited } = action
    const asked: readonly Person[] = rules[this.plans[call]?.rule ?? 'owner'].deciders.flat()
    const who =
      typeof action.who === 'number' ? (asked[action.who % asked.length] ?? 'hanako') : action.who
    const by: Decider = people[who]
    const edit = edited ? { editedArgs: editedArgs(call) } : {}
    const result = await ledger.decide(this.approvalId(call), { by, approved, ...edit })
    this.history.decisions.push({ call, who, approved, edited, answeredAt: this.now, result })
  }

  /** What the bridge does before a tool: it claims, runs what it is given, and tells how it went. */
  async #runTool(action: Extract<Action, { act: 'run' }>, ledger: Ledger): Promise<void> {
    const id = this.approvalId(action.call)
    // With another call's number, an approval is used for what it was not given for.
    const call = this.callOf(action.as)
    const claimed = await ledger.claim(id, call)
    if (isRefusal(claimed)) return
    this.history.starts.push({ call: action.as, args: argsToRun(claimed), approvalId: id })
    await this.#scheduler.schedule(Promise.resolve(), 'the tool runs')
    if (action.fails) await ledger.fail(id, 'the tool threw')
    else await ledger.succeed(id, { ok: true })
  }

  /** Time passes until nothing waits, and a process that was not there before tidies up and runs what is approved. */
  async #rest(): Promise<void> {
    const { ledger } = this.#boot(0)
    // The conversation is read again after a restart, as it was shown.
    this.#rewritten.clear()
    for (let round = 0; round < 2; round += 1) {
      this.now += DEADLINE_MS + LEASE_MS
      this.#backing.setClock(this.now)
      await ledger.expireDue()
      await ledger.recover()
      for (const [call, approval] of (await this.finalStates()).entries()) {
        if (approval?.state.name === 'approved')
          await this.#runTool({ act: 'run', call, as: call, fails: false }, ledger)
      }
    }
  }

  /** Makes every call to the store a point where others may come first, and where the caller may die. */
  #watch(store: ApprovalStore, life: Life): ApprovalStore {
    const { history } = this
    const through = async <Result>(work: () => Promise<Result>): Promise<Result> => {
      await this.#scheduler.schedule(Promise.resolve(), 'store')
      await life.check()
      const result = await work()
      await life.check()
      return result
    }
    const written = async <Result>(work: () => Promise<Result>): Promise<Result> => {
      const result = await through(work)
      // What was stored may never be heard of.
      await this.#scheduler.schedule(Promise.resolve(), 'answer')
      await life.check()
      return result
    }
    return {
      now: () => through(() => store.now()),
      insert: (approval, entry, quota) =>
        written(async () => {
          const result = await store.insert(approval, entry, quota)
          if (result === 'inserted') {
            history.commits.push({ at: this.now, approval })
            history.pendings.push(countPending(history, approval))
          }
          return result
        }),
      get: (id) => through(() => store.get(id)),
      findByCall: (...given) => through(() => store.findByCall(...given)),
      replace: (transition: Transition) =>
        written(async () => {
          const isStored = await store.replace(transition)
          if (isStored) history.commits.push({ at: this.now, approval: transition.next })
          return isStored
        }),
      list: (filter) => through(() => store.list(filter)),
      due: (limit) => through(() => store.due(limit)),
      audit: (filter) => store.audit(filter),
      beat: (worker) => through(() => store.beat(worker)),
      stale: (leaseMs) => through(() => store.stale(leaseMs)),
      lockChat: (...given) => through(() => store.lockChat(...given)),
      unlockChat: (...given) => through(() => store.unlockChat(...given)),
      deleteChat: (...given) => through(() => store.deleteChat(...given)),
    }
  }
}

export function shownArgs(call: number): Record<string, unknown> {
  return { amount: 10 + call }
}

export function editedArgs(call: number): Record<string, unknown> {
  return { amount: 1, instead: 10 + call }
}

interface Instance {
  readonly life: Life
  readonly ledger: Ledger
}

/** The life of an instance: after its end, whatever it waits for never comes. */
class Life {
  #isOver = false
  #end: () => void = () => {}
  readonly ended = new Promise<void>((resolve) => {
    this.#end = resolve
  })

  end(): void {
    this.#isOver = true
    this.#end()
  }

  async check(): Promise<void> {
    if (this.#isOver) await new Promise<never>(() => {})
  }
}

function countPending({ commits }: History, { chat }: Approval): History['pendings'][number] {
  const latest = new Map(commits.map(({ approval }) => [approval.id, approval]))
  const pending = [...latest.values()].filter(({ state }) => state.name === 'requested')
  return {
    ofChat: pending.filter((other) => other.chat.chatId === chat.chatId).length,
    ofPrincipal: pending.length,
  }
}
