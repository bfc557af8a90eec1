import type { Chunk } from '../../protocol/chunk.ts'
import { Listeners } from '../../shared/collections.ts'
import type { AdkApi } from '../api/adk-api.ts'
import { AdkError, readErrorCode } from '../adk-error.ts'
import type { WatchEvent } from '../api/watch-feed.ts'
import { toSendable } from '../tools/browser-tools.ts'
import {
  type ChatObserver,
  type ServerTurn,
  type ResponseChannel,
  type StoredConversation,
  DECISION_CANCELLED,
  readChunks,
} from '../transports/transport.ts'
import {
  type AttachableChat,
  type Decision,
  type IdleWait,
  type OriginalMethods,
  type PatchedMethods,
  type ToolOutput,
  createIdleWait,
  isBusy,
  keepIfRefused,
  patchChat,
} from './attachable-chat.ts'
import { type MessageView, showTurn } from './chat-messages.ts'
import { isWriting, nextSync, shouldSend, START, isSyncChunk } from './next-sync.ts'
import type { DecisionSupplement } from './response-states.ts'
import type { SyncEffect, SyncEvent, SyncState } from './sync-state.ts'

/**
 * Options of `attachChat`.
 *
 * @inline
 */
export interface AttachOptions {
  /** The API of the bridge. With it, the chat follows what happens to it elsewhere and reloads what was lost. */
  readonly api?: Pick<AdkApi, 'loadChat' | 'watchChat'>
  /** Loads the stored messages of the chat, for when the outcome of a response was lost or was decided elsewhere. Default: `api`, or the transport. */
  readonly loadMessages?: () => Promise<readonly MessageView[]>
  /** Called when an approval of the chat changes, here or elsewhere. Needs `api`. */
  readonly onApproval?: (approval: { approvalId: string; state: string }) => void
  /** Called with errors that no request of the chat failed with, such as a decision that was rejected while the reply continued. */
  readonly onError?: (error: unknown) => void
  /** Called with the ids of the approvals and calls whose responses the server rejected. */
  readonly onRefused?: (ids: readonly string[], error: unknown) => void
}

/**
 * Sends decisions and tool outputs of a chat as soon as they are given: while the stream is open on a socket, in a request of their own
 * otherwise. None is lost, and none is sent twice. Call it right after the chat is created. A second call returns the same object,
 * which is detached after as many calls of `detach()`.
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

type WithoutChat<Event> = Event extends unknown ? Omit<Event, 'chat'> : never

/** A chat that `attachChat` keeps in sync with the server. Use it to decide approvals, and to detach the chat. */
export class AttachedChat {
  readonly chat: AttachableChat
  readonly channel: ResponseChannel
  #options: AttachOptions
  /** The number of `attachChat` calls without a `detach`: React mounts twice. */
  #holders = 1
  #sync: SyncState = START
  readonly #original: OriginalMethods
  readonly #release: readonly (() => void)[]
  readonly #progress = new Listeners()
  readonly #idle: IdleWait
  #retryTimer: ReturnType<typeof setTimeout> | undefined
  #unwatch: (() => void) | undefined

  constructor(chat: AttachableChat, channel: ResponseChannel, options: AttachOptions) {
    this.chat = chat
    this.channel = channel
    this.#options = options
    this.#idle = createIdleWait(chat, () => void this.#dispatch({ type: 'chat-idle' }))
    const [original, restore] = patchChat(chat, this.#patchedMethods())
    this.#original = original
    const unlisten = channel.onConnection(({ state }) => {
      if (state === 'open') void this.#dispatch({ type: 'connection-opened' })
    })
    this.#release = [unlisten, channel.observeChat(chat.id, this.#observer()), restore]
    this.#watch()
  }

  /** Approves a call, optionally with other arguments than those shown, or with a payload. */
  approve(id: string, { reason, ...supplement }: ApproveOptions = {}): Promise<void> {
    return this.#decide({ id, approved: true, ...(reason !== undefined && { reason }) }, supplement)
  }

  deny(id: string, reason?: string): Promise<void> {
    return this.#decide({ id, approved: false, ...(reason !== undefined && { reason }) })
  }

  /** Takes back a decision that waits for a connection. Returns false if it may have arrived. */
  cancelDecision(approvalId: string): boolean {
    return this.channel.cancelDecision?.(approvalId) ?? false
  }

  /** Calls the listener when calls of the chat may have changed. Returns a function that unsubscribes. */
  onProgress(listener: () => void): () => void {
    return this.#progress.add(listener)
  }

  /** Whether the server offered a call to this page. */
  isOffered(toolCallId: string): boolean {
    return this.#sync.state === 'attached' && this.#sync.offeredCalls.has(toolCallId)
  }

  /** Whether a message is still being written, as far as this page reads it. */
  isWriting(messageId: string): boolean {
    return isWriting(this.#sync, isBusy(this.chat), messageId)
  }

  get isDetached(): boolean {
    return this.#sync.state === 'detached'
  }

  /** Shows the stored messages, if they can be loaded. */
  async catchUp(): Promise<void> {
    await this.#reload().catch(this.#reportError)
  }

  /** Counts one more holder. */
  join(options: AttachOptions): this {
    this.#holders += 1
    this.#options = options
    this.#watch()
    return this
  }

  /** Restores the chat's own methods when the last holder detaches. */
  detach(): void {
    this.#holders -= 1
    if (this.#holders > 0) return
    ATTACHED.delete(this.chat)
    this.#unwatch?.()
    void this.#dispatch({ type: 'detached' })
    for (const release of this.#release) release()
    this.#idle.release()
  }

  /** Passes an event to `nextSync`, and runs the effects that it returns. */
  #dispatch(event: WithoutChat<SyncEvent>): Promise<void> | undefined {
    const { chat, channel } = this
    const view = {
      messages: chat.messages,
      isBusy: isBusy(chat),
      hasFailed: chat.status === 'error',
      hasOpenStream: channel.openStream(chat.id) !== undefined,
      responses: channel.responses.all,
    }
    const [state, effects] = nextSync(this.#sync, { ...event, chat: view })
    this.#sync = state
    const work = effects.flatMap((effect) => this.#run(effect) ?? [])
    return work.length === 0 ? undefined : Promise.all(work).then(() => undefined)
  }

  /** Returns a promise if the caller that gave a response has to wait for the effect. */
  #run(effect: SyncEffect): Promise<void> | undefined {
    const { chat, channel } = this
    switch (effect.type) {
      case 'set-messages':
        chat.messages = effect.messages
        return undefined
      case 'show-decision':
        return Promise.resolve(this.#original.addDecision(effect.decision))
      case 'queue-decision':
        return this.#queue(effect.decision.id, this.#original.addDecision(effect.decision))
      case 'queue-output':
        return this.#queue(effect.output.toolCallId, this.#original.addOutput(effect.output))
      case 'send-decision':
        return this.#sendDecision(effect.decision, effect.supplement)
      case 'send-output':
        return this.#sendOutput(effect.output, effect.isShown)
      case 'send-responses':
        return this.#report(this.#sendResponses(effect.messageId))
      case 'push-chunk':
        channel.openStream(chat.id)?.pushChunk(chat.id, effect.chunk)
        return undefined
      case 'mark':
        channel.responses.mark(effect.ids, effect.response)
        return undefined
      case 'forget':
        channel.responses.forget(effect.id)
        return undefined
      case 'supplement':
        channel.responses.supplement(effect.id, effect.supplement)
        return undefined
      case 'load':
        return this.#report(this.#loadForCatchUp())
      case 'reload':
        return this.#report(this.#reload())
      case 'check-refusal':
        return this.#checkRefusal(effect)
      case 'resume':
        return this.#report(this.#resume(effect.purpose))
      case 'read-turn':
        return this.#report(this.#readTurn(effect.messageId))
      case 'schedule-retry':
        clearTimeout(this.#retryTimer)
        this.#retryTimer = setTimeout(
          () => void this.#dispatch({ type: 'retry-due' }),
          effect.delayMs,
        )
        return undefined
      case 'cancel-retry':
        clearTimeout(this.#retryTimer)
        return undefined
      case 'report-refusal':
        if (effect.error !== DECISION_CANCELLED) this.#options.onRefused?.(effect.ids, effect.error)
        return undefined
      case 'report-error':
        this.#reportError(effect.error)
        return undefined
      case 'notify':
        this.#progress.call()
        return undefined
    }
  }

  async #decide(decision: Decision, supplement?: DecisionSupplement): Promise<void> {
    await this.#dispatch({ type: 'decision-given', decision, supplement })
  }

  async #queue(id: string, added: void | PromiseLike<void>): Promise<void> {
    await added
    await this.#dispatch({ type: 'response-queued', id })
  }

  async #sendDecision(
    { id, approved, reason }: Decision,
    supplement: DecisionSupplement | undefined,
  ): Promise<void> {
    const { chat, channel } = this
    const stream = channel.openStream(chat.id)
    const said = reason === undefined ? {} : { reason }
    // The chat first: its outcome must not arrive before the decision.
    await this.#original.addDecision({ id, approved, ...said })
    const { args, payload, preview } = (approved && supplement) || {}
    try {
      const approval = await stream?.decide({
        chatId: chat.id,
        approvalId: id,
        approved,
        ...said,
        ...(args && { args: { ...args } }),
        ...(payload !== undefined && { payload }),
        ...(preview !== undefined && { preview }),
      })
      await this.#dispatch({ type: 'decision-acknowledged', id, approval: approval ?? '' })
    } catch (error) {
      await this.#dispatch({ type: 'responses-refused', ids: [id], error, isUnreported: true })
    }
  }

  async #sendOutput(output: ToolOutput, isShown: boolean): Promise<void> {
    const { chat, channel } = this
    const { toolCallId, state, output: value, errorText = '' } = output
    if (!isShown) await this.#original.addOutput(output)
    const result = state === 'output-error' ? { errorText } : { output: value }
    try {
      await channel.toolOutput?.({ chatId: chat.id, toolCallId, ...result })
      await this.#dispatch({ type: 'output-acknowledged', id: toolCallId })
    } catch (error) {
      await this.#dispatch({ type: 'output-failed', output, error })
    }
  }

  async #checkRefusal({ refusal }: Extract<SyncEffect, { type: 'check-refusal' }>): Promise<void> {
    const loaded = await this.#readRefused(refusal.ids).catch(this.#reportError)
    const { known = [], isRunning = false } = loaded ?? {}
    await this.#dispatch({ ...refusal, type: 'refusal-checked', known, isRunning })
  }

  /** Loads the messages of refused decisions. A message that is being written is read to its end first, because it is not stored. */
  async #readRefused(ids: readonly string[]): Promise<Reloaded | undefined> {
    const { chat } = this
    const loaded = await this.#reload()
    const isFollowing = this.#sync.state === 'attached' && this.#sync.isFollowing
    if (!loaded || isFollowing || isBusy(chat)) return loaded
    const isStored = ids.every((id) => {
      const shown = chat.messages.find(({ parts }) =>
        parts.some((part) => part.approval?.id === id),
      )
      return !shown || loaded.known.includes(shown.id)
    })
    if (isStored) return loaded
    await chat.resumeStream()
    return this.#reload()
  }

  async #resume(purpose: 'interrupted' | 'outcome' | 'catch-up'): Promise<void> {
    const { chat } = this
    const { messages } = chat
    await chat.resumeStream()
    if (purpose === 'outcome') await this.#dispatch({ type: 'outcome-read' })
    if (purpose === 'catch-up')
      await this.#dispatch({ type: 'turn-read', wasRunning: chat.messages !== messages })
  }

  async #readTurn(messageId: string): Promise<void> {
    try {
      const stream = await this.channel.reconnectToStream({ chatId: this.chat.id })
      if (stream) await this.#show({ messageId, continues: false, chunks: readChunks(stream) })
      await this.#dispatch({ type: 'turn-read', wasRunning: stream !== null })
    } catch (error) {
      await this.#dispatch({ type: 'catch-up-failed', error })
    }
  }

  /** Writes a turn that the chat did not request into its messages. */
  async #show(turn: ServerTurn): Promise<void> {
    const { messageId, userMessage } = turn
    const isNew = !this.chat.messages.some(({ id }) => id === messageId)
    void this.#dispatch({ type: 'turn-shown', messageId, isSpokenReply: isNew && !userMessage })
    try {
      await showTurn(this.chat, { ...turn, chunks: this.#observeShown(turn.chunks) })
    } finally {
      void this.#dispatch({ type: 'shown-turn-ended', messageId })
    }
  }

  async *#observeShown(chunks: AsyncIterable<Chunk>): AsyncGenerator<Chunk, void> {
    for await (const chunk of chunks) {
      if (isSyncChunk(chunk)) void this.#dispatch({ type: 'chunk', chunk, source: 'shown' })
      yield chunk
    }
  }

  async #loadForCatchUp(): Promise<void> {
    try {
      const loaded = await this.#options.api?.loadChat(this.chat.id)
      if (!loaded) return
      const { messages, running: isRunning } = loaded
      await this.#dispatch({ type: 'loaded', messages, isRunning })
    } catch (error) {
      await this.#dispatch({ type: 'catch-up-failed', error })
    }
  }

  /** Shows the stored messages. Returns undefined if they cannot be loaded. */
  async #reload(): Promise<Reloaded | undefined> {
    const loaded = await this.#load()
    if (!loaded) return undefined
    const { messages, running: isRunning } = loaded
    await this.#dispatch({ type: 'reloaded', messages, isRunning })
    return { known: messages.map(({ id }) => id), isRunning }
  }

  async #load(): Promise<StoredConversation | undefined> {
    const { api, loadMessages } = this.#options
    if (loadMessages) return { messages: await loadMessages(), running: false }
    return api ? api.loadChat(this.chat.id) : this.channel.loadChat?.(this.chat.id)
  }

  #watch(): void {
    const { api } = this.#options
    if (!api || this.#unwatch) return
    void this.#dispatch({ type: 'feed-started' })
    const unwatch = api.watchChat(this.chat.id, (event) => this.#onFeedEvent(event))
    this.#unwatch = () => {
      unwatch()
      this.channel.onFeed?.(this, undefined)
    }
  }

  #onFeedEvent(event: WatchEvent): void {
    const { onApproval } = this.#options
    const { type } = event
    if (type === 'approval') onApproval?.({ approvalId: event.approvalId, state: event.state })
    if (type === 'open') this.channel.onFeed?.(this, { state: 'open' })
    if (type === 'lost') {
      const { attempt, retryAt, error } = event
      const isSignedOut = error instanceof AdkError && error.code === 'unauthenticated'
      const lost = { state: 'lost' as const, attempt, retryAt }
      this.channel.onFeed?.(this, { ...lost, ...(isSignedOut && { isSignedOut }) })
    }
    void this.#dispatch({ type: 'feed-event', event })
  }

  #patchedMethods(): PatchedMethods {
    return {
      addToolApprovalResponse: (decision) => this.#decide(decision),
      addToolOutput: async (output) =>
        this.#dispatch({ type: 'output-given', output: toSendable(output) }),
      sendMessage: (message, options) => this.#sendMessage(message, options),
      regenerate: (options) => this.#regenerate(options),
      sendAutomaticallyWhen: ({ messages }) =>
        shouldSend(this.#sync, messages.at(-1), this.channel.responses.all),
      onFinish: () => this.#idle.onFinish(),
    }
  }

  #observer(): ChatObserver {
    return {
      chat: this.chat,
      onChunk: (chunk, source) =>
        isSyncChunk(chunk) ? this.#dispatch({ type: 'chunk', chunk, source }) : undefined,
      onStreamEnded: () => void this.#dispatch({ type: 'stream-ended' }),
      onStreamInterrupted: () => void this.#dispatch({ type: 'stream-interrupted' }),
      onResponsesRefused: (ids, error) =>
        void this.#dispatch({ type: 'responses-refused', ids, error, isUnreported: false }),
      onTurn: (turn) => this.#report(this.#show(turn)),
      onUserMessage: (message, source) =>
        void this.#dispatch({ type: 'user-message', message, source }),
      onTextRefused: (messageId, error) => this.#report(this.#sendRefused(messageId, error)),
      reload: async () => (await this.#reload())?.known,
    }
  }

  /** CL852: sends a refused text as a request, so that a second refusal is the error of the chat, which can be recovered from. */
  async #sendRefused(messageId: string, error: unknown): Promise<void> {
    const message = this.chat.messages.find(({ id }) => id === messageId)
    const isSent = message !== undefined && (await this.#sendAgain(message))
    if (!isSent) this.#reportError(error)
  }

  /** CL853: sends queued responses, and then a message that could not be sent before: the error of the message is gone with this request. */
  async #sendResponses(messageId: string): Promise<void> {
    const { chat } = this
    const last = chat.messages.at(-1)
    const unsent = chat.status === 'error' && last?.role === 'user' ? last : undefined
    await this.#original.sendMessage(undefined, { messageId })
    const { error } = chat
    // If there is no connection, the message and its error are still there.
    const isDisconnected = error !== undefined && readErrorCode(error) === undefined
    if (unsent && !isDisconnected) await this.#sendAgain(unsent)
  }

  /** Sends a message in a request, unless the server has it. Returns false then. */
  async #sendAgain(message: MessageView): Promise<boolean> {
    const { chat } = this
    const stored = await this.#reload().catch(() => undefined)
    if (stored?.known.includes(message.id) === true) return false
    if (!this.channel.openStream(chat.id)) await this.#idle.wait()
    chat.messages = chat.messages.filter(({ id }) => id !== message.id)
    await this.#sendMessage(message, undefined)
    return true
  }

  async #regenerate(options: object = {}): Promise<void> {
    const { chat } = this
    // The rest of the message is not shown: a new one replaces it.
    await this.#detachReader()
    // The message is named, so that a lost request can be distinguished from one that the server has handled.
    const messageId = chat.messages.findLast(({ role }) => role === 'assistant')?.id
    const isLast = messageId !== undefined && chat.messages.at(-1)?.id === messageId
    const named = { ...(isLast && { messageId }), ...options }
    await keepIfRefused(chat, () => this.#original.regenerate(named))
  }

  /** A new message does not wait for a stream that is held open by an approval. Its rest is shown above the new reply. */
  async #sendMessage(message: unknown, options: unknown): Promise<void> {
    const rest = message === undefined ? undefined : await this.#detachReader()
    if (rest) this.#report(this.#show(rest))
    await keepIfRefused(this.chat, () => this.#original.sendMessage(message, options))
  }

  /** Ends the stream that the chat reads, if there is one. Resolves with the rest of it when the chat is idle. */
  async #detachReader(): Promise<ServerTurn | undefined> {
    const { chat, channel } = this
    const rest = channel.openStream(chat.id)?.detachReader(chat.id)
    if (rest) await this.#idle.wait()
    return rest
  }

  /** Runs work that no caller waits for. */
  #report(work: Promise<unknown>): undefined {
    work.catch(this.#reportError)
  }

  readonly #reportError = (error: unknown): undefined => {
    if (error !== DECISION_CANCELLED) this.#options.onError?.(error)
  }
}

interface Reloaded {
  /** The ids of the stored messages. */
  readonly known: readonly string[]
  readonly isRunning: boolean
}

interface ApproveOptions extends DecisionSupplement {
  readonly reason?: string
}
