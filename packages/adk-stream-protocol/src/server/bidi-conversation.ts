import { randomUUID } from 'node:crypto'

import type { BidiEvent } from '../protocol/bidi-events.ts'
import { CONFIRMATION_TOOL } from '../protocol/confirmation-tool.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { DecisionAnswer, OutputAnswer } from '../protocol/read-answers.ts'
import type { NamedApproval, ToolResult } from '../protocol/read-tool-result.ts'
import { readToolResult } from '../protocol/read-tool-result.ts'
import type { Turn } from '../turns/turn.ts'
import type { ChatKey } from '../turns/turns.ts'
import type { ApprovalDesk } from './approval-desk.ts'
import type { FrameHandlers } from './frame-handlers.ts'
import type { LiveRuns } from './live-runs.ts'

/** What is known of the call or the approval that an id stands for, and whether a live conversation goes on by its answer. */
interface FoundCall {
  readonly known: NamedApproval | undefined
  readonly live: boolean
}

export type FindCall = (chat: ChatKey, id: string) => Promise<FoundCall>

/** Looks calls up in the ledger and in the live conversations. */
export function callFinder(desk: ApprovalDesk, runs: LiveRuns | undefined): FindCall {
  return async (chat, id) => {
    const known = await desk.find(chat, id)
    return { known, live: runs?.find(chat)?.hasCall(known?.toolCallId ?? id) === true }
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
  /** The message that was read last. */
  #messageId: string | undefined

  constructor(options: BidiConversationOptions) {
    this.#options = options
  }

  /** BD9: who names its chat in the address comes back to what runs there. */
  async open(): Promise<void> {
    const { chatId, handlers } = this.#options
    if (chatId === undefined) return
    await handlers.resume({ type: 'resume', requestId: randomUUID(), id: this.#enter(chatId) })
  }

  async hear(event: BidiEvent): Promise<void> {
    const { handlers } = this.#options
    this.#messageId = this.#options.reading().at(-1)?.messageId ?? this.#messageId
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

  /** What a live conversation waits for goes into it, and the stream goes on; all else goes on in a stream of its own. */
  async #answer(id: string, results: readonly ToolResult[]): Promise<void> {
    const { handlers, findCall } = this.#options
    const read = await Promise.all(
      results.map(async (result) => {
        const { known, live } = await findCall(id, result.toolCallId)
        return { answer: readToolResult(result, known), live, waits: known?.waits === true }
      }),
    )
    const decisions: DecisionAnswer[] = []
    for (const { answer, live, waits } of read) {
      if ('output' in answer) await this.#give(id, answer.output, live)
      // What is decided already goes on by itself: the answer to it is taken again or refused, and no stream.
      else if (live || !waits)
        await handlers.decide({ type: 'decide', decisionId: randomUUID(), id, ...answer.decision })
      else decisions.push(answer.decision)
    }
    if (decisions.length > 0) await this.#send(id, [toMessage(decisions)])
  }

  async #give(id: string, { toolCallId, result }: OutputAnswer, live: boolean): Promise<void> {
    const messageId = this.#messageId
    if (live || messageId === undefined) {
      const output = { type: 'tool-output', outputId: randomUUID(), id, toolCallId } as const
      await this.#options.handlers['tool-output']({ ...output, ...result })
      return
    }
    const part = { type: 'dynamic-tool', toolCallId, state: 'output-available', ...result }
    await this.#send(id, [{ id: messageId, role: 'assistant', parts: [part] }])
  }

  async #send(
    id: string,
    messages: unknown[],
    how: Pick<EventNamed<'message'>, 'trigger' | 'messageId'> = {},
  ): Promise<void> {
    const { handlers } = this.#options
    const body = { hold: true }
    await handlers.send({ type: 'send', requestId: randomUUID(), id, messages, body, ...how })
  }
}

function toMessage(decisions: readonly DecisionAnswer[]): object {
  const content = decisions.map(({ approvalId: toolCallId, approved: confirmed, reason }) => ({
    type: 'tool-result',
    toolCallId,
    toolName: CONFIRMATION_TOOL,
    result: { confirmed, ...(reason !== undefined && { reason }) },
  }))
  return { role: 'user', content }
}
