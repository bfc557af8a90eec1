import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'

import type { BrowserTools } from '../../../src/client/index.ts'
import type { Decision } from '../../../src/react/reading/approval.ts'
import { FakeLocks } from '../../client/support/fake-locks.ts'
import type { ChatMessage } from '../../support/chat-probe.ts'
import {
  type ChaosClientOptions,
  isMarked,
  isPending,
  replyTo,
  textOf,
  writeScript,
} from './chaos-client.ts'
import { expectedText } from './check-runs.ts'
import {
  BROWSER_KINDS,
  PAYMENT_KINDS,
  type RecordedTurn,
  recordTurn,
  type TurnKind,
} from './history.ts'
import { LoadBalancer, NETWORK_FAULTS } from './load-balancer.ts'
import { PageTab } from './page-tab.ts'
import type { Utterances } from './utterances.ts'

const TICK_MS = 60
/** How long the tabs may take after the last fault until they show what is stored. */
const MAX_WAIT_MS = 90_000
/** How soon a reply continues after a decision. A decision is recorded before its turn starts, and another message may stop that turn. */
const CONTINUED_WITHIN_MS = 3_000
const TURNS_PER_CHAT = 5
const KINDS = ['talk', 'stop', 'ask', 'pay', ...PAYMENT_KINDS, ...BROWSER_KINDS] as const
const SPOKEN_KINDS = ['talk', 'talk', 'ask', 'pay', 'top_up'] as const
/** The payments reject it. */
const WRONG_AMOUNT = -1
/** How long a browser tool runs at most. Some take longer than the timeout of `late`. */
const TOOL_MS = { locate: 600, select: 600, late: 4_000 }

/**
 * A person with a chat in one or two tabs, who writes, decides, stops, reloads, loses the network and tries again after errors. Whatever
 * happens, the tabs must come to show what is stored, and a message is stored once.
 */
export class PagePerson {
  readonly #options: ChaosClientOptions
  readonly #locks = new FakeLocks()
  #chat = 0
  #turns = 0
  #runs = 0
  #tabs: PageTab[] = []
  /** The address of the deployment. */
  #url = ''
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
    this.#url = balancer.url
    while (Date.now() < until) {
      this.#chat += 1
      this.#log = []
      try {
        for (let count = random.between(1, 2); count > 0; count -= 1)
          this.#tabs.push(await this.#open())
        for (let left = TURNS_PER_CHAT; left > 0 && Date.now() < until; left -= 1)
          if (!(await this.#act(balancer))) break
      } catch (error) {
        history.problems.push(this.#report(String(error)))
      }
      for (const tab of this.#tabs.splice(0)) tab.close()
    }
  }

  get #chatId(): string {
    return `${this.#options.name}-${this.#chat}`
  }

  async #open(): Promise<PageTab> {
    const { name: user, random } = this.#options
    const isSpoken = this.#options.utterances !== undefined
    const isHttp = this.#options.isHttp === true
    const shared = {
      isSpoken,
      isHttp,
      locks: this.#locks,
      tools: (tab: PageTab) => this.#tools(tab),
    }
    const page = { user, url: this.#url, random, log: this.#log, ...shared }
    const until = Date.now() + MAX_WAIT_MS
    for (;;)
      try {
        return await PageTab.open({ chatId: this.#chatId, ...page })
      } catch (error) {
        if (Date.now() > until) throw error
        await delay(200)
      }
  }

  /** The browser tools of a tab. Some tabs are closed during or after a run. */
  #tools(tab: PageTab): BrowserTools {
    const { random, history } = this.#options
    const chatId = this.#chatId
    const run = async (id: number, ms: number): Promise<{ run: string }> => {
      this.#runs += 1
      const name = `run-${this.#runs}`
      const recorded = { chatId, id, name, from: Date.now() }
      history.runs.push(recorded)
      tab.record(recorded)
      await delay(random.between(0, ms))
      const end = random.next()
      // A page that is closed may lose what it has not sent, such as the next message.
      const reload = async () => (id === this.#turns ? this.#reload(tab) : undefined)
      if (end < 0.2) void reload()
      else if (end < 0.4) setTimeout(() => void reload(), random.between(0, 50))
      else if (end < 0.5) throw new Error(`${name} failed.`)
      return { run: name }
    }
    return Object.fromEntries(
      BROWSER_KINDS.map((kind) => [kind, ({ id }: { id: number }) => run(id, TOOL_MS[kind])]),
    )
  }

  /** Closes a tab and opens another one. Does nothing if the tab is closed. */
  async #reload(tab: PageTab): Promise<void> {
    if (tab.isClosed) return
    tab.close()
    this.#calmSince = Date.now()
    const isLeft = (): boolean => !this.#tabs.includes(tab)
    const opened = await this.#open().catch((error: unknown) => {
      // A person who has left the chat has also lost the network.
      if (!isLeft()) this.#options.history.problems.push(this.#report(String(error)))
    })
    if (opened && isLeft()) return opened.close()
    if (opened) this.#tabs[this.#tabs.indexOf(tab)] = opened
  }

  #act(balancer: LoadBalancer): Promise<boolean> {
    const { random, utterances } = this.#options
    return utterances && random.chance(0.7)
      ? this.#speakTurn(balancer, utterances)
      : this.#turn(balancer)
  }

  /** Says something, perhaps more before the reply has ended, and clicks until all tabs show what is stored. */
  async #speakTurn(balancer: LoadBalancer, utterances: Utterances): Promise<boolean> {
    const { random } = this.#options
    const sender = await this.#pickOpen()
    const turns: RecordedTurn[] = []
    const say = async (kind: TurnKind): Promise<void> => {
      const { turn, script } = this.#record(kind, 'spoken')
      turn.hasFreeText = kind !== 'talk'
      turns.push(turn)
      await sender.speak(utterances.add(script))
      if (turn.spoken) turn.spoken.until = Date.now()
    }
    this.#calmSince = Date.now()
    const disturbed = this.#disturb(balancer, sender)
    const talk = async (): Promise<void> => {
      await say(random.pick(SPOKEN_KINDS))
      const [first] = turns
      if (!first || random.chance(0.6)) return
      await delay(random.between(0, 1_500))
      first.stops = true
      await say('talk')
    }
    const isShown = await this.#untilShown(turns, Promise.all([disturbed, talk()]))
    const isDisturbed = await disturbed
    for (const turn of turns) turn.isDisturbed = isDisturbed
    if (random.chance(0.2)) sender.hush()
    return isShown && turns.map((turn) => this.#checkStored(turn)).every(Boolean)
  }

  /** Picks a tab. One that is being reloaded is closed, and may lose what it has not sent. */
  async #pickOpen(): Promise<PageTab> {
    for (;;) {
      const open = this.#tabs.filter(({ isClosed }) => !isClosed)
      if (open.length > 0) return this.#options.random.pick(open)
      await delay(TICK_MS)
    }
  }

  /** Writes a message and records it. */
  #record(
    kind: TurnKind,
    how: 'typed' | 'spoken',
  ): { readonly turn: RecordedTurn; readonly script: string } {
    const { random, history } = this.#options
    this.#turns += 1
    const number = this.#turns
    // The amount of a payment names its turn.
    const { script, expected } = writeScript(kind, random, { id: number, amount: number })
    const chatId = this.#chatId
    const userMessageId = `${chatId}.${number}`
    const spoken = { text: script, until: Infinity }
    const message = { chatId, userMessageId, kind, expected, ...(how === 'spoken' && { spoken }) }
    return { turn: recordTurn(history, message), script }
  }

  /** Sends a message, and clicks until all tabs show the stored reply. Returns false if they do not. */
  async #turn(balancer: LoadBalancer): Promise<boolean> {
    const { random } = this.#options
    const kind = random.pick<TurnKind>(KINDS)
    const sender = await this.#pickOpen()
    const { turn, script } = this.#record(kind, 'typed')
    sender.send(turn.userMessageId, script)
    this.#calmSince = Date.now()
    const disturbed = this.#disturb(balancer, sender)
    if (kind === 'stop') await this.#stop(sender, turn)
    return (await this.#untilShown([turn], disturbed)) && this.#checkStored(turn)
  }

  async #stop(sender: PageTab, turn: RecordedTurn): Promise<void> {
    await delay(this.#options.random.between(0, 800))
    if (!sender.isBusy) return
    turn.stops = true
    // The agent may still reply to the answer to a question.
    const { turns } = this.#options.history
    const previous = turns.findLast((each) => each !== turn && each.chatId === turn.chatId)
    if (previous && !replyTo(sender.messages, turn.userMessageId)) previous.stops = true
    await sender.stop()
  }

  /** Loses the network or reloads a tab some times. The sender is not reloaded: a page that is closed may lose what it has not sent. Returns whether anything happened. */
  async #disturb(balancer: LoadBalancer, sender: PageTab): Promise<boolean> {
    const { random } = this.#options
    const count = random.pick([0, 0, 1, 2, 3])
    for (let left = count; left > 0; left -= 1) {
      await delay(random.between(0, 1_000))
      const index = random.between(0, this.#tabs.length - 1)
      const tab = this.#tabs[index]
      if (tab && tab !== sender && random.chance(0.5)) {
        await this.#reload(tab)
      } else {
        const fault = random.pick(NETWORK_FAULTS)
        this.#log.push(`${new Date().toISOString()} network: ${fault}`)
        balancer.start(fault)
        await delay(random.between(50, 1_500))
        balancer.cut()
      }
    }
    this.#calmSince = Date.now()
    return count > 0
  }

  /** Clicks until all tabs show the same as the server. Returns false if they do not for long. */
  async #untilShown(turns: readonly RecordedTurn[], disturbed: Promise<unknown>): Promise<boolean> {
    const isShown = await this.#areShown(turns, disturbed)
    for (const turn of turns) {
      turn.to = Date.now()
      if (!isShown) turn.fault = 'a tab does not show what is stored'
    }
    return isShown
  }

  async #areShown(turns: readonly RecordedTurn[], disturbed: Promise<unknown>): Promise<boolean> {
    const { history } = this.#options
    let isDisturbed = true
    void disturbed.finally(() => {
      isDisturbed = false
    })
    for (;;) {
      await delay(TICK_MS)
      const [first] = turns
      for (const tab of this.#tabs) if (first && !tab.isClosed) this.#click(tab, first)
      if (!isDisturbed && (await this.#isShown(turns)) && (await this.#isAtRest(turns))) return true
      const hasFault = isDisturbed || history.faults.some(({ to }) => to > this.#calmSince)
      if (hasFault) this.#calmSince = Date.now()
      if (Date.now() - this.#calmSince < MAX_WAIT_MS) continue
      const stored = await this.#tabs[0]?.loadStored()
      const expected = stored?.messages ?? []
      const shown = this.#tabs.map(
        (tab) =>
          `${String(tab)}: ${describe(tab.messages, expected)}, last ${JSON.stringify(tab.messages.at(-1))}`,
      )
      const differing = this.#tabs.flatMap((tab) => differences(expected, tab.messages))
      const what = `stored, running ${stored?.running}: ${JSON.stringify([expected.map(({ id }) => id), ...differing])}`
      history.problems.push(this.#report(first?.userMessageId ?? '', ...shown, what))
      return false
    }
  }

  #click(tab: PageTab, turn: RecordedTurn): void {
    const { random, history } = this.#options
    const decided = this.#decided.get(tab) ?? new Set()
    this.#decided.set(tab, decided)
    for (const approvalId of tab.asked) {
      // Some people click more than once, and some after the deadline.
      const isFirst = !decided.has(approvalId) && turn.kind !== 'hurry'
      if (!random.chance(isFirst ? 0.2 : 0.02)) continue
      const decision = this.#choose(turn)
      decided.add(approvalId)
      turn.approvalId = approvalId
      const isWrong = decision.args?.['amount'] === WRONG_AMOUNT
      history.decisions.push({ approvalId, ...decision, result: isWrong ? 'refused' : 'unknown' })
      tab.decide(approvalId, decision, random.pick(['api', 'chat']))
    }
    if (!tab.hasFailed || tab.isBusy || !random.chance(0.2)) return
    turn.isRetried = true
    tab.recover()
  }

  /** Some people give a reason, edit the arguments, or make a mistake in them. */
  #choose({ kind }: RecordedTurn): Decision {
    const { random } = this.#options
    const number = this.#turns
    if (!random.chance(0.7))
      return { approved: false, ...(random.chance(0.5) && { reason: `No ${number}.` }) }
    if (kind === 'ask') return { approved: true, payload: { nights: random.between(1, 9) } }
    if (!PAYMENT_KINDS.some((each) => each === kind) || random.chance(0.6))
      return { approved: true }
    const amount = random.chance(0.2) ? WRONG_AMOUNT : 1_000 + number
    return { approved: true, args: { to: '花子', amount } }
  }

  /** Whether nothing is left to do, and all tabs show what is stored. */
  async #isShown(turns: readonly RecordedTurn[]): Promise<boolean> {
    if (this.#tabs.some(hasWork)) return false
    const stored = await this.#tabs[0]?.loadStored()
    if (!stored || stored.running || stored.messages.some(isPending)) return false
    if (turns.some((turn) => !isSettled(turn, stored.messages, this.#calmSince))) return false
    return this.#tabs.every((tab) => isSame(tab.messages, stored.messages))
  }

  /** Whether a reply that is neither whole nor marked does not continue soon. */
  async #isAtRest(turns: readonly RecordedTurn[]): Promise<boolean> {
    const messages = this.#tabs[0]?.messages ?? []
    if (turns.every((turn) => isWholeOrMarked(turn, messages))) return true
    await delay(CONTINUED_WITHIN_MS)
    return this.#isShown(turns)
  }

  #checkStored(turn: RecordedTurn): boolean {
    const count = findMessages(turn, this.#tabs[0]?.messages ?? []).length
    if (count === 1) return true
    if (count === 0 && (turn.spoken ? this.#mayBeLost(turn) : turn.stops)) turn.fault = 'not sent'
    else this.#options.history.problems.push(this.#report(`${turn.userMessageId}: ${count} times`))
    return count === 0
  }

  /** Audio may be lost with a connection, and with the server that has the live session. */
  #mayBeLost({ isDisturbed = false, from }: RecordedTurn): boolean {
    const { faults, leaseMs } = this.#options.history
    return isDisturbed || faults.some(({ to }) => to > from - leaseMs)
  }

  /** A violation, with what happened before. */
  #report(...lines: readonly string[]): string {
    return [...lines, ...this.#log].join('\n')
  }
}

/** How long it may take until the model has understood what was said. */
const UNDERSTOOD_WITHIN_MS = 8_000

/** Whether a message is stored. One that was stopped before it reached a server is not, and audio may be lost. */
function isSettled(turn: RecordedTurn, stored: readonly ChatMessage[], calmSince: number): boolean {
  const [found] = findMessages(turn, stored)
  if (found) turn.userMessageId = found.id
  if (found) return true
  return turn.spoken
    ? Date.now() - Math.max(turn.spoken.until, calmSince) > UNDERSTOOD_WITHIN_MS
    : turn.stops
}

function isWholeOrMarked(turn: RecordedTurn, messages: readonly ChatMessage[]): boolean {
  if (turn.hasFreeText === true) return true
  const reply = replyTo(messages, turn.userMessageId)
  return reply !== undefined && (isMarked(reply) || textOf(reply) === expectedText(turn, reply))
}

function findMessages(
  { userMessageId, spoken }: RecordedTurn,
  messages: readonly ChatMessage[],
): ChatMessage[] {
  return messages.filter((message) =>
    spoken
      ? message.role === 'user' && textOf(message) === spoken.text
      : message.id === userMessageId,
  )
}

/** Whether a tab is busy, or waits for the person. */
function hasWork({ isBusy, hasFailed, asked, isClosed }: PageTab): boolean {
  return isBusy || hasFailed || asked.length > 0 || isClosed
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

/** The messages of a tab that are not like the stored ones, and the order of all. */
function describe(shown: readonly ChatMessage[], stored: readonly ChatMessage[]): string {
  return JSON.stringify([shown.map(({ id }) => id), ...differences(shown, stored)])
}

/** Summaries of the messages that are not among the others. */
function differences(
  messages: readonly ChatMessage[],
  others: readonly ChatMessage[],
): readonly Summary[] {
  const known = others.map(summarise)
  return messages
    .map(summarise)
    .filter((each) => !known.some((other) => isDeepStrictEqual(each, other)))
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
