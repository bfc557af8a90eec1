import { setTimeout as delay } from 'node:timers/promises'

import type { BaseTool, LlmRequest } from '@google/adk'
import type { Blob, Content, Part } from '@google/genai'

import { explainModelError } from '../../../agent/translate/model-outcome.ts'
import type { Approval } from '../../../approvals/approval.ts'
import { toClientError } from '../gemini/gemini-socket.ts'
import { declareNonBlocking, findLiveTool, runLiveAgent, wrapTools } from '../gemini/live-agent.ts'
import type { LiveHooks, LiveMark, LiveStatus } from '../gemini/message-receiver.ts'
import type { ReconnectingLiveModel } from '../gemini/reconnecting-model.ts'
import { ProtocolError, toProtocolError } from '../../../protocol/errors.ts'
import { defer } from '../../../shared/async.ts'
import { SparseSet } from '../../../shared/collections.ts'
import type { Turn } from '../../../turns/turn.ts'
import type { LiveCalls } from './live-calls.ts'
import type { LiveInput } from './live-input.ts'
import type { LiveMessageOptions, LiveMessages } from './live-message.ts'
import { LiveMessage } from './live-message.ts'
import { toRepliedEvent, toUserEvent } from './live-output.ts'
import type { ConversationLinks, LiveConversationOptions } from './live-parts.ts'
import { LiveParts } from './live-parts.ts'
import type { LiveSnapshot } from './live-snapshot.ts'

/** Receives the words of a person. They may decide an approval that `isInReach` accepts. */
type OnWords = (words: string, isInReach: (approval: Approval) => boolean) => Promise<unknown>

/** How long `close` waits for running calls, and for replies that are being stored. */
const ABANDON_AFTER_MS = 1_000

/** The state of a conversation in which the model has made no call. */
const NO_CALLS: Pick<LiveCalls, 'waiting' | 'isWaiting'> = { waiting: [], isWaiting: true }

/**
 * One live conversation with the model, through ADK's `runLive`. Each reply is a message, streamed in a turn of its own. Its methods `on…`
 * are for its model. Its parts use the methods of `ConversationLinks`.
 */
export class LiveConversation implements LiveHooks, ConversationLinks {
  readonly #options: LiveConversationOptions
  readonly #parts: LiveParts
  #onWords: OnWords | undefined
  readonly #loop: Promise<void>
  #request: LlmRequest | undefined
  #model: ReconnectingLiveModel | undefined
  /** Resolves when the model is connected. Messages from then on are not part of its history. */
  readonly #ready = defer()
  #lostError: ProtocolError | undefined
  /** Messages that are being stored and are not sent to the model yet. */
  readonly #sending = new SparseSet<Promise<void>>()
  /** Whether no further messages are accepted. */
  #isLeaving = false
  #state: 'open' | 'closing' | 'closed' = 'open'

  constructor(options: LiveConversationOptions) {
    this.#options = options
    this.#ready.promise.catch(() => undefined)
    this.#parts = new LiveParts(options, this)
    this.#loop = this.#run()
  }

  /** The replies of the model, each in a turn of its own. */
  get messages(): LiveMessages {
    return this.#parts.messages
  }

  /** What the model receives. */
  get input(): LiveInput {
    return this.#parts.input
  }

  /** The calls of the model. Undefined before the first one. */
  get calls(): LiveCalls | undefined {
    return this.#parts.calls
  }

  /** Resolves when the conversation has ended. Never rejects. */
  get ended(): Promise<void> {
    return this.#loop
  }

  /** Resolves when the conversation has taken the calls of an earlier session, or has failed to start. Never rejects. */
  get adopted(): Promise<void> {
    return this.#ready.promise.catch(() => undefined)
  }

  /** Whether the conversation has not ended, and is not about to. */
  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** Whether a call runs, the model replies, or a message is being sent to it. */
  get isBusy(): boolean {
    return this.isOpen && (this.calls?.isBusy === true || this.messages.isBusy || this.isSending)
  }

  /** Whether a message is being stored and sent to the model. */
  get isSending(): boolean {
    return this.#sending.size > 0
  }

  /** Resolves when the model has the messages that are being stored now. Never rejects. */
  async whenSent(): Promise<void> {
    await Promise.all(this.#sending)
  }

  /** Whether the conversation knows all events of its chat. */
  isCurrent(): Promise<boolean> {
    return this.#parts.session.isCurrent()
  }

  /**
   * Sends a text message. It interrupts the model's speech. If `decide` returns an approval, the message has decided it and is not sent
   * to the model, which receives the result of the call.
   */
  async sendMessage(
    content: Content,
    options: LiveMessageOptions,
    decide?: () => Promise<Approval | undefined>,
  ): Promise<Turn> {
    await this.#ready.promise
    // LV1640: it would be stored without a reply.
    if (this.#isLeaving) throw new ProtocolError('unavailable')
    const { isBusy } = this
    this.messages.pauseOthers()
    const message = new LiveMessage(options)
    const sent = defer()
    this.#sending.add(sent.promise)
    try {
      if (!isBusy) await this.#parts.session.endUncontinued()
      await this.#parts.session.append(toUserEvent(message, content))
      // The conversation may have ended meanwhile.
      if (this.#state !== 'open') throw new ProtocolError('unavailable')
      message.isUserMessageStored = true
      message.isPromptKnown = true
      const decided = await decide?.()
      if (decided) return await this.#showDecision(message, decided)
      if (this.#state !== 'open') throw new ProtocolError('unavailable')
      this.input.sendMessage(message, content)
      return this.messages.open(message, { background: false })
    } finally {
      this.#sending.delete(sent.promise)
      sent.resolve()
    }
  }

  /** Streams the message after a reply that decided an approval. The agent continues in the message with the call. */
  async #showDecision(message: LiveMessage, approval: Approval): Promise<Turn> {
    const event = toRepliedEvent(message, this.#options.host.agent.name, approval)
    await this.#parts.session.append(event)
    const turn = this.messages.open(message, { background: false })
    message.push(event)
    this.messages.closeIfDone(message)
    return turn
  }

  /** Sends a chunk of audio, or an image. `onWords` receives what the person says. */
  sendMedia(blob: Blob, onWords?: OnWords): void {
    if (onWords) this.#onWords = onWords
    this.input.sendMedia(blob)
  }

  /** Interrupts the model's speech. */
  interrupt(): void {
    this.#model?.interrupt()
  }

  /** Finds a tool that the model knows. */
  findTool(name: string): BaseTool | undefined {
    return this.#request && findLiveTool(this.#request, name)
  }

  /** Reports the words of a person who saw these approvals. Never rejects. */
  hear(words: string, approvalIds: ReadonlySet<string>): void {
    const { onError } = this.#options.host
    this.#onWords?.(words, ({ id }) => approvalIds.has(id)).catch(onError)
  }

  /** Ends the conversation. Requested approvals stay in the ledger; running calls have a moment to record their outcome. */
  async close(): Promise<void> {
    await this.#stopSending()
    if (this.#state === 'open') {
      this.#state = 'closing'
      this.#parts.openCalls().close()
      this.input.queue.close()
    }
    await this.#loop
    await this.#model?.disconnected
    await Promise.race([this.calls?.idle(), delay(ABANDON_AFTER_MS, undefined, { ref: false })])
  }

  /** Ends the conversation, so that another process continues it. */
  async handOver(): Promise<LiveSnapshot> {
    await this.#stopSending()
    const { calls, ...rest } = this.takeSnapshot()
    // A call that is being worked on ends here, and the others with it.
    const snapshot = { ...rest, calls: this.calls?.isWaiting === false ? [] : calls }
    await this.close()
    return snapshot
  }

  /** Accepts no further messages. Resolves when the model has those that are stored. */
  #stopSending(): Promise<void> {
    this.#isLeaving = true
    return this.whenSent()
  }

  /** Ends the conversation here, because another process continues it. */
  async abandon(): Promise<void> {
    if (this.#state === 'open') this.closeAsLost()
    await this.close()
  }

  /** Returns what another process needs to continue the conversation. */
  takeSnapshot(): LiveSnapshot {
    const { waiting, isWaiting } = this.calls ?? NO_CALLS
    const eventId = this.#parts.session.lastEventId
    const handle = isWaiting && this.#isAtRest ? this.#model?.coveringHandle : undefined
    return {
      ...(handle !== undefined && { handle }),
      ...(eventId !== undefined && { eventId }),
      calls: [...waiting],
    }
  }

  /** Whether the model has received everything that is stored, and everything that it has said is stored. */
  get #isAtRest(): boolean {
    return this.#state === 'open' && !this.isBusy && !this.#parts.session.isWriting
  }

  /** Returns the handle of an earlier session, if it covers everything that is stored. */
  #resumeFrom(): string | undefined {
    const { handle, eventId } = this.#options.continues ?? {}
    return eventId === this.#parts.session.lastEventId ? handle : undefined
  }

  /** Another process continues the conversation. */
  closeAsLost(): void {
    this.#lostError ??= new ProtocolError('turn-lost')
    this.#parts.openCalls().close()
    this.input.queue.close()
  }

  async #run(): Promise<void> {
    const { host, chat } = this.#options
    const { agent, services, runConfig, hostPlugins, terms } = host
    const model = host.createModel(this, () => this.#resumeFrom())
    this.#model = model
    let failure: unknown
    try {
      const events = runLiveAgent({
        chat,
        agent,
        model,
        services,
        queue: this.input.queue,
        runConfig,
        hostPlugins,
        terms,
        onRun: (context) => this.#parts.session.start(context),
        prepare: (event) => this.#parts.output.prepare(event),
      })
      for await (const event of events) this.#parts.output.handle(event)
    } catch (error) {
      failure = (await host.ledger.locks.findLoss(chat, error)) ?? toClientError(error)
      host.onError(explainModelError(error))
    }
    await this.#end(this.#lostError ?? failure)
  }

  onConnecting(request: LlmRequest): void {
    wrapTools(request, (call) => this.#parts.openCalls().start(call))
    if (this.#options.host.hasNonBlockingCalls) declareNonBlocking(request)
    this.#request = request
  }

  onConnected(): void {
    const { calls = [] } = this.#options.continues ?? {}
    if (calls.length > 0) this.#parts.openCalls().adopt(calls, (name) => this.findTool(name))
    this.#ready.resolve()
  }

  onHandle(): void {
    this.#parts.snapshots.saveAtRest()
  }

  onOutput(parts: readonly Part[]): void {
    this.#parts.output.recordAudio(parts)
    this.calls?.confirmParked()
  }

  onMark(part: Part, mark: LiveMark): void {
    this.#parts.output.recordMark(part, mark)
  }

  onInterrupted(): void {
    this.#parts.output.interrupt()
  }

  onCancelled(toolCallIds: readonly string[]): void {
    this.#parts.openCalls().cancel(toolCallIds)
  }

  onReplyLost(): void {
    this.#parts.output.cutOff()
  }

  onDropped(error: unknown): void {
    this.#parts.output.drop(error)
  }

  onStatus(status: LiveStatus): void {
    this.#options.listener.onStatus(status)
  }

  onError(error: unknown): void {
    this.#options.host.onError(error)
  }

  async #end(failure: unknown): Promise<void> {
    this.#state = 'closed'
    this.#parts.snapshots.close()
    this.#parts.openCalls().close()
    this.#ready.reject(failure ?? new ProtocolError('unavailable'))
    const unfinished = failure === undefined ? this.messages.unfinished : []
    await this.#parts.output.endUnfinished(unfinished)
    // Before the client learns of it, so that a reload shows the same. Another process continues a lost session.
    if (failure !== undefined && toProtocolError(failure).code !== 'turn-lost')
      await this.#parts.output.storeFailure(this.messages.ending, failure)
    this.messages.end(failure)
    await whenStored(unfinished)
    this.#options.listener.onStatus('closed')
  }
}

/** Resolves when the turns of messages have stored what they have streamed. Another process that takes the session over then knows it. */
async function whenStored(messages: readonly LiveMessage[]): Promise<void> {
  if (messages.length === 0) return
  const stored = messages.map(async ({ turn }) => (await turn)?.settled)
  // A turn may wait for its chat, or for the store.
  await Promise.race([
    Promise.allSettled(stored),
    delay(ABANDON_AFTER_MS, undefined, { ref: false }),
  ])
}
