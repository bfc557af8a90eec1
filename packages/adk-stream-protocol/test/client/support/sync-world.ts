import { setTimeout as delay } from 'node:timers/promises'

import { requestInputTool } from '@google/adk'
import { type Emulator, startEmulator } from 'gemini-emulator'

import { type AdkApi, adkApi } from '../../../src/client/index.ts'
import { defer, type Deferred } from '../../../src/shared/async.ts'
import { openSqliteStore, type Store } from '../../../src/store/index.ts'
import { StoreError } from '../../../src/store/store-error.ts'
import { isMarked, replyTo, textOf } from '../../chaos/support/chaos-client.ts'
import { LoadBalancer } from '../../chaos/support/load-balancer.ts'
import { Random } from '../../chaos/support/random.ts'
import { checkChaos } from '../../chaos/support/check-chaos.ts'
import {
  type ChaosHistory,
  emptyHistory,
  type RecordedRun,
  type RecordedTurn,
  recordTurn,
} from '../../chaos/support/history.ts'
import { type Folder, makeFolder } from '../../faults/support/folder.ts'
import { pageTools } from '../../faults/support/page-tools.ts'
import { openPaymentServer, type PaymentServer } from '../../faults/support/payment-server.ts'
import { readEffects } from '../../faults/support/person.ts'
import { LIVE_MODEL } from '../../relay/support/live-pair.ts'
import type { ChatMessage } from '../../support/chat-probe.ts'
import { findDifference, hasOpenCall } from './compare-shown.ts'
import { FakeLocks } from './fake-locks.ts'
import type { Command, Program, SentKind, TabCommand } from './sync-program.ts'
import { toolGate, writeScript } from './sync-script.ts'
import { SyncTab } from './sync-tab.ts'
import { disturb } from './tab-network.ts'

const LEASE_MS = 60_000
/** How many times `maxWaitMs` is enough for tabs that send and receive. */
const MAX_WAITS = 6
const IS_REMOVED = /is shown as undefined$/
const POLL_MS = 20

/** Commands that may remove messages, or after which no page may have them. */
const REMOVING: ReadonlySet<Command['act']> = new Set(['regenerate', 'recover', 'reload'])

export interface SyncResult {
  readonly violations: readonly string[]
  /** What was done, sent and received, in order. */
  readonly log: readonly string[]
}

export interface SyncOptions {
  /** How long nothing may be sent and received at the end, while a tab does not show what is stored. */
  readonly maxWaitMs: number
  readonly servers: number
  /** Opens the database of a server, empty or as the servers of the same program left it. Default: a SQLite file. */
  readonly openStore?: (program: string) => Promise<Store>
}

/**
 * Runs a program, ends all faults, and waits until nothing is left to do. Returns what is wrong then: everything that the tabs have not
 * come to show, and everything that was done twice, not at all, or without a decision.
 */
export async function runProgram(program: Program, options: SyncOptions): Promise<SyncResult> {
  await using world = await SyncWorld.open(program, options)
  for (const command of program.commands) await world.perform(command)
  return { violations: await world.finish(), log: world.log }
}

interface Server {
  readonly server: PaymentServer
  readonly store: Store
  readonly writes: FailingWrites
}

interface WorldParts {
  readonly folder: Folder
  readonly emulator: Emulator
  readonly model: ModelConnections
}

/** Servers on one database, the model, and the tabs of one person. */
class SyncWorld implements AsyncDisposable {
  readonly log: string[] = []
  readonly #startedAt = performance.now()
  readonly #program: Program
  readonly #options: SyncOptions
  /** Also the name of the person, and of the program. */
  readonly #chatId = `chat_${crypto.randomUUID().replaceAll('-', '_')}`
  readonly #headers = { 'x-user': this.#chatId }
  readonly #folder: Folder
  readonly #emulator: Emulator
  readonly #model: ModelConnections
  readonly #servers: Server[] = []
  readonly #closing: Promise<void>[] = []
  readonly #tabs: SyncTab[] = []
  readonly #locks = new FakeLocks()
  readonly #history: ChaosHistory = emptyHistory(LEASE_MS)
  /** The gates at which the model and browser tools wait, by name, in the order of their messages. */
  readonly #gates = new Map<string, Deferred<void>>()
  /** The messages that may be lost because their page was closed or the person stopped them. */
  readonly #mayBeLost = new Set<RecordedTurn>()
  /** The messages that a server has shown as stored. */
  readonly #seenStored = new Set<string>()
  /** The tab in which each message was written. */
  readonly #senders = new Map<RecordedTurn, SyncTab>()
  #sent = 0
  #runs = 0
  /** Whether a reply was removed: its calls are then not shown any more. */
  #isRewound = false

  private constructor(
    program: Program,
    options: SyncOptions,
    { folder, emulator, model }: WorldParts,
  ) {
    this.#program = program
    this.#options = options
    this.#folder = folder
    this.#emulator = emulator
    this.#model = model
  }

  static async open(program: Program, options: SyncOptions): Promise<SyncWorld> {
    const emulator = await startEmulator({ paceMs: 0 })
    const model = await openModelConnections(emulator)
    const world = new SyncWorld(program, options, { folder: await makeFolder(), emulator, model })
    while (world.#servers.length < options.servers) world.#servers.push(await world.#serve())
    for (const [index, plan] of program.tabs.entries()) {
      const name = `tab ${index}`
      const tab = new SyncTab({
        plan,
        chatId: world.#chatId,
        headers: world.#headers,
        serverUrl: () => world.#urlOf(plan.server),
        locks: world.#locks,
        runTool: (opened, id) => world.#runTool(opened, id),
        note: (line) => world.#note(`${name} ${line}`),
      })
      world.#tabs.push(tab)
    }
    await world.#rest()
    return world
  }

  async perform(command: Command): Promise<void> {
    if (REMOVING.has(command.act)) await this.#noteStored()
    this.#note(`# ${JSON.stringify(command)}`)
    await this.#act(command)
    if (command.pace === 'rest') await this.#rest()
    if (command.pace === 'soon') await turns(20)
  }

  /** Ends all faults, lets everything end, and checks it. */
  async finish(): Promise<string[]> {
    const { maxWaitMs } = this.#options
    this.#note('# heals')
    for (const tab of this.#tabs) tab.network.heal()
    for (const { writes } of this.#servers) writes.failing = 0
    this.#model.failing = 0
    const until = performance.now() + MAX_WAITS * maxWaitMs
    let [changedAt, before] = [performance.now(), this.#activity]
    let waitsFor: string | undefined
    do {
      this.#releaseGates(Infinity)
      this.#click()
      await delay(POLL_MS)
      waitsFor = await this.#findUnfinished()
      const isWaiting = this.#tabs.some(({ network }) => network.waiting > 0)
      if (isWaiting || this.#activity !== before) changedAt = performance.now()
      before = this.#activity
    } while (waitsFor !== undefined && performance.now() < Math.min(until, changedAt + maxWaitMs))
    await this.#collect()
    this.#settleTurns()
    return [
      ...(waitsFor === undefined ? [] : [waitsFor]),
      ...checkChaos(this.#history).filter((each) => !this.#isRewound || !IS_REMOVED.test(each)),
      ...this.#checkTexts(),
    ]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#releaseGates(Infinity)
    for (const tab of this.#tabs) tab.close()
    await Promise.all(this.#closing)
    for (const { server, store } of this.#servers) {
      await server[Symbol.asyncDispose]()
      await store.close()
    }
    await this.#model[Symbol.asyncDispose]()
    await this.#emulator.close()
    await this.#folder[Symbol.asyncDispose]()
  }

  async #act(command: Command): Promise<void> {
    switch (command.act) {
      case 'inbox':
        return this.#decideInInbox(command.approved)
      case 'continue':
        return this.#releaseGates(1)
      case 'move': {
        const { tab, server } = command
        this.#tabAt(tab).network.serverUrl = () => this.#urlOf(server)
        return
      }
      case 'replace':
        return this.#replace(command.server)
      case 'fail-writes': {
        const server = this.#servers[command.server % this.#servers.length]
        if (server) server.writes.failing = command.count
        return
      }
      case 'lose-model':
        this.#model.failing = command.count
        return
      case 'send':
      case 'decide':
      case 'stop':
      case 'regenerate':
      case 'recover':
      case 'reload':
        return this.#do(this.#tabAt(command.tab), command)
      case 'cut':
      case 'cut-after':
      case 'lose-answer':
      case 'repeat-event':
      case 'delay':
      case 'deliver':
      case 'offline':
      case 'online':
        return disturb(this.#tabAt(command.tab).network, command)
    }
  }

  async #do(tab: SyncTab, command: TabCommand): Promise<void> {
    const isIdle = tab.status === 'ready' && !tab.isBusy
    switch (command.act) {
      case 'send':
        if (isIdle) this.#send(tab, command.kind)
        else if (tab.status === 'error' && !tab.isBusy) {
          // The tab says of an earlier message that it was not sent.
          this.#excuseMessagesOf(tab)
          this.#send(tab, command.kind)
        }
        return
      case 'decide': {
        const [approvalId] = tab.asked
        if (approvalId !== undefined) this.#decide(tab, approvalId, command)
        return
      }
      case 'stop':
        for (const turn of this.#history.turns) turn.stops = true
        this.#excuseMessagesOf(tab)
        return tab.stop()
      case 'regenerate':
        if (isIdle && this.#mayRegenerate(tab)) {
          this.#isRewound = true
          tab.regenerate()
        }
        return
      case 'recover':
        this.#recover(tab)
        return
      case 'reload':
        this.#excuseMessagesOf(tab)
        await this.#recordClose(tab)
        this.#tabs[this.#tabs.indexOf(tab)] = tab.reload()
        return
    }
  }

  #tabAt(index: number): SyncTab {
    const tab = this.#tabs[index % this.#tabs.length]
    if (!tab) throw new Error('A program has a tab.')
    return tab
  }

  /** The messages of a tab that is stopped or closed may not reach a server. */
  #excuseMessagesOf(tab: SyncTab): void {
    for (const [turn, sender] of this.#senders) if (sender === tab) this.#mayBeLost.add(turn)
  }

  async #serve(): Promise<Server> {
    const store = await (this.#options.openStore?.(this.#chatId) ??
      openSqliteStore({ path: this.#folder.database }))
    const writes = failWrites(store)
    const server = await openPaymentServer({
      store,
      effects: this.#folder.effects,
      modelUrl: this.#model.url,
      ...(this.#program.live && { liveModel: LIVE_MODEL }),
      tools: [requestInputTool, ...pageTools()],
      disconnectGraceMs: 600_000,
      limits: { leaseMs: LEASE_MS, sweepMs: 100 },
    })
    return { server, store, writes }
  }

  #urlOf(server: number): string {
    return this.#servers[server % this.#servers.length]?.server.url ?? ''
  }

  async #replace(server: number): Promise<void> {
    const index = server % this.#servers.length
    const before = this.#servers[index]
    this.#servers[index] = await this.#serve()
    if (before) this.#closing.push(this.#close(before))
  }

  async #close({ server, store }: Server): Promise<void> {
    await server.bridge.close({ drainMs: 120_000 })
    await server[Symbol.asyncDispose]()
    await store.close()
    this.#note('a server has closed')
  }

  #send(tab: SyncTab, kind: SentKind): void {
    this.#sent += 1
    const { script, expected, turnKind, gates } = writeScript(kind, this.#sent)
    const userMessageId = `${this.#chatId}.${this.#sent}`
    // A new message may end what an earlier one waits for.
    for (const turn of this.#history.turns) turn.stops = true
    const turn = recordTurn(this.#history, {
      chatId: this.#chatId,
      userMessageId,
      kind: turnKind,
      expected,
    })
    // A live model may say anything about a result that is late.
    turn.hasFreeText = this.#program.live
    this.#senders.set(turn, tab)
    for (const gate of gates) this.#gates.set(gate, defer())
    tab.send(userMessageId, script)
  }

  #decide(
    tab: SyncTab,
    approvalId: string,
    { approved, by }: { readonly approved: boolean; readonly by: 'chat' | 'api' },
  ): void {
    const decision = tab.decide(approvalId, approved, by)
    this.#history.decisions.push({ approvalId, ...decision, result: 'unknown' })
  }

  async #decideInInbox(approved: boolean): Promise<void> {
    const api = this.#api(0)
    const [pending] = await api.listApprovals()
    if (!pending) return
    const { id: approvalId, kind } = pending
    const isQuestion = kind !== undefined
    const decision = { approved, ...(approved && isQuestion && { payload: { nights: 2 } }) }
    this.#history.decisions.push({ approvalId, ...decision, result: 'unknown' })
    await api.decide(approvalId, decision).catch((error: unknown) => this.#note(String(error)))
  }

  /** Whether a new reply makes no call of a browser tool: its runs could not be told apart. */
  #mayRegenerate({ messages }: SyncTab): boolean {
    const last = messages.findLast(({ role }) => role === 'user')
    const turn = this.#history.turns.find(({ userMessageId }) => userMessageId === last?.id)
    return turn !== undefined && turn.kind !== 'locate' && turn.kind !== 'select'
  }

  async #runTool(tab: SyncTab, id: number): Promise<{ run: string }> {
    this.#runs += 1
    const name = `run-${this.#runs}`
    const run: RecordedRun = { chatId: this.#chatId, id, name, from: Date.now() }
    this.#history.runs.push(run)
    this.#runsOf(tab).push(run)
    this.#note(`tab ${this.#tabs.indexOf(tab)} runs the tool ${id} as ${name}`)
    await this.#gates.get(toolGate(id))?.promise
    return { run: name }
  }

  readonly #runsByTab = new WeakMap<SyncTab, RecordedRun[]>()

  #runsOf(tab: SyncTab): RecordedRun[] {
    const runs = this.#runsByTab.get(tab) ?? []
    this.#runsByTab.set(tab, runs)
    return runs
  }

  /** Records which runs of a tab that is about to close have their results on a server. */
  async #recordClose(tab: SyncTab): Promise<void> {
    const runs = this.#runsOf(tab)
    if (runs.length === 0) return
    const { messages } = await this.#api(0).loadChat(this.#chatId)
    for (const run of runs) {
      run.isAcknowledged = JSON.stringify(messages).includes(`"${run.name}"`)
      run.closedAt = Date.now()
    }
  }

  /** Releases the next gates. */
  #releaseGates(count: number): void {
    for (const [name, gate] of [...this.#gates].slice(0, count)) {
      this.#note(`releases ${name}`)
      this.#gates.delete(name)
      this.#emulator.release(name)
      gate.resolve()
    }
  }

  /** Decides what is open, and tries again where something has failed. */
  #click(): void {
    const { approves: approved } = this.#program
    for (const tab of this.#tabs) {
      const open = tab.asked.find((approvalId) => !tab.decided.has(approvalId))
      if (open !== undefined) this.#decide(tab, open, { approved, by: 'chat' })
      if (!tab.isRefused) this.#recover(tab)
    }
  }

  #recover(tab: SyncTab): void {
    if (tab.status !== 'error' || tab.isBusy) return
    // A failed reply is replaced.
    this.#isRewound = true
    tab.recover()
  }

  /** Returns what is not as it should be at the end, or undefined. */
  async #findUnfinished(): Promise<string | undefined> {
    for (const [index, tab] of this.#tabs.entries()) {
      const hasFailed = tab.status === 'error' && !tab.isRefused
      if (tab.isBusy || hasFailed) return `tab ${index} is not ready: ${String(tab)}`
      if (tab.asked.length > 0) return `tab ${index} asks for ${tab.asked.join()}: ${String(tab)}`
    }
    const { messages, running } = await this.#api(0).loadChat(this.#chatId)
    if (running) return 'a server says that a turn runs'
    if (messages.some(hasOpenCall)) return `a call is open: ${JSON.stringify(messages.at(-1))}`
    for (const turn of this.#history.turns) {
      const { userMessageId } = turn
      const mayBeLost = this.#mayBeLost.has(turn) && !this.#seenStored.has(userMessageId)
      if (!messages.some(({ id }) => id === userMessageId) && !mayBeLost)
        return `${userMessageId} is not stored`
    }
    for (const [index, tab] of this.#tabs.entries()) {
      const difference = findDifference(tab.messages, messages)
      if (difference) return `tab ${index} (${String(tab)}) ${difference}`
    }
    return undefined
  }

  /** Reads what the servers have stored. */
  async #collect(): Promise<void> {
    const history = this.#history
    history.effects = readEffects(this.#folder.effects)
    const [first] = this.#servers
    const audit = []
    if (first)
      for await (const record of first.store.approvals.audit({ after: 0 }))
        if (record.chat.chatId === this.#chatId) audit.push(record)
    history.audit = audit
    history.chats = new Map([[this.#chatId, await this.#readViews()]])
    for (const turn of history.turns) turn.to = Date.now()
  }

  /** Reads the chat on each server, when none of them knows of a turn that the others do not: a running turn is left out. */
  async #readViews(): Promise<ChatMessage[][]> {
    const until = performance.now() + this.#options.maxWaitMs
    for (;;) {
      const servers = [...this.#servers.keys()]
      const loaded = await Promise.all(
        servers.map((index) => this.#api(index).loadChat(this.#chatId)),
      )
      const isCalm =
        loaded.every(({ running }) => !running) &&
        new Set(loaded.map(({ position }) => position)).size === 1
      if (isCalm || performance.now() > until) return loaded.map(({ messages }) => [...messages])
      await delay(POLL_MS)
    }
  }

  /** A message that was not sent has no reply, and the model may refuse what was sent while its calls waited. */
  #settleTurns(): void {
    const messages = this.#stored
    for (const turn of this.#history.turns) {
      if (!messages.some(({ id }) => id === turn.userMessageId)) turn.fault = 'not sent'
      const reply = replyTo(messages, turn.userMessageId)
      if (reply && isMarked(reply)) turn.stops = true
    }
  }

  get #stored(): readonly ChatMessage[] {
    return this.#history.chats.get(this.#chatId)?.[0] ?? []
  }

  #checkTexts(): string[] {
    const sent = new Set(this.#history.turns.map(({ userMessageId }) => userMessageId))
    return this.#stored
      .filter(({ id, role }) => role === 'user' && !sent.has(id))
      .map((message) => `a message is stored that nobody sent: ${textOf(message)}`)
  }

  /** Notes which messages are stored: nothing that follows may lose one. */
  async #noteStored(): Promise<void> {
    const { messages } = await this.#api(0).loadChat(this.#chatId)
    for (const { id, role } of messages) if (role === 'user') this.#seenStored.add(id)
  }

  #api(server: number): AdkApi {
    return adkApi({ url: this.#urlOf(server), headers: this.#headers })
  }

  /** Waits until nothing is sent and received for a moment. Only the pace of a program depends on it. */
  async #rest(): Promise<void> {
    const until = performance.now() + 2_000
    let before = this.#activity
    for (let quiet = 0; quiet < 4 && performance.now() < until; quiet += 1) {
      await delay(8)
      if (this.#activity !== before) quiet = 0
      before = this.#activity
    }
  }

  /** Counts what all tabs have sent and received. */
  get #activity(): number {
    return this.#tabs.reduce((sum, { network }) => sum + network.activity, 0)
  }

  #note(line: string): void {
    this.log.push(`${Math.round(performance.now() - this.#startedAt)} ${line}`)
  }
}

async function turns(count: number): Promise<void> {
  for (let left = count; left > 0; left -= 1) await new Promise(setImmediate)
}

/** What passes the connections of the servers on to the model. */
interface ModelConnections extends AsyncDisposable {
  readonly url: string
  /** How many of the next connections fail. */
  failing: number
}

async function openModelConnections({ baseUrl }: Emulator): Promise<ModelConnections> {
  const findModel = (): string[] => {
    if (connections.failing === 0) return [baseUrl]
    connections.failing -= 1
    return []
  }
  const balancer = await LoadBalancer.open(findModel, new Random(0))
  const connections = {
    url: balancer.url,
    failing: 0,
    [Symbol.asyncDispose]: () => balancer[Symbol.asyncDispose](),
  }
  return connections
}

interface FailingWrites {
  /** How many of the next writes fail. */
  failing: number
}

/** Lets writes of a store fail as if its database was away. */
function failWrites({ sessions, approvals }: Store): FailingWrites {
  const writes = { failing: 0 }
  const append = sessions.appendEvent.bind(sessions)
  const replaceAll = approvals.replaceAll.bind(approvals)
  const check = (): void => {
    if (writes.failing === 0) return
    writes.failing -= 1
    throw new StoreError('unavailable', 'The database is away.')
  }
  sessions.appendEvent = async (request) => {
    check()
    return append(request)
  }
  approvals.replaceAll = async (transitions) => {
    check()
    return replaceAll(transitions)
  }
  return writes
}
