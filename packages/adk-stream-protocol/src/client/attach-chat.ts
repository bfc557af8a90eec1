import type { Message } from '../protocol/message.ts'
import { AdkError } from './adk-error.ts'
import type { AnswerChannel } from './answer-channel.ts'
import type { MessageView, PartView } from './answers.ts'
import type { ChatKeeper, Decision, ServerTurn } from './chat-keeper.ts'
import type { AttachableChat, OwnWays, ToolOutputGiven, Ways } from './attachable-chat.ts'
import { isBusy, takeOver, whenIdle } from './attachable-chat.ts'
import { dropQuestions, findApproval, mergeMessages, reopenQuestion } from './message-edits.ts'
import { addMessage, showTurn } from './show-turn.ts'

/** How a chat is looked after. */
export interface AttachOptions {
  /** Gives the chat's messages as the server has them, for when an answer was lost or decided elsewhere. */
  readonly loadMessages?: () => Promise<readonly Message[]>
  /** What no request of the chat failed with: a decision that was refused while the answer went on. */
  readonly onError?: (error: unknown) => void
  /** Which answers were not taken, and why: approvals and calls by their id. */
  readonly onRefused?: (ids: readonly string[], error: unknown) => void
}

/** Refusals after which an approval is no longer open. */
const OVER = new Set<string>([
  'approval-decided',
  'approval-expired',
  'approval-cancelled',
  'unknown-approval',
])

/**
 * Makes approvals and outputs of a chat travel when they are given: at once on the socket while an answer is open, by a request
 * of their own otherwise; none is lost, and none is sent twice. Call it once, right after the chat is made.
 */
export function attachChat(
  chat: AttachableChat,
  channel: AnswerChannel,
  options: AttachOptions = {},
): AttachedChat {
  return new AttachedChat(chat, channel, options)
}

/** A chat whose answers travel when they are given; made by `attachChat`. */
export class AttachedChat {
  readonly chat: AttachableChat
  readonly channel: AnswerChannel
  readonly #options: AttachOptions
  readonly #detach: () => void
  readonly #listeners = new Set<() => void>()
  /** The newest message that answers something spoken: what was said is known in full only when its answer has begun. */
  #unasked: string | undefined
  readonly #own: OwnWays
  readonly #restore: () => void

  constructor(chat: AttachableChat, channel: AnswerChannel, options: AttachOptions) {
    this.chat = chat
    this.channel = channel
    this.#options = options
    const [own, restore] = takeOver(chat, this.#ways())
    this.#own = own
    this.#restore = restore
    this.#detach = channel.keep(chat.id, this.#keeper())
  }

  /** Approves a call, with other arguments than those shown if given. */
  approve(id: string, { args, reason }: ApproveOptions = {}): Promise<void> {
    return this.#decide({ id, approved: true, ...(reason !== undefined && { reason }) }, args)
  }

  deny(id: string, reason?: string): Promise<void> {
    return this.#decide({ id, approved: false, ...(reason !== undefined && { reason }) })
  }

  /** Tells when calls of the chat may have moved on. */
  onProgress(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Lets the chat go; its own ways are back. */
  detach(): void {
    this.#detach()
    this.#restore()
  }

  /** What takes the place of the chat's own ways. */
  #ways(): Ways {
    return {
      addToolApprovalResponse: (decision: Decision) => this.#decide(decision),
      addToolOutput: (output: ToolOutputGiven) => this.#giveOutput(output),
      sendMessage: (message?: unknown, more?: unknown) => this.#sendMessage(message, more),
      regenerate: async (more?: unknown) => {
        // What is made anew is not read on.
        this.channel.beside(this.chat.id)?.divert(this.chat.id)
        await whenIdle(this.chat)
        await this.#own.regenerate(more)
      },
      sendAutomaticallyWhen: ({ messages }: { messages: readonly MessageView[] }) =>
        this.channel.answers.undelivered(messages.at(-1)).length > 0,
    }
  }

  async #decide(decision: Decision, edits?: ApproveOptions['args']): Promise<void> {
    const { chat, channel } = this
    const { answers } = channel
    const { id } = decision
    // A second click on what was decided changes nothing.
    if (!findApproval(chat.messages, id, 'approval-requested') || answers.isOnItsWay(id)) return
    if (edits) answers.edit(id, edits)
    const beside = channel.beside(chat.id)
    if (!beside) {
      answers.give(id)
      await this.#own.answer(decision)
      // The AI SDK sends by itself what is in the newest message. Its failure is the chat's error.
      if (answers.stateOf(id) === 'given' && !isBusy(chat)) void this.#own.send()
      return this.#progress()
    }
    answers.mark([id], 'travelling')
    // First the chat, then the wire: the outcome must not come before the decision.
    await this.#own.answer(decision)
    const { approved, reason } = decision
    const args = approved ? answers.editsOf([id])[id] : undefined
    try {
      await beside.decide({
        chatId: chat.id,
        approvalId: id,
        approved,
        ...(reason !== undefined && { reason }),
        ...(args && { args: { ...args } }),
      })
      answers.mark([id], 'taken')
      this.#progress()
    } catch (error) {
      this.#refuse([id], error)
      this.#options.onError?.(error)
    }
  }

  async #giveOutput(given: ToolOutputGiven): Promise<void> {
    const { chat, channel } = this
    const { toolCallId, state, output, errorText = '' } = given
    const { answers } = channel
    // A call has one output: the first.
    if (answers.isOnItsWay(toolCallId)) return
    const beside = channel.beside(chat.id)
    if (!beside) {
      answers.give(toolCallId)
      await this.#own.output(given)
      return
    }
    answers.mark([toolCallId], 'travelling')
    await this.#own.output(given)
    const result = state === 'output-error' ? { errorText } : { output }
    try {
      await beside.toolOutput({ chatId: chat.id, toolCallId, ...result })
      answers.mark([toolCallId], 'taken')
    } catch (error) {
      answers.mark([toolCallId], 'refused')
      this.#options.onError?.(error)
    }
  }

  /** Something new is said: a stream that only waits for the person makes room. */
  async #sendMessage(message: unknown, more: unknown): Promise<void> {
    const { chat, channel } = this
    const beside = message === undefined ? undefined : channel.beside(chat.id)
    if (beside) {
      const rest = beside.divert(chat.id)
      await whenIdle(this.chat)
      if (rest) this.#show(rest)
    }
    await this.#own.send(message, more)
  }

  #keeper(): ChatKeeper {
    return {
      onChunk: ({ type }) => {
        if (type === 'tool-input-available' || type === 'data-approval') this.#progress()
      },
      onDecided: async (decision) => {
        this.channel.answers.mark([decision.id], 'taken')
        if (findApproval(this.chat.messages, decision.id, 'approval-requested'))
          await this.#own.answer(decision)
      },
      onRevived: () => this.#report(whenIdle(this.chat).then(() => this.chat.resumeStream())),
      reload: () => this.#reload(),
      onTurn: (turn) => this.#show(turn),
      onUserMessage: (message, how) => {
        addMessage(this.chat, message, how === 'heard' ? this.#unasked : undefined)
        this.#unasked = undefined
      },
      onRest: () => this.#report(this.#rest()),
      onRefused: (ids, error) => this.#refuse(ids, error),
    }
  }

  #show(turn: ServerTurn): void {
    const { messageId, userMessage } = turn
    const isNew = !this.chat.messages.some(({ id }) => id === messageId)
    if (isNew && !userMessage) this.#unasked = messageId
    this.#report(showTurn(this.chat, turn).then(() => this.#progress()))
  }

  /** Nobody waits for this work; what goes wrong with it is told to whoever wants to know. */
  #report(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.#options.onError?.(error))
  }

  async #rest(): Promise<void> {
    if (!(await whenIdle(this.chat))) return
    const { chat, channel } = this
    const { messages } = chat
    const settled = dropQuestions(messages)
    if (settled) chat.messages = settled
    this.#progress()
    // The AI SDK looks at the newest message alone; an older one was answered while another was written.
    const older = messages.slice(0, -1)
    if (older.some((each) => channel.answers.undelivered(each).length > 0)) await this.#own.send()
    // Its outcome was told where nobody read.
    else if (older.some(({ parts }) => parts.some((part) => this.#isUntold(part))))
      await this.#reload()
  }

  #isUntold({ state, approval }: PartView): boolean {
    const { answers } = this.channel
    return state === 'approval-responded' && answers.stateOf(approval?.id ?? '') === 'taken'
  }

  /** What was not taken is open again, or was over before. */
  #refuse(ids: readonly string[], error: unknown): void {
    const { chat, channel } = this
    channel.answers.mark(ids, 'refused')
    this.#options.onRefused?.(ids, error)
    if (error instanceof AdkError && OVER.has(error.code)) {
      this.#report(this.#reload())
      return
    }
    for (const id of ids) {
      const part = findApproval(chat.messages, id, 'approval-responded')
      if (part?.toolCallId === undefined) continue
      channel.answers.forget(id)
      const { toolCallId } = part
      channel
        .beside(chat.id)
        ?.inject(chat.id, { type: 'tool-approval-request', approvalId: id, toolCallId })
      chat.messages = reopenQuestion(chat.messages, id)
    }
  }

  async #reload(): Promise<readonly string[] | undefined> {
    const loaded = await this.#options.loadMessages?.()
    if (!loaded) return undefined
    const { chat } = this
    // The server leaves out what is still being written.
    chat.messages = isBusy(chat) ? mergeMessages(loaded, chat.messages) : [...loaded]
    this.#progress()
    return loaded.map(({ id }) => id)
  }

  #progress(): void {
    for (const listener of this.#listeners) listener()
  }
}

interface ApproveOptions {
  readonly args?: Readonly<Record<string, unknown>>
  readonly reason?: string
}
