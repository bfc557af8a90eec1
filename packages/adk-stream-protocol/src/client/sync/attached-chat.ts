import type { Chunk } from '../../protocol/chunk.ts'
import type { AdkApi } from '../api/adk-api.ts'
import type { ResponseChannel, StoredConversation } from '../transports/response-channel.ts'
import type { MessageView, DecisionSupplement } from './response-states.ts'
import type {
  AttachableChat,
  OriginalMethods,
  ToolOutputGiven,
  PatchedMethods,
} from './attachable-chat.ts'
import { patchChat, whenIdle } from './attachable-chat.ts'
import { ChatAnswers } from './chat-answers.ts'
import type { ChatObserver, Decision, ServerTurn } from '../transports/chat-observer.ts'
import { ChatOutcomes } from './chat-outcomes.ts'
import { ChatTurns } from './chat-turns.ts'
import { readErrorCode } from '../error-body.ts'
import { ChatFollower } from './follow-chat.ts'
import { findApproval } from './message-edits.ts'

/** How a chat is looked after. */
export interface AttachOptions {
  /** Where the chat is kept: what happens to it elsewhere is followed, and what was lost is read again. */
  readonly api?: Pick<AdkApi, 'loadChat' | 'watchChat'>
  /** Gives the chat's messages as the server has them, for when an answer was lost or decided elsewhere. Default: by `api`, or by the transport. */
  readonly loadMessages?: () => Promise<readonly MessageView[]>
  /** An approval of the chat has changed, here or elsewhere; told where there is `api`. */
  readonly onApproval?: (approval: { approvalId: string; state: string }) => void
  /** What no request of the chat failed with: a decision that was refused while the answer went on. */
  readonly onError?: (error: unknown) => void
  /** Which answers were not taken, and why: approvals and calls by their id. */
  readonly onRefused?: (ids: readonly string[], error: unknown) => void
}

/**
 * Makes approvals and outputs of a chat travel when they are given: at once on the socket while an answer is open, by a request
 * of their own otherwise; none is lost, and none is sent twice. Call it right after the chat is made; a second call gives the same,
 * and as many `detach()` let it go.
 */
export function attachChat(
  chat: AttachableChat,
  channel: ResponseChannel,
  options: AttachOptions = {},
): AttachedChat {
  const known = ATTACHED.get(chat)
  if (known?.channel === channel) return known.join(options)
  const attached = new AttachedChat(chat, channel, options)
  ATTACHED.set(chat, attached)
  return attached
}

const ATTACHED = new WeakMap<AttachableChat, AttachedChat>()

/** A chat that is looked after, of `attachChat()`: where answers are given, and what became of them. */
export class AttachedChat {
  readonly chat: AttachableChat
  readonly channel: ResponseChannel
  #options: AttachOptions
  /** How many hold it: React mounts twice. */
  #holders = 1
  readonly #detach: () => void
  readonly #listeners = new Set<() => void>()
  readonly #turns: ChatTurns
  readonly #own: OriginalMethods
  readonly #restore: () => void
  readonly #answers: ChatAnswers
  readonly #outcomes: ChatOutcomes
  #follower: ChatFollower | undefined

  constructor(chat: AttachableChat, channel: ResponseChannel, options: AttachOptions) {
    this.chat = chat
    this.channel = channel
    this.#options = options
    const [own, restore] = patchChat(chat, this.#ways())
    this.#own = own
    this.#restore = restore
    this.#answers = new ChatAnswers({
      chat,
      channel,
      own,
      reload: () => this.#outcomes.reload(),
      onTaken: () => this.#report(this.#outcomes.read()),
      onProgress: () => this.#progress(),
      onError: (error) => this.#options.onError?.(error),
      onRefused: (ids, error) => this.#options.onRefused?.(ids, error),
    })
    this.#outcomes = new ChatOutcomes({
      chat,
      channel,
      answers: this.#answers,
      load: () => this.#load(),
      onProgress: () => this.#progress(),
    })
    this.#turns = new ChatTurns(chat, {
      onChunk: (chunk) => this.#onChunk(chunk),
      onShown: (messageId, shown) => this.#follower?.onShown(messageId, shown),
    })
    this.#detach = channel.keep(chat.id, this.#keeper())
    this.#follow()
  }

  /** Approves a call, with other arguments than those shown and with a payload if given. */
  approve(id: string, { reason, ...supplement }: ApproveOptions = {}): Promise<void> {
    const decision = { id, approved: true, ...(reason !== undefined && { reason }) }
    return this.#answers.decide(decision, supplement)
  }

  deny(id: string, reason?: string): Promise<void> {
    return this.#answers.decide({ id, approved: false, ...(reason !== undefined && { reason }) })
  }

  /** Tells when calls of the chat may have moved on. */
  onProgress(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Whether the server said that a call may run here. */
  isOffered(toolCallId: string): boolean {
    return this.#turns.isOffered(toolCallId)
  }

  /** Whether a message is still being written, as far as it is read here. */
  isWriting(messageId: string): boolean {
    return this.#turns.isWriting(messageId)
  }

  /** Whether nobody holds it any more. */
  get isLetGo(): boolean {
    return this.#holders <= 0
  }

  /** Shows what the server has, where it can be asked. */
  async catchUp(): Promise<void> {
    await this.#outcomes.reload().catch((error: unknown) => this.#options.onError?.(error))
  }

  /** One more holds it. */
  join(options: AttachOptions): this {
    this.#holders += 1
    this.#options = options
    this.#follow()
    return this
  }

  /** Lets the chat go, when the last one does; its own ways are back. */
  detach(): void {
    this.#holders -= 1
    if (this.#holders > 0) return
    ATTACHED.delete(this.chat)
    this.#follower?.end()
    this.#answers.end()
    this.#detach()
    this.#restore()
  }

  #follow(): void {
    const { api } = this.#options
    if (!api || this.#follower) return
    const { chat, channel } = this
    const feed = {}
    this.#follower = new ChatFollower({
      chat,
      answers: channel.answers,
      api,
      reconnect: () => channel.reconnectToStream({ chatId: chat.id }),
      show: (turn) => this.#show(turn),
      onApproval: ({ approvalId, state }) => this.#options.onApproval?.({ approvalId, state }),
      onProgress: () => this.#progress(),
      report: (state) => channel.onFeed?.(feed, state),
      onError: (error) => this.#options.onError?.(error),
    })
  }

  /** What takes the place of the chat's own ways. */
  #ways(): PatchedMethods {
    return {
      addToolApprovalResponse: (decision: Decision) => this.#answers.decide(decision),
      addToolOutput: (output: ToolOutputGiven) => this.#answers.giveOutput(output),
      sendMessage: (message?: unknown, more?: unknown) => this.#sendMessage(message, more),
      regenerate: (more?: object) => this.#regenerate(more),
      sendAutomaticallyWhen: ({ messages }: { messages: readonly MessageView[] }) =>
        this.channel.answers.undelivered(messages.at(-1)).length > 0,
    }
  }

  async #regenerate(more: object = {}): Promise<void> {
    const { chat, channel } = this
    // What is made anew is not read on.
    channel.beside(chat.id)?.divert(chat.id)
    await whenIdle(chat)
    // By its name, so that a request that was lost can be told from one that was answered.
    const messageId = chat.messages.findLast(({ role }) => role === 'assistant')?.id
    const isLast = messageId !== undefined && chat.messages.at(-1)?.id === messageId
    await this.#replace(() => this.#own.regenerate({ ...(isLast && { messageId }), ...more }))
  }

  /** CL170: the AI SDK removes messages before it asks. If the server keeps them, the chat shows them again. */
  async #replace(ask: () => Promise<void>): Promise<void> {
    const { chat } = this
    const { messages, error: before } = chat
    await ask()
    const { error } = chat
    if (error && error !== before && KEPT.has(readErrorCode(error))) chat.messages = messages
  }

  /** Something new is said: a stream that only waits for the person makes room. */
  async #sendMessage(message: unknown, more: unknown): Promise<void> {
    const { chat, channel } = this
    const beside = message === undefined ? undefined : channel.beside(chat.id)
    if (beside) {
      const rest = beside.divert(chat.id)
      await whenIdle(this.chat)
      if (rest) this.#report(this.#show(rest))
    }
    await this.#replace(() => this.#own.send(message, more))
  }

  #keeper(): ChatObserver {
    return {
      chat: this.chat,
      onChunk: (chunk) => this.#turns.onOwnChunk(chunk),
      onOwnTurn: (messageId) => this.#follower?.onOwnTurn(messageId),
      onDecided: async (decision) => {
        this.channel.answers.mark([decision.id], 'taken')
        if (findApproval(this.chat.messages, decision.id, 'approval-requested'))
          await this.#own.answer(decision)
      },
      onRevived: () => this.#report(whenIdle(this.chat).then(() => this.chat.resumeStream())),
      reload: () => this.#outcomes.reload(),
      onTurn: (turn) => this.#report(this.#show(turn)),
      onUserMessage: (message, how) => this.#turns.addUserMessage(message, how),
      onRest: () => this.#report(this.#rest()),
      onRefused: (ids, error) =>
        // Turns that were told while the refused request was under way were not read.
        this.#report(this.#answers.refuse(ids, error).then(() => this.#follower?.onRest())),
    }
  }

  async #show(turn: ServerTurn): Promise<void> {
    await this.#turns.show(turn)
    this.#progress()
  }

  #onChunk(chunk: Chunk): void {
    this.#answers.onChunk(chunk)
    if (MOVING.has(chunk.type)) this.#progress()
  }

  /** Nobody waits for this work; what goes wrong with it is told to whoever wants to know. */
  #report(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.#options.onError?.(error))
  }

  async #rest(): Promise<void> {
    if (await this.#outcomes.onRest()) this.#follower?.onRest()
  }

  async #load(): Promise<StoredConversation | undefined> {
    const { api, loadMessages } = this.#options
    if (loadMessages) return { messages: await loadMessages(), running: false }
    return api ? api.loadChat(this.chat.id) : this.channel.loadChat?.(this.chat.id)
  }

  #progress(): void {
    for (const listener of this.#listeners) listener()
  }
}

/** Refusals after which the server has all messages. */
const KEPT = new Set<string | undefined>(['already-acted', 'not-rewindable'])

/** Chunks that move a call. */
const MOVING = new Set<string>(['tool-input-available', 'data-approval', 'data-browser-call'])

interface ApproveOptions extends DecisionSupplement {
  readonly reason?: string
}
