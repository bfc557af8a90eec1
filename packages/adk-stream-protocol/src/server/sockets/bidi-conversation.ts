import { randomUUID } from 'node:crypto'

import type { BidiEvent } from '../../protocol/bidi-events.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { DecisionAnswer, OutputAnswer } from '../../protocol/read-answers.ts'
import type { NamedApproval, ToolResult } from '../../protocol/read-tool-result.ts'
import { decides, readToolResult } from '../../protocol/read-tool-result.ts'
import type { Turn } from '../../turns/turn.ts'
import type { ChatKey } from '../../turns/turns.ts'
import type { ApprovalDecisions } from '../chats/approval-decisions.ts'
import type { FrameHandlers } from './frame-handlers.ts'
import type { LiveRuns } from '../chats/live-runs.ts'
import type { TurnService } from '../chats/turn-service.ts'

/** What is known of the call or the approval that an id stands for. */
interface FoundCall {
  readonly known: NamedApproval | undefined
  /** The message that holds the call. */
  readonly messageId: string | undefined
  /** Whether a live conversation of this process goes on by the answer. */
  readonly live: boolean
}

export type FindCall = (chat: ChatKey, id: string) => Promise<FoundCall>

export interface CallFinderParts {
  readonly decisions: ApprovalDecisions
  readonly turnService: Pick<TurnService, 'messageOf'>
  readonly runs: LiveRuns | undefined
}

/** Looks calls up in the ledger, in the live conversations and in the stored messages. */
export function callFinder({ decisions, turnService, runs }: CallFinderParts): FindCall {
  return async (chat, id) => {
    const known = await decisions.find(chat, id)
    const toolCallId = known?.toolCallId ?? id
    const run = runs?.find(chat)
    const messageId = known?.messageId ?? run?.messageOf(toolCallId)
    return {
      known,
      messageId: messageId ?? (await turnService.messageOf(chat, toolCallId)),
      live: run?.hasCall(toolCallId) === true,
    }
  }
}

export interface BidiConversationOptions {
  readonly handlers: FrameHandlers
  /** The chat that the address names. */
  readonly chatId: string | undefined
  /** The turns that the client reads now. */
  readonly reading: () => readonly Turn[]
  readonly findCall: (chatId: string, id: string) => Promise<FoundCall>
}

type EventNamed<Name extends BidiEvent['event']> = Extract<BidiEvent, { event: Name }>

/** The one conversation of a client that speaks text frames: its events become the frames that all clients send. */
export class BidiConversation {
  readonly #options: BidiConversationOptions
  /** Its chat; one that no event has named yet may still get another name. */
  #chat: { readonly id: string; readonly named: boolean } | undefined
  /** The messages that were read on this socket last. */
  readonly #read = new Set<string>()
  /** Settles when the answers before have been taken or refused. */
  #answering: Promise<void> = Promise.resolve()

  constructor(options: BidiConversationOptions) {
    this.#options = options
  }

  /** BD9: a client that names its chat in the address gets what runs there, before its answers are taken. */
  async open(): Promise<void> {
    const { chatId, handlers } = this.#options
    if (chatId === undefined) return
    const id = this.#enter(chatId)
    const opened = (async () => handlers.resume({ type: 'resume', requestId: randomUUID(), id }))()
    this.#answering = opened.catch(() => undefined)
    await opened
  }

  /** A message is read on this socket. */
  noteRead(messageId: string): void {
    this.#read.add(messageId)
    const [oldest] = this.#read
    if (this.#read.size > MAX_READ && oldest !== undefined) this.#read.delete(oldest)
  }

  async handle(event: BidiEvent): Promise<void> {
    const { handlers } = this.#options
    switch (event.event) {
      case 'message':
        return this.#say(this.#enter(event.chatId), event)
      case 'tool_result':
        return this.#answer(this.#enter(event.chatId), [event])
      case 'interrupt':
        for (const turn of this.#options.reading()) turn.stop()
        return
      case 'ping':
        return handlers.ping({ type: 'ping', nonce: JSON.stringify(event.timestamp ?? null) })
      case 'audio_control': {
        const id = this.#enter(event.chatId)
        return event.action === 'start'
          ? handlers.watch({ type: 'watch', id })
          : handlers['audio-end']({ type: 'audio-end', id })
      }
      case 'audio_chunk': {
        const id = this.#enter(event.chatId)
        const mimeType = `audio/pcm;rate=${event.sampleRate}`
        return handlers.audio({ type: 'audio', id, data: event.chunk, mimeType })
      }
    }
  }

  /** The chat of this socket: one, since nothing in a text frame says which chat it is of. */
  #enter(named = this.#options.chatId): string {
    const known = this.#chat
    if (known && (named === undefined || named === known.id)) return known.id
    if (known && (known.named || this.#options.reading().length > 0)) {
      const message = `This socket is of the chat ${known.id}. Open another one for ${named}.`
      throw new ProtocolError('bad-request', { message })
    }
    const id = named ?? randomUUID()
    this.#chat = { id, named: named !== undefined }
    this.#options.handlers.join(id)
    return id
  }

  async #say(id: string, event: EventNamed<'message'>): Promise<void> {
    const { messages, trigger, messageId, results } = event
    if (results.length > 0) return this.#answer(id, results)
    await this.#send(id, messages, { trigger, messageId })
  }

  /** Answers are taken one after the other: a result may follow the decision that allows it. */
  #answer(id: string, results: readonly ToolResult[]): Promise<void> {
    const answered = this.#answering.then(() => this.#take(id, results))
    this.#answering = answered.catch(() => undefined)
    return answered
  }

  /**
   * Decides first, and gives results after that (BT6). What goes into a message that is read here is streamed in its stream; all else is streamed
   * in a stream of its own.
   */
  async #take(id: string, results: readonly ToolResult[]): Promise<void> {
    const { handlers } = this.#options
    const answers = await this.#readAnswers(id, results)
    const streamed = answers.filter((answer) => this.#isStreamedHere(answer))
    for (const { decision } of streamed) {
      const decisionId = randomUUID()
      if (decision) await handlers.decide({ type: 'decide', decisionId, id, ...decision })
    }
    for (const { output } of streamed) {
      if (!output) continue
      const { toolCallId, result } = output
      const outputId = randomUUID()
      await handlers['tool-output']({ type: 'tool-output', outputId, id, toolCallId, ...result })
    }
    const rest = answers.filter((answer) => !streamed.includes(answer))
    if (rest.length > 0) await this.#send(id, [toMessage(rest)], { payloads: toPayloads(rest) })
  }

  async #readAnswers(id: string, results: readonly ToolResult[]): Promise<Answer[]> {
    const found = await Promise.all(
      results.map(async (result) => ({
        result,
        ...(await this.#options.findCall(id, result.toolCallId)),
      })),
    )
    const decided = new Set(
      found.flatMap(({ result, known }) => (decides(result, known) ? known?.approvalId : [])),
    )
    return found.map(({ result, known, ...call }) => {
      const isDecided = known && decided.has(known.approvalId) && !decides(result, known)
      const read = readToolResult(result, isDecided ? { ...known, waits: false } : known)
      return { decision: undefined, output: undefined, ...read, known, ...call }
    })
  }

  /** Whether the client hears of an answer by a stream that it reads, or has heard all of it. */
  #isStreamedHere({ decision, known, live, messageId }: Answer): boolean {
    if (messageId === undefined) return true
    const isRead = this.#options.reading().some((turn) => turn.messageId === messageId)
    if (live && isRead) return true
    return decision !== undefined && known?.waits === false && this.#read.has(messageId)
  }

  async #send(
    id: string,
    messages: readonly unknown[],
    {
      payloads = {},
      ...how
    }: Pick<EventNamed<'message'>, 'trigger' | 'messageId'> & {
      readonly payloads?: Record<string, unknown>
    } = {},
  ): Promise<void> {
    const { handlers } = this.#options
    const body = { hold: true, payloads }
    await handlers.send({ type: 'send', requestId: randomUUID(), id, messages, body, ...how })
  }
}

/** An answer of the client, with what is known of the call that it is about. */
interface Answer extends FoundCall {
  readonly decision: DecisionAnswer | undefined
  readonly output: OutputAnswer | undefined
}

/** How many messages are remembered as read. */
const MAX_READ = 100

/** What was answered to the payloads of tools, by approval. */
function toPayloads(answers: readonly Answer[]): Record<string, unknown> {
  const given = answers.flatMap(({ decision }) =>
    decision?.payload === undefined ? [] : [[decision.approvalId, decision.payload] as const],
  )
  return Object.fromEntries(given)
}

/** Answers in the form in which the AI SDK sends them. */
function toMessage(answers: readonly Answer[]): object {
  const parts = answers.map(({ decision, output, known }) => {
    if (output) {
      const { toolCallId, result } = output
      return { type: 'dynamic-tool', toolCallId, state: 'output-available', ...result }
    }
    const { approvalId: id, approved, reason } = decision ?? { approvalId: '', approved: false }
    const approval = { id, approved, ...(reason !== undefined && { reason }) }
    const { toolCallId, toolName } = known ?? {}
    return { type: 'dynamic-tool', toolCallId, toolName, state: 'approval-responded', approval }
  })
  return { id: answers[0]?.messageId, role: 'assistant', parts }
}
