import { randomUUID } from 'node:crypto'

import { ProtocolError } from '../../../protocol/errors.ts'
import type {
  DecisionResponse,
  OutputResponse,
  ToolResult,
} from '../../../protocol/read-responses.ts'
import type { NamedApproval } from '../../../protocol/tool-results.ts'
import { decides, readToolResult } from '../../../protocol/tool-results.ts'
import type { ChatRef } from '../../../shared/chat-ref.ts'
import { keepNewest } from '../../../shared/collections.ts'
import type { Turn } from '../../../turns/turn.ts'
import type { LazyBackend } from '../../chats/backend.ts'
import type { ApprovalDecisions } from '../../chats/decisions/approval-decisions.ts'
import type { ChatRuns } from '../../chats/chat-runs.ts'
import { findStoredCall } from '../../chats/host/stored-calls.ts'
import type { FrameHandlers } from '../../sockets/connection.ts'
import type { BidiEvent } from './bidi-events.ts'

/** A call or approval that was looked up by its id. */
interface FoundCall {
  readonly known: NamedApproval | undefined
  /** The message that contains the call. */
  readonly messageId: string | undefined
  /** Whether an open run of this process continues after the response. */
  readonly isOpen: boolean
}

type FindCall = (chat: ChatRef, id: string) => Promise<FoundCall>

export interface CallFinderParts {
  readonly decisions: ApprovalDecisions
  readonly backend: LazyBackend
  readonly runs: Pick<ChatRuns, 'findCall' | 'keepTurnsOpen'>
}

/** Returns a function that finds a call in the ledger, the open runs or the stored messages. */
export function createCallFinder({ decisions, backend, runs }: CallFinderParts): FindCall {
  return async (chat, id) => {
    const known = await decisions.find(chat, id)
    const toolCallId = known?.toolCallId ?? id
    const open = runs.findCall(chat, toolCallId)
    const stored = async (): Promise<string | undefined> =>
      (await findStoredCall(await backend.get(), chat, toolCallId))?.messageId
    const messageId = known?.messageId ?? open?.messageId ?? (await stored())
    return {
      known,
      messageId,
      isOpen: open !== undefined,
    }
  }
}

interface BidiConversationOptions {
  readonly handlers: FrameHandlers
  /** The chat that the URL names. */
  readonly chatId: string | undefined
  /** Returns the turns that the client reads. */
  readonly reading: () => readonly Turn[]
  readonly findCall: (chatId: string, id: string) => Promise<FoundCall>
}

type EventNamed<Name extends BidiEvent['event']> = Extract<BidiEvent, { event: Name }>

/** Converts the events of a bidi client to the frames that other clients send. A bidi socket has one chat. */
export class BidiConversation {
  readonly #options: BidiConversationOptions
  /** The chat of the socket. A generated id may be replaced by the first id that an event names. */
  #chat: { readonly id: string; readonly named: boolean } | undefined
  /** The messages that were last read on this socket. */
  readonly #read = new Set<string>()
  /** Settles when the earlier responses are processed. */
  #processing: Promise<void> = Promise.resolve()

  constructor(options: BidiConversationOptions) {
    this.#options = options
  }

  /** BD9: resumes the running turn of the chat in the URL, before the client's responses are processed. */
  async open(): Promise<void> {
    const { chatId, handlers } = this.#options
    if (chatId === undefined) return
    const id = this.#openChat(chatId)
    const opened = (async () => handlers.resume({ type: 'resume', requestId: randomUUID(), id }))()
    this.#processing = opened.catch(() => undefined)
    await opened
  }

  /** Records that a message is read on this socket. */
  noteRead(messageId: string): void {
    this.#read.add(messageId)
    keepNewest(this.#read, MAX_READ)
  }

  async handle(event: BidiEvent): Promise<void> {
    const { handlers } = this.#options
    switch (event.event) {
      case 'message':
        return this.#handleMessage(this.#openChat(event.chatId), event)
      case 'tool_result':
        return this.#respond(this.#openChat(event.chatId), [event])
      case 'interrupt':
        for (const turn of this.#options.reading()) turn.stop()
        return
      case 'ping':
        return handlers.ping({ type: 'ping', nonce: JSON.stringify(event.timestamp ?? null) })
      case 'audio_control': {
        const id = this.#openChat(event.chatId)
        return event.action === 'start'
          ? handlers.watch({ type: 'watch', id })
          : handlers['audio-end']({ type: 'audio-end', id })
      }
      case 'audio_chunk': {
        const id = this.#openChat(event.chatId)
        const mimeType = `audio/pcm;rate=${event.sampleRate}`
        return handlers.audio({ type: 'audio', id, data: event.chunk, mimeType })
      }
    }
  }

  /** Returns the chat of this socket. Bidi frames carry no chat id, so a socket has only one chat. */
  #openChat(named = this.#options.chatId): string {
    const known = this.#chat
    if (known && (named === undefined || named === known.id)) return known.id
    if (known && (known.named || this.#options.reading().length > 0)) {
      const message = `This socket belongs to the chat ${known.id}. Open another socket for ${named}.`
      throw new ProtocolError('bad-request', { message })
    }
    const id = named ?? randomUUID()
    this.#chat = { id, named: named !== undefined }
    this.#options.handlers.join(id)
    return id
  }

  async #handleMessage(id: string, event: EventNamed<'message'>): Promise<void> {
    const { messages, trigger, messageId, results } = event
    if (results.length > 0) return this.#respond(id, results)
    await this.#send(id, messages, { trigger, messageId })
  }

  /** Processes responses one after the other: a result may follow the decision that allows it. */
  #respond(id: string, results: readonly ToolResult[]): Promise<void> {
    const processed = this.#processing.then(() => this.#processResponses(id, results))
    this.#processing = processed.catch(() => undefined)
    return processed
  }

  /**
   * Records decisions first, then results (BT6). If this socket reads the message, its stream continues; otherwise the response starts a
   * new stream.
   */
  async #processResponses(id: string, results: readonly ToolResult[]): Promise<void> {
    const { handlers } = this.#options
    const responses = await this.#readResponses(id, results)
    const streamed = responses.filter((response) => this.#isStreamedHere(response))
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
    const rest = responses.filter((response) => !streamed.includes(response))
    if (rest.length > 0) await this.#send(id, [toMessage(rest)], { payloads: toPayloads(rest) })
  }

  async #readResponses(id: string, results: readonly ToolResult[]): Promise<ToolResponse[]> {
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

  /** Whether the client reads the stream that continues after a response, or has read all of it. */
  #isStreamedHere({ decision, known, isOpen, messageId }: ToolResponse): boolean {
    if (messageId === undefined) return true
    const isRead = this.#options.reading().some((turn) => turn.messageId === messageId)
    if (isOpen && isRead) return true
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

/** A response of the client, with the call that it belongs to. */
interface ToolResponse extends FoundCall {
  readonly decision: DecisionResponse | undefined
  readonly output: OutputResponse | undefined
}

/** The maximum size of `#read`. */
const MAX_READ = 100

/** Returns the payloads of decisions, by approval id. */
function toPayloads(responses: readonly ToolResponse[]): Record<string, unknown> {
  const entries = responses.flatMap(({ decision }) =>
    decision?.payload === undefined ? [] : [[decision.approvalId, decision.payload] as const],
  )
  return Object.fromEntries(entries)
}

/** Converts responses to a message as the AI SDK sends it. */
function toMessage(responses: readonly ToolResponse[]): object {
  const parts = responses.map(({ decision, output, known }) => {
    if (output) {
      const { toolCallId, result } = output
      return { type: 'dynamic-tool', toolCallId, state: 'output-available', ...result }
    }
    const { approvalId: id, approved, reason } = decision ?? { approvalId: '', approved: false }
    const approval = { id, approved, ...(reason !== undefined && { reason }) }
    const { toolCallId, toolName } = known ?? {}
    return { type: 'dynamic-tool', toolCallId, toolName, state: 'approval-responded', approval }
  })
  return { id: responses[0]?.messageId, role: 'assistant', parts }
}
