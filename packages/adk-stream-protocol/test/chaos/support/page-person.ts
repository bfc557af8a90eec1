import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'

import type { ChatMessage } from '../../support/chat-probe.ts'
import { type ChaosClientOptions, textOf, writeScript } from './chaos-client.ts'
import { type RecordedTurn, recordTurn, type TurnKind } from './history.ts'
import { LoadBalancer, NETWORK_FAULTS } from './load-balancer.ts'
import { PageTab } from './page-tab.ts'

const TICK_MS = 60
/** How long the tabs may take after the last fault until they show what is stored. */
const PATIENCE_MS = 90_000
const TURNS_PER_CHAT = 5
const KINDS = ['talk', 'talk', 'stop', 'pay', 'pay', 'top_up'] as const

/**
 * A person with a chat in one or two tabs, who writes, decides, stops, reloads, loses the network and tries again after errors. Whatever
 * happens, the tabs must come to show what is stored, and a message is stored once.
 */
export class PagePerson {
  readonly #options: ChaosClientOptions
  #chat = 0
  #turns = 0
  #tabs: PageTab[] = []
  #log: string[] = []
  /** The approvals that were decided in each tab. */
  #decided = new WeakMap<PageTab, Set<string>>()
  /** When the last fault ended. */
  #calmSince = 0

  constructor(options: ChaosClientOptions) {
    this.#options = options
  }

  /** Uses one chat after the other until the time has come. */
  async run(until: number): Promise<void> {
    const { urls, random, history } = this.#options
    await using balancer = await LoadBalancer.open(urls, random.fork())
    while (Date.now() < until) {
      this.#chat += 1
      this.#log = []
      try {
        for (let count = random.between(1, 2); count > 0; count -= 1)
          this.#tabs.push(await this.#open(balancer.url))
        for (let left = TURNS_PER_CHAT; left > 0 && Date.now() < until; left -= 1)
          if (!(await this.#turn(balancer))) break
      } catch (error) {
        history.problems.push(this.#report(String(error)))
      }
      for (const tab of this.#tabs.splice(0)) tab.close()
    }
  }

  get #chatId(): string {
    return `${this.#options.name}-${this.#chat}`
  }

  async #open(url: string): Promise<PageTab> {
    const { name: user, random } = this.#options
    const until = Date.now() + PATIENCE_MS
    for (;;)
      try {
        return await PageTab.open({ chatId: this.#chatId, user, url, random, log: this.#log })
      } catch (error) {
        if (Date.now() > until) throw error
        await delay(200)
      }
  }

  /** Sends a message, and clicks until all tabs show the stored reply. Returns false if they do not. */
  async #turn(balancer: LoadBalancer): Promise<boolean> {
    const { random, history } = this.#options
    this.#turns += 1
    const number = this.#turns
    const kind = random.pick<TurnKind>(KINDS)
    // The amount of a payment names its turn.
    const { script, expected } = writeScript(kind, random, { id: number, amount: number })
    const chatId = this.#chatId
    const userMessageId = `${chatId}.${number}`
    const turn = recordTurn(history, { chatId, userMessageId, kind, expected })
    const sender = random.pick(this.#tabs)
    sender.send(turn.userMessageId, script)
    this.#calmSince = Date.now()
    const disturbed = this.#disturb(balancer, sender)
    if (kind === 'stop') await this.#stop(sender, turn)
    const isShown = await this.#untilShown(turn, disturbed)
    turn.to = Date.now()
    if (!isShown) turn.fault = 'a tab does not show what is stored'
    return isShown && this.#checkStored(turn)
  }

  async #stop(sender: PageTab, turn: RecordedTurn): Promise<void> {
    await delay(this.#options.random.between(0, 800))
    if (!sender.isBusy) return
    turn.stops = true
    await sender.stop()
  }

  /** Loses the network or reloads a tab some times. The sender is not reloaded: a page that is closed may lose what it has not sent. */
  async #disturb(balancer: LoadBalancer, sender: PageTab): Promise<void> {
    const { random } = this.#options
    for (let left = random.pick([0, 0, 1, 2, 3]); left > 0; left -= 1) {
      await delay(random.between(0, 1_000))
      const index = random.between(0, this.#tabs.length - 1)
      const tab = this.#tabs[index]
      if (tab && tab !== sender && random.chance(0.5)) {
        tab.close()
        this.#tabs[index] = await this.#open(balancer.url)
      } else {
        const fault = random.pick(NETWORK_FAULTS)
        this.#log.push(`${new Date().toISOString()} network: ${fault}`)
        balancer.start(fault)
        await delay(random.between(50, 1_500))
        balancer.cut()
      }
    }
    this.#calmSince = Date.now()
  }

  /** Clicks until all tabs show the same as the server. Returns false if they do not for long. */
  async #untilShown(turn: RecordedTurn, disturbed: Promise<void>): Promise<boolean> {
    const { history } = this.#options
    let isDisturbed = true
    void disturbed.finally(() => {
      isDisturbed = false
    })
    for (;;) {
      await delay(TICK_MS)
      for (const tab of this.#tabs) this.#click(tab, turn)
      if (!isDisturbed && (await this.#isShown(turn))) return true
      const hasFault = isDisturbed || history.faults.some(({ to }) => to > this.#calmSince)
      if (hasFault) this.#calmSince = Date.now()
      if (Date.now() - this.#calmSince < PATIENCE_MS) continue
      const stored = await this.#tabs[0]?.loadStored()
      const shown = this.#tabs.map((tab) => `${String(tab)}: ${describe(tab.messages)}`)
      const what = `stored, running ${stored?.running}: ${describe(stored?.messages ?? [])}`
      history.problems.push(this.#report(turn.userMessageId, ...shown, what))
      return false
    }
  }

  #click(tab: PageTab, turn: RecordedTurn): void {
    const { random, history } = this.#options
    const decided = this.#decided.get(tab) ?? new Set()
    this.#decided.set(tab, decided)
    for (const approvalId of tab.asked) {
      // Some people click more than once.
      if (!random.chance(decided.has(approvalId) ? 0.02 : 0.2)) continue
      const approved = random.chance(0.7)
      decided.add(approvalId)
      turn.approvalId = approvalId
      history.decisions.push({ approvalId, approved, result: 'unknown' })
      if (approved) tab.approve(approvalId)
      else tab.deny(approvalId)
    }
    if (tab.hasFailed && !tab.isBusy && random.chance(0.2)) tab.recover()
  }

  /** Whether nothing is left to do, and all tabs show what is stored. */
  async #isShown(turn: RecordedTurn): Promise<boolean> {
    if (this.#tabs.some(hasWork)) return false
    const stored = await this.#tabs[0]?.loadStored()
    if (!stored || stored.running || stored.messages.some(isUndecided)) return false
    // A message that was stopped before it reached a server is not stored.
    const isStored = stored.messages.some(({ id }) => id === turn.userMessageId)
    if (!isStored && !turn.stops) return false
    return this.#tabs.every((tab) => isSame(tab.messages, stored.messages))
  }

  #checkStored(turn: RecordedTurn): boolean {
    const shown = this.#tabs[0]?.messages ?? []
    const count = shown.filter(({ id }) => id === turn.userMessageId).length
    if (count === 1) return true
    if (count === 0 && turn.stops) turn.fault = 'not sent'
    else this.#options.history.problems.push(this.#report(`${turn.userMessageId}: ${count} times`))
    return count === 0
  }

  /** A violation, with what happened before. */
  #report(...lines: readonly string[]): string {
    return [...lines, ...this.#log].join('\n')
  }
}

/** Whether a tab is busy, or waits for the person. */
function hasWork({ isBusy, hasFailed, asked }: PageTab): boolean {
  return isBusy || hasFailed || asked.length > 0
}

/** Whether a tab shows what is stored. Of a stopped reply, it shows what it had read. */
function isSame(shown: readonly ChatMessage[], stored: readonly ChatMessage[]): boolean {
  if (shown.length !== stored.length) return false
  return stored.every((message, index) => {
    const expected = summarise(message)
    const { text, ...seen } = summarise(shown[index])
    const isRead = expected.stopped ? expected.text.startsWith(text) : expected.text === text
    return isRead && isDeepStrictEqual({ ...seen, text: expected.text }, expected)
  })
}

function isUndecided({ parts }: ChatMessage): boolean {
  return parts.some(({ state }) => state?.startsWith('approval-') === true)
}

function describe(messages: readonly ChatMessage[]): string {
  return JSON.stringify(messages.slice(-2).map(summarise))
}

interface Summary {
  readonly id: string
  readonly role: string
  readonly text: string
  readonly calls: readonly unknown[]
  readonly stopped: boolean
  readonly error: string | undefined
}

const NO_MESSAGE: ChatMessage = { id: '', role: '', parts: [] }

/** What a person sees of a message. A denied call may be shown as a failed one. */
function summarise(message: ChatMessage = NO_MESSAGE): Summary {
  const { id, role, parts, metadata } = message
  const { stopped = false, error } = (metadata ?? {}) as {
    stopped?: boolean
    error?: { code: string }
  }
  const calls = parts
    .filter(({ toolCallId }) => toolCallId !== undefined)
    .map(({ toolCallId, state, output }) => [toolCallId, state?.replace('denied', 'error'), output])
  return { id, role, text: textOf(message), calls, stopped, error: error?.code }
}
