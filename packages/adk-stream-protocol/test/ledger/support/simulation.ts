import type { Scheduler } from 'fast-check'

import type { ApprovalStore } from '../../../src/approvals/approval-store.ts'
import type { Approval } from '../../../src/approvals/approval.ts'
import { isRefusal, type Refusal } from '../../../src/approvals/approval.ts'
import type { AuditRecord } from '../../../src/approvals/audit-entry.ts'
import { type Decider } from '../../../src/approvals/deciders.ts'
import type { Call } from '../../../src/approvals/digest.ts'
import type { Ledger, LedgerOptions } from '../../../src/approvals/ledger.ts'
import { argsToRun, type Decision } from '../../../src/approvals/next-approval.ts'
import { CallKinds } from '../../../src/calls/call-kind.ts'
import { INPUT_KIND, toInputTerms } from '../../../src/calls/input-kind.ts'
import { settleQuestions } from '../../../src/server/chats/turns/question-answers.ts'
import {
  DEADLINE_MS,
  LEASE_MS,
  QUOTA,
  answerOf,
  editedArgs,
  people,
  rules,
  shownArgs,
  type Action,
  type CallPlan,
  type History,
  type Person,
  type Program,
} from './plan.ts'
import { Life, watchStore } from './watched-store.ts'

export interface Backing {
  readonly stores: readonly ApprovalStore[]
  readonly appName: string
  readonly start: number
  /** Sets the wall clock and the lease clock. */
  setClocks(at: number, leaseAt: number): void
}

/** The terms of a sign-in that the ledger reads. */
const SIGN_IN = { kind: 'sign-in', answeredBy: 'server' } as const

/** Creates a ledger, correct or faulty, for an instance. */
export type MakeLedger = (
  options: LedgerOptions,
  simulation: LedgerSimulation,
  instance: number,
) => Ledger

export class LedgerSimulation {
  readonly history: History = {
    commits: [],
    signs: [],
    pendings: [],
    requests: [],
    decisions: [],
    withdrawals: [],
    starts: [],
  }
  readonly plans: readonly CallPlan[]
  now: number
  /** The latest time that the wall clock has shown. */
  latest: number
  leaseNow: number
  readonly #backing: Backing
  readonly #scheduler: Scheduler
  readonly #makeLedger: MakeLedger
  readonly #instances: Instance[]
  readonly #rewritten = new Set<number>()
  #resting = false
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
    this.latest = backing.start
    this.leaseNow = backing.start
    this.#setClocks(backing.start, 0)
    this.#instances = backing.stores.map((_, index) => this.#boot(index))
  }

  /** Runs the lanes concurrently, one for each instance and one for the environment, until everything is idle. */
  async run({ opening, lanes, chaos }: Program): Promise<void> {
    await this.#scheduler.waitFor(this.#runLane(opening, 0))
    const all = lanes.map((lane, index) => this.#runLane(lane, index))
    await this.#scheduler.waitFor(Promise.all([...all, this.#runLane(chaos, 0)]))
    await this.#scheduler.waitFor(this.#rest())
  }

  /** Lets all other lanes run first. */
  async pass(what: string): Promise<void> {
    await this.#scheduler.schedule(Promise.resolve(), what)
  }

  /** The arguments as the conversation has them now. They may change without the ledger. */
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
    return Promise.all(this.plans.map(async (_, call) => store?.get(this.approvalId(call))))
  }

  audit(): AsyncIterable<AuditRecord> | readonly AuditRecord[] {
    const [store] = this.#backing.stores
    return store?.audit({ appName: this.#backing.appName }) ?? []
  }

  #boot(index: number): Instance {
    const store = this.#backing.stores[index]
    if (store === undefined) throw new Error(`no store ${index}`)
    this.#workers += 1
    const life = new Life()
    const { appName } = this.#backing
    const worker = `${appName} worker ${this.#workers}`
    const watched = watchStore(store, { life, worker }, this)
    const options = { store: watched, appName, worker, quota: QUOTA, leaseMs: LEASE_MS }
    return { life, ledger: this.#makeLedger(options, this, index) }
  }

  async #runLane(lane: readonly Action[], index: number): Promise<void> {
    for (const action of lane) {
      const instance = this.#instances[index]
      if (instance === undefined) continue
      // An instance that is killed leaves its work as it is. Its successor continues with the next action.
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
      case 'withdraw':
        return this.#withdraw(action, ledger)
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
        return ledger.heartbeat()
      case 'rewrite':
        await this.pass('rewrite')
        // Work that an instance had started when it was killed may arrive as late as this.
        if (!this.#resting) this.#rewritten.add(action.call)
        return
      case 'wait':
        await this.pass('wait')
        this.#setClocks(this.now + action.ms, action.ms)
        return
      case 'jump':
        await this.pass('jump')
        this.#setClocks(this.now + action.ms, 0)
        return
      case 'pause':
        for (let turn = 0; turn < action.turns; turn += 1) await this.pass('pause')
        return
      case 'crash':
        await this.pass('crash')
        this.#crash(action.instance)
    }
  }

  /** Sets the wall clock after some time. */
  #setClocks(now: number, passedMs: number): void {
    this.now = now
    this.latest = Math.max(this.latest, now)
    this.leaseNow += passedMs
    this.#backing.setClocks(this.now, this.leaseNow)
  }

  #crash(instance: number): void {
    const index = instance % this.#instances.length
    this.#instances[index]?.life.end()
    this.#instances[index] = this.#boot(index)
  }

  #request(call: number, ledger: Ledger): Promise<Approval | Refusal> {
    const plan = this.plans[call]
    const { chain } = rules[plan?.rule ?? 'owner']
    const terms = { chain, idempotent: plan?.idempotent ?? false, deadlineMs: DEADLINE_MS }
    const { deadlineMs, ...asked } =
      plan?.kind === 'input' ? toInputTerms(terms, { message: 'How many?' }) : terms
    return ledger.request({
      ...this.callOf(call),
      id: this.approvalId(call),
      messageId: 'message',
      args: shownArgs(call),
      terms: { ...asked, ...(plan?.kind === 'sign-in' && SIGN_IN) },
      deadlineMs,
    })
  }

  async #decide(action: Extract<Action, { act: 'decide' }>, ledger: Ledger): Promise<void> {
    const { call, approved, edited, claims = false } = action
    const who = this.#personOf(action)
    const by: Decider = people[who]
    const decision = { by, approved, ...this.#contentOf(call, who, edited) }
    const id = this.approvalId(call)
    const claimable = claims && this.plans[call]?.kind !== 'input'
    const known = claimable ? await ledger.get(id) : undefined
    if (known) return this.#decideAndRun(known, { ...action, who }, decision, ledger)
    const result = await ledger.decide(id, decision)
    this.history.decisions.push({ call, who, approved, edited, answeredAt: this.latest, result })
  }

  /** Returns what a decision contains besides yes or no. */
  #contentOf(call: number, who: Person, edited: boolean): Partial<Decision> {
    switch (this.plans[call]?.kind) {
      case 'input':
        return { payload: answerOf(call, who), ...(edited && { editedArgs: editedArgs(call) }) }
      case 'sign-in':
        return edited ? { byServer: true } : {}
      case undefined:
        return edited ? { editedArgs: editedArgs(call) } : {}
    }
  }

  /** Decides, and runs the call if the decision completes its approval, as the bridge does. */
  async #decideAndRun(
    known: Approval,
    { call, who, approved, edited }: Extract<Action, { act: 'decide' }> & { readonly who: Person },
    decision: Decision,
    ledger: Ledger,
  ): Promise<void> {
    const steps = await ledger.decideAndClaim(known, decision, this.callOf(call))
    const result = isRefusal(steps) ? steps : steps.decided
    this.history.decisions.push({ call, who, approved, edited, answeredAt: this.latest, result })
    if (!isRefusal(steps) && steps.claimed)
      await this.#runClaimed(steps.claimed, { call, fails: false }, ledger)
  }

  async #withdraw(action: Extract<Action, { act: 'withdraw' }>, ledger: Ledger): Promise<void> {
    const { call } = action
    const who = this.#personOf(action)
    const result = await ledger.withdraw(this.approvalId(call), people[who])
    this.history.withdrawals.push({ call, who, result })
  }

  /** Returns the person of an action: by name, or one of the eligible people. */
  #personOf({ call, who }: { readonly call: number; readonly who: Person | number }): Person {
    if (typeof who !== 'number') return who
    const asked: readonly Person[] = rules[this.plans[call]?.rule ?? 'owner'].deciders.flat()
    return asked[who % asked.length] ?? 'hanako'
  }

  /** Does what the bridge does before a tool: claims the call, runs it, and records its outcome. */
  async #runTool(action: Extract<Action, { act: 'run' }>, ledger: Ledger): Promise<void> {
    const id = this.approvalId(action.call)
    if (this.plans[action.call]?.kind === 'input') return this.#report(action.call, ledger)
    // With the number of another call, the approval is used for a different call.
    const call = this.callOf(action.as)
    const claimed = await ledger.claim(id, call)
    if (isRefusal(claimed)) return
    await this.#runClaimed(claimed, { call: action.as, fails: action.fails }, ledger)
  }

  /** Gives the answer to a question to the agent, as a turn of the bridge does. No tool runs. */
  async #report(index: number, ledger: Ledger): Promise<void> {
    const { chat, toolCallId: id, toolName: name } = this.callOf(index)
    const content = { role: 'user', parts: [{ functionResponse: { id, name } }] }
    await settleQuestions({ ledger, kinds: new CallKinds([INPUT_KIND]) }, chat, content)
  }

  async #runClaimed(
    claimed: Approval,
    { call, fails }: { readonly call: number; readonly fails: boolean },
    ledger: Ledger,
  ): Promise<void> {
    const { id } = claimed
    this.history.starts.push({ call, args: argsToRun(claimed), approvalId: id })
    await this.pass('the tool runs')
    if (fails) await ledger.fail(id, 'the tool threw')
    else await ledger.succeed(id, { ok: true })
  }

  /** Lets time pass until nothing is pending. A new process then recovers and runs approved calls. */
  async #rest(): Promise<void> {
    const { ledger } = this.#boot(0)
    // The conversation is read again after a restart, as it was shown.
    this.#resting = true
    this.#rewritten.clear()
    for (let round = 0; round < 2; round += 1) {
      this.#setClocks(this.latest + DEADLINE_MS + LEASE_MS, DEADLINE_MS + LEASE_MS)
      await ledger.expireDue()
      await ledger.recover()
      for (const [call, approval] of (await this.finalStates()).entries()) {
        if (approval?.state.name === 'approved')
          await this.#runTool({ act: 'run', call, as: call, fails: false }, ledger)
      }
    }
  }
}

interface Instance {
  readonly life: Life
  readonly ledger: Ledger
}
