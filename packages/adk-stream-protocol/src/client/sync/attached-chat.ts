import type { ChatRequestOptions } from 'ai'

import { Listeners } from '../../shared/collections.ts'
import type { AdkApi } from '../api/adk-api.ts'
import { AdkError } from '../adk-error.ts'
import type { WatchEvent } from '../api/watch-feed.ts'
import {
  type ChatObserver,
  type ResponseChannel,
  type StoredConversation,
  DECISION_CANCELLED,
} from '../connection/transport.ts'
import {
  type AttachableChat,
  type Decision,
  type PatchedMethods,
  createIdleWait,
  isBusy,
  patchChat,
} from './attachable-chat.ts'
import { findApproval, listOpenApprovals } from '../connection/chat-messages.ts'
import { isSyncChunk, isWriting, nextSync, shouldSend, START } from './next-sync.ts'
import {
  checkRefusal,
  loadForCatchUp,
  readTurn,
  reload,
  resumeStream,
  showServerTurn,
} from './read-into-chat.ts'
import type { DecisionSupplement } from '../connection/response-states.ts'
import {
  keepsMessages,
  regenerate,
  sendDecision,
  sendMessage,
  sendOutput,
  sendRefusedText,
  sendResponses,
  toSendable,
} from './send-from-chat.ts'
import type { SyncContext, SyncEffect, SyncEvent, SyncState } from './sync-state.ts'

/**
 * Options of `attachChat`.
 *
 * @inline
 */
export interface AttachOptions {
  /** The API of the bridge. With it, the chat follows what happens to it elsewhere and reloads what was lost. */
  readonly api?: Pick<AdkApi, 'loadChat' | 'watchChat'>
  /**
   * Loads the stored messages of the chat, and whether a turn is running, which they leave out: for when the outcome of a response was lost
   * or was decided elsewhere. With `after`, it may load only what has changed after that position. Default: `api`, or the transport.
   */
  readonly loadChat?: (options: {
    readonly after?: string | undefined
  }) => Promise<StoredConversation>
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

/** A chat that `attachChat` keeps in sync with the server. Use it to decide approvals, and to detach the chat. */
export class AttachedChat {
  readonly chat: AttachableChat
  readonly channel: ResponseChannel
  #options: AttachOptions
  /** The number of `attachChat` calls without a `detach`: React mounts twice. */
  #holders = 1
  #sync: SyncState = START
  readonly #context: SyncContext
  readonly #release: readonly (() => void)[]
  readonly #progress = new Listeners()
  #retryTimer: ReturnType<typeof setTimeout> | undefined
  #unwatch: (() => void) | undefined

  constructor(chat: AttachableChat, channel: ResponseChannel, options: AttachOptions) {
    this.chat = chat
    this.channel = channel
    this.#options = options
    const [original, restore] = patchChat(chat, this.#patchedMethods())
    this.#context = {
      chat,
      channel,
      original,
      idle: createIdleWait(chat, () => void this.#dispatch({ type: 'chat-idle' })),
      newestRequest: {},
      state: () => this.#sync,
      dispatch: (event) => this.#dispatch(event),
      load: (after) => this.#load(after),
      canLoad: () =>
        (this.#options.loadChat ?? this.#options.api) !== undefined ||
        typeof channel.loadChat === 'function',
      reportError: this.#reportError,
    }
    const unlisten = channel.onConnection(({ state }) => {
      if (state === 'open') void this.#dispatch({ type: 'connection-opened' })
    })
    this.#release = [unlisten, channel.observeChat(chat.id, this.#observer()), restore]
    this.#watch()
  }

  /** Approves a call, optionally with other arguments than those shown, a payload, or a grant that the approval offers. */
  approve(id: string, { reason, ...supplement }: ApproveOptions = {}): Promise<void> {
    return this.#decide({ id, approved: true, reason }, supplement)
  }

  /** Denies a call, optionally with a grant that the approval offers for denials. */
  deny(id: string, reason?: string, offer?: string): Promise<void> {
    return this.#decide(
      { id, approved: false, reason },
      offer === undefined ? undefined : { offer },
    )
  }

  /** Takes back a decision that waits for a connection. Returns false if it may have arrived. */
  cancelDecision(approvalId: string): boolean {
    return this.channel.cancelDecision?.(approvalId) === true || this.#withdraw(approvalId)
  }

  /** Withdraws a decision that waits for the end of a stream. */
  #withdraw(approvalId: string): boolean {
    const { chat, channel } = this
    const part = findApproval(chat.messages, approvalId, 'approval-responded')
    if (!part || channel.responses.all.get(approvalId) !== 'queued') return false
    const { toolCallId = '' } = part
    const isRead = chat.messages.at(-1)?.parts.includes(part) && isBusy(chat)
    const error = DECISION_CANCELLED
    const ids = [approvalId]
    void this.#dispatch({ type: 'responses-refused', ids, error, isUnreported: true })
    // The AI SDK would show the decision again with the next chunk.
    if (isRead)
      channel.pushChunk?.(chat.id, { type: 'tool-approval-request', approvalId, toolCallId })
    return true
  }

  /** Calls the listener when calls of the chat may have changed. Returns a function that unsubscribes. */
  onProgress(listener: () => void): () => void {
    return this.#progress.add(listener)
  }

  /** Whether a message is still being written, as far as this page reads it. */
  isWriting(messageId: string): boolean {
    return isWriting(this.#sync, isBusy(this.chat), messageId)
  }

  get isDetached(): boolean {
    return this.#sync.state === 'detached'
  }

  /** Shows the stored messages, if there is a way to load them. Resolves with false if they could not be loaded. */
  async catchUp(): Promise<boolean> {
    return (await this.checkStored('')) !== undefined
  }

  /**
   * @internal Shows the stored messages. Resolves with whether a message is among them: a running turn is left out. Undefined if they could
   * not be loaded.
   */
  async checkStored(messageId: string): Promise<boolean | undefined> {
    try {
      const loaded = await reload(this.#context)
      return loaded?.known.includes(messageId) ?? true
    } catch (error) {
      this.#reportError(error)
      return undefined
    }
  }

  /** @internal Shows stored messages that were loaded elsewhere, with what only this page has. */
  async showStored(loaded: StoredConversation): Promise<void> {
    await this.#dispatch({ type: 'reloaded', loaded })
  }

  /** @internal CL1991: the options to send the newest message with again, or to request its reply again. */
  get requestOptions(): ChatRequestOptions | undefined {
    // The AI SDK has accepted them.
    return this.#context.newestRequest.options as ChatRequestOptions | undefined
  }

  /** @internal The page has marked the last message as stopped: what is stored follows. */
  noteStop(): void {
    void this.#dispatch({ type: 'marked' })
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
    this.#context.idle.release()
  }

  #dispatch(event: SyncEvent): Promise<void> | undefined {
    const { chat, channel } = this
    const view = {
      messages: chat.messages,
      // The AI SDK counts as idle when there was nothing to resume, although it is sending a message.
      isBusy: isBusy(chat) || this.#isSending(),
      hasFailed: chat.status === 'error',
      keepsEdit: chat.status === 'error' && !keepsMessages(chat.error),
      hasOpenStream: channel.openStream(chat.id) !== undefined,
      responses: channel.responses.all,
    }
    const [state, effects] = nextSync(this.#sync, event, view)
    this.#sync = state
    const work = effects.flatMap((effect) => this.#run(effect) ?? [])
    return work.length === 0 ? undefined : Promise.all(work).then(() => undefined)
  }

  /** Returns a promise if the caller that gave a response has to wait for the effect. */
  #run(effect: SyncEffect): Promise<void> | undefined {
    const context = this.#context
    const { chat, channel, original } = context
    switch (effect.type) {
      case 'set-messages':
        chat.messages = effect.messages
        return undefined
      case 'show-decision':
        return Promise.resolve(original.addDecision(effect.decision))
      case 'queue-decision':
        return this.#queue(effect.decision.id, original.addDecision(effect.decision))
      case 'queue-output':
        return this.#queue(effect.output.toolCallId, original.addOutput(effect.output))
      case 'send-decision':
        return sendDecision(context, effect.decision, effect.supplement)
      case 'send-output':
        return sendOutput(context, effect.output, effect.isShown)
      case 'send-responses':
        return this.#report(sendResponses(context, effect.messageId))
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
        channel.responses.supplement(effect.decision, effect.supplement)
        return undefined
      case 'load':
        return this.#report(loadForCatchUp(context, effect.after))
      case 'check-refusal':
        return checkRefusal(context, effect.refusal)
      case 'resume':
        return this.#report(resumeStream(context))
      case 'read-turn':
        return this.#report(readTurn(context, effect.messageId))
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

  async #load(after?: string): Promise<StoredConversation | undefined> {
    const { api, loadChat } = this.#options
    const { id } = this.chat
    if (loadChat) return loadChat({ after })
    return api ? api.loadChat(id, { after }) : this.channel.loadChat?.(id, { after })
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
    const { type } = event
    if (type === 'approval')
      this.#options.onApproval?.({ approvalId: event.approvalId, state: event.state })
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
      sendMessage: (message, options) => sendMessage(this.#context, message, options),
      regenerate: (options) => regenerate(this.#context, options),
      sendAutomaticallyWhen: ({ messages }) =>
        shouldSend(messages.at(-1), this.channel.responses.all),
      onFinish: () => this.#context.idle.onFinish(),
      isSending: this.#isSending,
    }
  }

  #observer(): ChatObserver {
    return {
      chat: this.chat,
      onChunk: (chunk, source) =>
        isSyncChunk(chunk) ? this.#dispatch({ type: 'chunk', chunk, source }) : undefined,
      onStreamEnded: (read) => void this.#dispatch({ type: 'stream-ended', read }),
      onStopped: () => void this.#dispatch({ type: 'stopped' }),
      onResponsesRefused: (ids, error) =>
        void this.#dispatch({ type: 'responses-refused', ids, error, isUnreported: false }),
      onTurn: (turn) => this.#report(showServerTurn(this.#context, turn)),
      onUserMessage: (message, source) =>
        void this.#dispatch({ type: 'user-message', message, source }),
      onTextRefused: (messageId, error) =>
        this.#report(sendRefusedText(this.#context, messageId, error)),
      listOpenApprovals: () => listOpenApprovals(this.chat.messages),
      reload: async (edited) => (await reload(this.#context, edited))?.known,
    }
  }

  readonly #isSending = (): boolean => this.channel.isSending(this.chat.id)

  /** Runs work that no caller waits for. */
  #report(work: Promise<unknown>): undefined {
    work.catch(this.#reportError)
  }

  readonly #reportError = (error: unknown): undefined => {
    if (error !== DECISION_CANCELLED) this.#options.onError?.(error)
  }
}

interface ApproveOptions extends DecisionSupplement {
  readonly reason?: string
}
