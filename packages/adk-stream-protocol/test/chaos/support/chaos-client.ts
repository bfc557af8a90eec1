import { setTimeout as delay } from 'node:timers/promises'

import { type Answered, type Asked, Person } from '../../faults/support/person.ts'
import { Stream } from '../../relay/support/servers.ts'
import type { ChatMessage } from '../../support/chat-probe.ts'
import {
  type ChaosHistory,
  isBrowserKind,
  type RecordedTurn,
  recordTurn,
  type TurnKind,
} from './history.ts'
import type { Random } from './random.ts'
import type { Utterances } from './utterances.ts'

export interface ChaosClientOptions {
  readonly name: string
  readonly history: ChaosHistory
  readonly random: Random
  /** The addresses at which servers serve now. */
  readonly urls: () => readonly string[]
  /** Where people with pages say things. Default: they do not speak. */
  readonly utterances?: Utterances
  /** Whether the tabs of the person use no sockets. Default false. */
  readonly isHttp?: boolean
}

/** How long a client reads nothing before it tries another server. */
const IDLE_MS = 1_500
const TIMEOUT_MS = 10_000
const POLL_MS = 100
/** How long a client waits for anything before it reports a fault. */
const MAX_WAIT_MS = 90_000
const TURNS_PER_CHAT = 8

/** The tool with which the model asks a person. */
export const QUESTION = 'adk_request_input'
const ANSWER_SCHEMA = {
  type: 'object',
  properties: { nights: { type: 'integer' } },
  required: ['nights'],
}

const ENDS = new Set(['finish', 'abort', 'error'])
const FINAL = new Set(['succeeded', 'failed', 'unknown', 'denied', 'expired', 'cancelled'])

class Stuck extends Error {}

/**
 * A client without a server of its own: every request goes to any of them, and it changes servers while it reads. What it does and
 * sees is recorded.
 */
export class ChaosClient {
  readonly #options: ChaosClientOptions
  #chat = 0
  #turns = 0

  constructor(options: ChaosClientOptions) {
    this.#options = options
  }

  /** Sends one message after the other until the time has come, and ends with a complete reply. */
  async run(until: number): Promise<void> {
    while (Date.now() < until) await this.#turn()
  }

  get #chatId(): string {
    return `${this.#options.name}-${this.#chat}`
  }

  /** The same person at any server. */
  #person(): Person {
    const { name, urls, random } = this.#options
    const serving = urls()
    // While no server serves, requests fail.
    const url = serving.length === 0 ? 'http://127.0.0.1:1' : random.pick(serving)
    return new Person(url, { user: name, chatId: this.#chatId, timeoutMs: TIMEOUT_MS })
  }

  async #turn(): Promise<void> {
    const { random, history } = this.#options
    const kind = random.pick<TurnKind>(['talk', 'talk', 'talk', 'stop', 'pay', 'pay', 'top_up'])
    const { script, expected } = writeScript(kind, random, { id: this.#turns, amount: 50 })
    const chatId = this.#chatId
    const userMessageId = crypto.randomUUID()
    const turn = recordTurn(history, { chatId, userMessageId, kind, expected })
    this.#turns += 1
    try {
      const isKnown = await this.#send(turn, script)
      if (isKnown && (kind === 'pay' || kind === 'top_up')) await this.#decide(turn)
      if (isKnown) await this.#settle(turn)
      // It is not known whether the message was taken. If it arrives later, it must not disturb another turn.
      else turn.fault = 'not sent'
      if (!isKnown || this.#turns % TURNS_PER_CHAT === 0) this.#chat += 1
    } catch (error) {
      turn.fault = error instanceof Stuck ? `stuck: ${error.message}` : String(error)
      this.#chat += 1
    }
    turn.to = Date.now()
  }

  /** Sends the message and reads its reply. Returns whether the conversation has the message. */
  async #send(turn: RecordedTurn, script: string): Promise<boolean> {
    const response = await this.#person()
      .begin(script, turn.userMessageId)
      .catch(() => undefined)
    if (response?.status === 200) await this.#follow(turn, Stream.read(response))
    else await response?.text().catch(() => undefined)
    return this.#poll('the message is stored', async () => {
      const view = await this.#view()
      if (view === undefined) return undefined
      if (view.messages.some(({ id }) => id === turn.userMessageId)) return true
      return view.running ? undefined : false
    })
  }

  /** Reads a turn to its end, on other servers in between. */
  async #follow(turn: RecordedTurn, first: Stream): Promise<void> {
    const { random } = this.#options
    const stopsAfter = turn.kind === 'stop' ? random.between(1, 6) : Infinity
    let stream: Stream | undefined = first
    for (let moves = 0; stream; moves += 1) {
      const before = stream.chunks.length
      await Promise.race([stream.next(), delay(IDLE_MS)])
      const { chunks, text } = stream
      if (text.length > turn.seen.length) {
        turn.seen = text
        turn.seenIn = stream.message.id
      }
      const last = chunks.at(-1)
      for (const chunk of chunks)
        if (chunk.type === 'tool-approval-request') turn.approvalId = chunk.approvalId
      if (last && ENDS.has(last.type)) {
        turn.read = stream.message
        return
      }
      if (moves === stopsAfter) await this.#stop(turn)
      const isSilent = chunks.length === before
      if (!isSilent && !random.chance(0.5)) continue
      stream.leave()
      stream = await this.#reopen()
    }
  }

  /** Continues to read the running turn of the chat on any server. Returns undefined if no turn runs. */
  async #reopen(): Promise<Stream | undefined> {
    return this.#poll('a turn can be read', async () => {
      const stream = await Stream.openOnce(this.#person(), {
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      if (stream.status === 200) return stream
      stream.leave()
      if (stream.status !== 204) return undefined
      // The turn may have ended, or the server may not know it yet.
      return (await this.#view())?.running === false ? 'none' : undefined
    }).then((found) => (found === 'none' ? undefined : found))
  }

  async #stop(turn: RecordedTurn): Promise<void> {
    turn.stops = true
    await this.#poll('the turn is stopped', async () => {
      const { status } = await this.#person().post(`/chats/${turn.chatId}/stop`, {})
      return status === 204 ? true : undefined
    })
  }

  /** Decides the approval that the turn waits for, and reads what follows. */
  async #decide(turn: RecordedTurn): Promise<void> {
    const { random } = this.#options
    const asked = await this.#poll('the approval is known', async () => {
      const view = await this.#view()
      if (view === undefined || view.running) return undefined
      return findAsked(replyTo(view.messages, turn.userMessageId)) ?? 'none'
    })
    // The turn was interrupted before the call.
    if (asked === 'none') return
    turn.approvalId = asked.approvalId
    if (random.chance(0.4))
      await Promise.all(
        Array.from({ length: random.between(2, 5) }, () => this.#decideOnce(turn, asked)),
      )
    await this.#poll('the decision is recorded', async () =>
      (await this.#decideOnce(turn, asked)) === 'unknown' ? undefined : true,
    )
    // Another one from another tab.
    if (random.chance(0.3)) await this.#decideOnce(turn, asked)
    const stream = await this.#reopen()
    if (stream) await this.#follow(turn, stream)
    await this.#poll('the approval has ended', async () => {
      const found = await this.#person().approval(asked.approvalId)
      return found && FINAL.has(found.approval.state) ? true : undefined
    })
  }

  async #decideOnce(
    { kind }: RecordedTurn,
    asked: Asked,
  ): Promise<'accepted' | 'refused' | 'unknown'> {
    const { random, history } = this.#options
    const approved = random.chance(0.7)
    const person = this.#person()
    const byInbox = random.chance(0.6)
    let answer: Answered | undefined
    try {
      answer = byInbox
        ? await person.decide(asked.approvalId, { approved })
        : await person.answer(asked, { approved }, { type: `tool-${kind}` })
    } catch {
      // The server has gone, or does not answer in time.
    }
    const result = readResult(answer, byInbox)
    history.decisions.push({ approvalId: asked.approvalId, approved, result })
    return result
  }

  /** Waits until the reply is complete, or marked as interrupted, or nothing has happened for long. */
  async #settle(turn: RecordedTurn): Promise<void> {
    // A reply that was interrupted is marked by another server after the lease.
    const quietMs = 2 * this.#options.history.leaseMs + 2_000
    let quietSince = Date.now()
    await this.#poll('the reply is complete', async () => {
      const view = await this.#view()
      if (view === undefined || view.running) {
        quietSince = Date.now()
        return undefined
      }
      const reply = replyTo(view.messages, turn.userMessageId)
      const isComplete = reply && (textOf(reply) === turn.expected || isMarked(reply))
      const isQuiet = Date.now() - quietSince > quietMs
      return (isComplete === true && !isPending(reply)) || isQuiet ? true : undefined
    })
  }

  async #view(): Promise<{ messages: ChatMessage[]; running: boolean } | undefined> {
    const { status, body } = await this.#person().get(`/chats/${this.#chatId}/messages`)
    if (status !== 200) return undefined
    return JSON.parse(body) as { messages: ChatMessage[]; running: boolean }
  }

  /** Repeats a request until it returns a value. A request that fails is repeated on another server. */
  async #poll<Result>(
    what: string,
    request: () => Promise<Result | undefined>,
  ): Promise<Exclude<Result, undefined>> {
    const until = Date.now() + MAX_WAIT_MS
    let last: unknown
    while (Date.now() < until) {
      try {
        const result = await request()
        if (result !== undefined) return result as Exclude<Result, undefined>
      } catch (error) {
        last = error
      }
      await delay(POLL_MS)
    }
    throw new Stuck(`${what} (${String(last)})`)
  }
}

function readResult(
  answer: Answered | undefined,
  byInbox: boolean,
): 'accepted' | 'refused' | 'unknown' {
  if (byInbox && answer?.status === 200) return 'accepted'
  const isRefused = answer?.code === 'approval-decided' || answer?.code === 'nothing-new'
  return isRefused ? 'refused' : 'unknown'
}

/**
 * Returns the directives for the model, and the text that the reply has at its end. The directives of two turns differ: a spoken message
 * is found by its text.
 */
export function writeScript(
  kind: TurnKind,
  random: Random,
  { id, amount }: { readonly id: number; readonly amount: number },
): { readonly script: string; readonly expected: string } {
  const words = Array.from({ length: random.between(3, 12) }, (_, index) => `${id}.${index};`)
  const spoken = words.map((word) => `[[say ${word}]][[pause ${random.between(5, 120)}]]`).join('')
  const expected = words.join('')
  if (kind === 'talk' || kind === 'stop') return { script: spoken, expected }
  if (kind === 'ask') {
    const question = { message: `How many nights, ${id}?`, response_schema: ANSWER_SCHEMA }
    return { script: `[[call ${QUESTION} ${JSON.stringify(question)}]]`, expected: '' }
  }
  if (isBrowserKind(kind)) return { script: `[[call ${kind} {"id": ${id}}]]`, expected: '' }
  return {
    script: `[[call ${kind} {"to": "花子", "amount": ${amount}}]][[then]]${spoken}`,
    expected,
  }
}

/** Returns the reply to a message. */
export function replyTo(
  messages: readonly ChatMessage[],
  userMessageId: string,
): ChatMessage | undefined {
  const index = messages.findIndex(({ id }) => id === userMessageId)
  const reply = index === -1 ? undefined : messages[index + 1]
  return reply?.role === 'assistant' ? reply : undefined
}

export function textOf({ parts }: ChatMessage): string {
  return parts.map(({ type, text }) => (type === 'text' ? text : '')).join('')
}

/** Whether a reply is marked as stopped or failed. */
export function isMarked({ metadata }: ChatMessage): boolean {
  const { stopped, error } = (metadata ?? {}) as { stopped?: boolean; error?: unknown }
  return stopped === true || error !== undefined
}

/** Whether a call of a message has no outcome. */
export function isPending({ parts }: ChatMessage): boolean {
  return parts.some(
    ({ toolCallId, state }) => toolCallId !== undefined && !state?.startsWith('output-'),
  )
}

function findAsked(reply: ChatMessage | undefined): Asked | undefined {
  for (const part of reply?.parts ?? []) {
    const { approval } = part as { approval?: { id: string } }
    if (reply && approval && part.toolCallId !== undefined)
      return { approvalId: approval.id, toolCallId: part.toolCallId, messageId: reply.id }
  }
  return undefined
}
