import type { Chunk } from '../../protocol/chunk.ts'
import type { ResponseChannel } from '../transports/response-channel.ts'
import type { DecisionSupplement, MessageView, PartView } from './response-states.ts'
import type { AttachableChat, OriginalMethods, ToolOutputGiven } from './attachable-chat.ts'
import { isBusy } from './attachable-chat.ts'
import type { Decision } from '../transports/chat-observer.ts'
import { approvalState, findApproval, reopenQuestion } from './message-edits.ts'
import { isOver, isPassing } from './refusals.ts'
import { toSendable } from '../tools/sendable-output.ts'

/** The first pause before outputs are given again, and the longest, in ms. */
const [FIRST_MS, MAX_MS] = [500, 30_000]

interface Parts {
  readonly chat: AttachableChat
  readonly channel: ResponseChannel
  readonly own: OriginalMethods
  /** Shows what the server has; nothing when it cannot be asked. */
  readonly reload: () => Promise<readonly string[] | undefined>
  /** An answer was taken beside the stream. */
  readonly onTaken: () => void
  readonly onProgress: () => void
  readonly onError: (error: unknown) => void
  readonly onRefused: (ids: readonly string[], error: unknown) => void
}

/** The answers that are given in a chat, each on its way: beside the stream that is open, or by a request of its own. */
export class ChatAnswers {
  readonly #parts: Parts
  readonly #unlisten: () => void
  /** Calls whose output was given beside a stream, and not told in it. */
  readonly #untold = new Set<string>()
  /** Outputs that go beside a stream, and did not get through. */
  readonly #waiting = new Map<string, () => Promise<void>>()
  #retry: ReturnType<typeof setTimeout> | undefined
  #pauseMs = FIRST_MS
  #isOver = false

  constructor(parts: Parts) {
    this.#parts = parts
    this.#unlisten = parts.channel.onConnection(({ state }) => {
      if (state === 'open' && this.#retry !== undefined) this.#giveAgain()
    })
  }

  /** What did not get through is open again: the next chat of this id may give it. */
  end(): void {
    const { chat, channel } = this.#parts
    this.#isOver = true
    clearTimeout(this.#retry)
    this.#unlisten()
    for (const toolCallId of this.#waiting.keys()) channel.answers.forget(toolCallId)
    for (const each of chat.messages)
      for (const id of channel.answers.undelivered(each)) channel.answers.forget(id)
  }

  /** Whether an answer was taken beside a stream that ended before it told what came of it. */
  get areUntold(): boolean {
    const { chat, channel } = this.#parts
    const isUntold = ({ state, approval, toolCallId = '' }: PartView): boolean => {
      const isDecided = state === 'approval-responded'
      const id = isDecided ? (approval?.id ?? '') : toolCallId
      return (isDecided || this.#untold.has(id)) && channel.answers.stateOf(id) === 'taken'
    }
    return chat.messages.at(-1)?.parts.some(isUntold) === true
  }

  /** The newest message with answers that the server does not have. */
  get undelivered(): MessageView | undefined {
    const { chat, channel } = this.#parts
    return chat.messages.findLast((each) => channel.answers.undelivered(each).length > 0)
  }

  /**
   * Sends the answers of a message by its name: the AI SDK sends by itself those of the newest message alone. While something is read
   * nothing is sent; the end of it comes here again. A failure is the chat's error.
   */
  async sendUndelivered(): Promise<void> {
    const { chat, own } = this.#parts
    const { undelivered } = this
    if (undelivered && !isBusy(chat)) await own.send(undefined, { messageId: undelivered.id })
  }

  /** The chat is about to get a chunk. */
  onChunk(chunk: Chunk): void {
    if ('toolCallId' in chunk) this.#untold.delete(chunk.toolCallId)
  }

  async decide(decision: Decision, supplement?: DecisionSupplement): Promise<void> {
    const { chat, channel, own, onProgress, onError } = this.#parts
    const { answers } = channel
    const { id, approved, reason } = decision
    // A second click on what was decided changes nothing.
    if (!findApproval(chat.messages, id, 'approval-requested') || answers.isOnItsWay(id)) return
    answers.supplement(id, supplement)
    const beside = channel.beside(chat.id)
    if (!beside) {
      answers.give(id)
      await own.answer(decision)
      if (answers.stateOf(id) === 'given') void this.sendUndelivered()
      return onProgress()
    }
    answers.mark([id], 'travelling')
    // First the chat, then the wire: the outcome must not come before the decision.
    await own.answer(decision)
    const { args, payload } = approved ? answers.supplementOf(id) : {}
    try {
      const state = await beside.decide({
        chatId: chat.id,
        approvalId: id,
        approved,
        ...(reason !== undefined && { reason }),
        ...(args && { args: { ...args } }),
        ...(payload !== undefined && { payload }),
      })
      // One vote of several: others have still to decide.
      if (state === 'requested') return this.#reopen(id)
      answers.mark([id], 'taken')
      onProgress()
      this.#parts.onTaken()
    } catch (error) {
      await this.refuse([id], error)
      onError(error)
    }
  }

  async giveOutput(given: ToolOutputGiven): Promise<void> {
    const { chat, channel, own } = this.#parts
    const { answers } = channel
    const { toolCallId } = given
    // A call has one output: the first.
    if (answers.isOnItsWay(toolCallId)) return
    const sent = toSendable(given)
    const beside = channel.beside(chat.id)
    if (!beside) {
      answers.give(toolCallId)
      await own.output(sent)
      if (answers.stateOf(toolCallId) === 'given') void this.sendUndelivered()
      return
    }
    answers.mark([toolCallId], 'travelling')
    this.#untold.add(toolCallId)
    await own.output(sent)
    const { state, output, errorText = '' } = sent
    const result = state === 'output-error' ? { errorText } : { output }
    await this.#sendBeside(toolCallId, () =>
      beside.toolOutput({ chatId: chat.id, toolCallId, ...result }),
    )
  }

  async #sendBeside(toolCallId: string, send: () => Promise<void>): Promise<void> {
    const { channel, onTaken, onError } = this.#parts
    channel.answers.mark([toolCallId], 'travelling')
    try {
      await send()
      channel.answers.mark([toolCallId], 'taken')
      this.#pauseMs = FIRST_MS
      onTaken()
    } catch (error) {
      onError(error)
      if (!isPassing(error)) return channel.answers.mark([toolCallId], 'refused')
      if (this.#isOver) return channel.answers.forget(toolCallId)
      // It does not wait for a request of the chat: a turn that is held open takes it in this way alone.
      this.#waiting.set(toolCallId, send)
      this.#tryLater()
    }
  }

  /** What was not taken is open again, or was over before; an output that only had bad luck is given again. */
  async refuse(ids: readonly string[], error: unknown): Promise<void> {
    const { chat, channel } = this.#parts
    const { answers } = channel
    answers.mark(ids, 'refused')
    for (const id of ids) answers.supplement(id, undefined)
    this.#parts.onRefused(ids, error)
    if (isOver(error)) return this.#lookUp(ids)
    for (const id of ids) {
      if (!findApproval(chat.messages, id, 'approval-responded') && this.#isOutput(id)) {
        if (isPassing(error)) this.#giveLater(id)
      } else this.#reopen(id)
    }
  }

  /** What an approval became that was over before, the server knows. Where it cannot be asked, nothing is shown as decided. */
  async #lookUp(ids: readonly string[]): Promise<void> {
    const { chat, reload, onError } = this.#parts
    const known = await reload().catch(onError)
    for (const { id: messageId, parts } of chat.messages) {
      // What the server gave, or its stream told, is the truth.
      if (known?.includes(messageId) === true) continue
      for (const { toolCallId, approval } of parts) {
        if (toolCallId === undefined || !approval || !ids.includes(approval.id)) continue
        if ((approvalState(parts, toolCallId) ?? 'requested') === 'requested')
          this.#reopen(approval.id)
      }
    }
  }

  /** The question is asked again, in the messages and in the stream that writes them. */
  #reopen(id: string): void {
    const { chat, channel } = this.#parts
    const part = findApproval(chat.messages, id, 'approval-responded')
    channel.answers.forget(id)
    if (part?.toolCallId === undefined) return
    const { toolCallId } = part
    channel
      .beside(chat.id)
      ?.inject(chat.id, { type: 'tool-approval-request', approvalId: id, toolCallId })
    chat.messages = reopenQuestion(chat.messages, id)
  }

  #isOutput(id: string): boolean {
    return this.#parts.chat.messages.some(({ parts }) =>
      parts.some(({ toolCallId }) => toolCallId === id),
    )
  }

  /** After a pause, or when the connection is back. */
  #giveLater(id: string): void {
    this.#parts.channel.answers.give(id)
    this.#tryLater()
  }

  #tryLater(): void {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => this.#giveAgain(), this.#pauseMs)
    this.#pauseMs = Math.min(MAX_MS, this.#pauseMs * 2)
  }

  #giveAgain(): void {
    clearTimeout(this.#retry)
    this.#retry = undefined
    for (const [toolCallId, send] of this.#waiting) {
      this.#waiting.delete(toolCallId)
      void this.#sendBeside(toolCallId, send)
    }
    if (this.undelivered) this.sendUndelivered().catch(this.#parts.onError)
    else this.#pauseMs = FIRST_MS
  }
}
