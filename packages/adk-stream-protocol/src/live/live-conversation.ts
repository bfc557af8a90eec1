import { setTimeout as delay } from 'node:timers/promises'

import type {
  BaseAgent,
  Event,
  LlmRequest,
  PluginManager,
  RunConfig,
  RunnerConfig,
} from '@google/adk'
import { Runner } from '@google/adk'
import type { Blob, Content, Part } from '@google/genai'

import { createFailureEvent } from '../agent/history/interrupted-turn.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import type { Approval, Refusal } from '../approvals/approval.ts'
import type { Decision } from '../approvals/next-approval.ts'
import type { RunState } from '../calls/run-state.ts'
import type { CredentialSource } from '../calls/sign-in-calls.ts'
import { SignInCalls } from '../calls/sign-in-calls.ts'
import type { ToolErrors } from '../calls/run-call.ts'
import {
  LivePlugin,
  declareNonBlocking,
  findLiveTool,
  toLiveAgent,
  wrapTools,
  runLiveCall,
} from '../gemini-live/live-agent.ts'
import { toClientError } from '../gemini-live/gemini-socket.ts'
import type {
  LiveHooks,
  LiveStatus,
  ReconnectingLiveModel,
} from '../gemini-live/reconnecting-model.ts'
import { ProtocolError, toProtocolError } from '../protocol/errors.ts'
import type { ShownReply } from '../protocol/message.ts'
import type { OutputResponse } from '../protocol/read-responses.ts'
import { defer } from '../shared/async.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import type { Turn } from '../turns/turn.ts'
import { LiveCalls } from './live-calls.ts'
import { LiveInput } from './live-input.ts'
import type { LiveMessageOptions, OpenTurn } from './live-message.ts'
import { LiveMessage, LiveMessages } from './live-message.ts'
import { LiveOutput, toRepliedEvent, toUserEvent } from './live-output.ts'
import type { LiveSnapshot } from './live-snapshot.ts'
import { SnapshotSaver } from './live-snapshot.ts'
import type { LiveListener } from './live-watchers.ts'
import type { LiveCallsOptions } from './open-call.ts'
import { SessionWriter } from './session-writer.ts'
import { TurnTaking } from './turn-taking.ts'
import { partialUserMessage, UserSpeech } from './user-speech.ts'

export interface LiveConversationOptions extends Pick<
  LiveCallsOptions,
  'ledger' | 'terms' | 'browserCalls' | 'cancelRemoteTasks' | 'onError'
> {
  readonly chat: AppChatRef
  readonly agent: BaseAgent
  /** Responds for tools that throw. */
  readonly errors: ToolErrors
  /** The plugins of the host. ADK does not know them in a live run. */
  readonly hostPlugins: PluginManager
  /** The credentials of people who signed in. Undefined if no tool may ask for any. */
  readonly credentials: CredentialSource | undefined
  readonly services: Omit<RunnerConfig, 'agent'> & { readonly appName: string }
  /** Creates the model of this conversation. */
  readonly createModel: (
    hooks: LiveHooks,
    resumeFrom: () => string | undefined,
  ) => ReconnectingLiveModel
  /** The session of another process that this one continues. */
  readonly continues: LiveSnapshot | undefined
  /** Stores a snapshot of the session, for a process that continues it after a crash. Never rejects. */
  readonly onRest: (snapshot: LiveSnapshot) => void
  readonly runConfig: Partial<RunConfig>
  /** Runs the agent of an `AgentTool`. Does nothing for any other tool. */
  readonly nest: (call: ToolCall, outer: RunState) => void
  /** Whether the model continues to speak while its calls wait. */
  readonly hasNonBlockingCalls: boolean
  /** Whether the model completes a turn with calls at once. This is an assumption until the model shows it. */
  readonly completesCalls: boolean
  readonly openTurn: OpenTurn
  /** Called when a result was stored in a message that is not streamed any more. */
  readonly onLateResult: (messageId: string) => void
  readonly listener: LiveListener
}

/** Lets the words of a person decide the open approval of the chat, if it is in reach. */
type DecideSpoken = (
  reply: ShownReply,
  isInReach: (approval: Approval) => boolean,
) => Promise<unknown>

/** How long `close` waits for running calls. */
const ABANDON_AFTER_MS = 1_000

/** The state of a conversation in which the model has made no call. */
const NO_CALLS: Pick<LiveCalls, 'waiting' | 'isWaiting'> = { waiting: [], isWaiting: true }

/** One live conversation with the model, through ADK's `runLive`. Each reply is a message, streamed in a turn of its own. Its methods `on…` are for its model. */
export class LiveConversation implements LiveHooks {
  readonly #options: LiveConversationOptions
  readonly #turnTaking: TurnTaking<LiveMessage>
  /** Created with the first call, because most conversations wait for a person and have none. */
  #calls: LiveCalls | undefined
  /** The replies of the model, each in a turn of its own. */
  readonly messages: LiveMessages
  /** What the model receives. */
  readonly input: LiveInput
  readonly #output: LiveOutput
  /** Created with the first words of the user. */
  #speech: UserSpeech | undefined
  #decideSpoken: DecideSpoken | undefined
  readonly #loop: Promise<void>
  #request: LlmRequest | undefined
  #model: ReconnectingLiveModel | undefined
  readonly #session = new SessionWriter()
  /** Resolves when the model is connected. Messages from then on are not part of its history. */
  readonly #ready = defer()
  #lostError: ProtocolError | undefined
  readonly #snapshots: SnapshotSaver
  /** Messages that are being stored and are not sent to the model yet. */
  #sending = 0
  #state: 'open' | 'closing' | 'closed' = 'open'

  constructor(options: LiveConversationOptions) {
    this.#options = options
    this.#ready.promise.catch(() => undefined)
    this.#turnTaking = new TurnTaking(options)
    this.messages = new LiveMessages({
      turnTaking: this.#turnTaking,
      openTurn: options.openTurn,
      onTurn: (turn, message) => options.listener.onTurn(turn, partialUserMessage(message)),
      onStop: (message) => {
        if (this.#turnTaking.speaker === message) this.interrupt()
      },
      onError: options.onError,
    })
    this.input = new LiveInput({
      turnTaking: this.#turnTaking,
      hasNonBlockingCalls: options.hasNonBlockingCalls,
      park: () => {
        if (this.#calls?.park()) this.#snapshots.saveCalls()
      },
    })
    this.#output = new LiveOutput({
      turnTaking: this.#turnTaking,
      messages: this.messages,
      session: this.#session,
      listener: options.listener,
      hasNonBlockingCalls: options.hasNonBlockingCalls,
      findTool: (name) => this.#findTool(name),
      onFailed: (message, error) => void this.#storeFailure([message], error),
      onSpeech: (text, isFinished) => this.#receiveSpeech(text, isFinished),
    })
    this.#snapshots = new SnapshotSaver({
      take: () => (this.#state === 'open' ? this.#takeSnapshot() : undefined),
      save: options.onRest,
    })
    this.#loop = this.#run()
  }

  /** Resolves when the conversation has ended. Never rejects. */
  get ended(): Promise<void> {
    return this.#loop
  }

  /** Resolves when the conversation has taken the calls of an earlier session, or has failed to start. Never rejects. */
  get adopted(): Promise<void> {
    return this.#ready.promise.catch(() => undefined)
  }

  /** Whether a call runs or the model replies. */
  get isBusy(): boolean {
    return this.#state === 'open' && (this.#calls?.isBusy === true || this.messages.isBusy)
  }

  /** Whether the conversation knows all events of its chat. */
  isCurrent(): Promise<boolean> {
    return this.#session.isCurrent()
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
    this.messages.pauseOthers()
    const message = new LiveMessage(options)
    this.#sending += 1
    try {
      await this.#session.append(toUserEvent(message, content))
      // The conversation may have ended meanwhile.
      if (this.#state !== 'open') throw new ProtocolError('unavailable')
      message.isUserMessageStored = true
      message.isPromptKnown = true
      const decided = await decide?.()
      if (decided) return await this.#showDecision(message, decided)
      this.input.sendMessage(message, content)
    } finally {
      this.#sending -= 1
    }
    return this.messages.open(message, { background: false })
  }

  /** Streams the message after a reply that decided an approval. The agent continues in the message with the call. */
  async #showDecision(message: LiveMessage, approval: Approval): Promise<Turn> {
    const event = toRepliedEvent(message, this.#options.agent.name, approval)
    await this.#session.append(event)
    const turn = this.messages.open(message, { background: false })
    message.push(event)
    this.messages.closeIfDone(message)
    return turn
  }

  /** Sends a chunk of audio, or an image. `decideSpoken` lets what the person says decide an approval. */
  sendMedia(blob: Blob, decideSpoken?: DecideSpoken): void {
    if (decideSpoken) this.#decideSpoken = decideSpoken
    this.input.sendMedia(blob)
  }

  /** Interrupts the model's speech. */
  interrupt(): void {
    this.#model?.interrupt()
  }

  /** Returns the id of the message that made an open call. */
  messageOf(toolCallId: string): string | undefined {
    return this.hasCall(toolCallId) ? this.messages.ofCall(toolCallId).messageId : undefined
  }

  hasCall(toolCallId: string): boolean {
    return this.#calls?.has(toolCallId) ?? false
  }

  /** Whether an approval was requested for an open call. */
  get hasApprovals(): boolean {
    return this.#calls?.hasApprovals ?? false
  }

  approvalChanged(approval: Approval): void {
    this.#calls?.approvalChanged(approval)
  }

  /** Records a decision about an approval of this conversation, and runs the call if the decision completes it. */
  decide(approval: Approval, decision: Decision): Promise<Approval | Refusal> {
    return this.#openCalls().decide(approval, decision)
  }

  /** Takes the output of a browser tool. Returns false if the call does not wait for one. */
  submitOutput(output: OutputResponse): boolean {
    return this.#calls?.submitOutput(output) ?? false
  }

  /** Ends the conversation. Requested approvals stay in the ledger; running calls have a moment to record their outcome. */
  async close(): Promise<void> {
    if (this.#state === 'open') {
      this.#state = 'closing'
      this.#openCalls().close()
      this.input.queue.close()
    }
    await this.#loop
    await this.#model?.disconnected
    await Promise.race([this.#calls?.idle(), delay(ABANDON_AFTER_MS, undefined, { ref: false })])
  }

  /** Ends the conversation, so that another process continues it. */
  async handOver(): Promise<LiveSnapshot> {
    const { calls, ...rest } = this.#takeSnapshot()
    // A call that is being worked on ends here, and the others with it.
    const snapshot = { ...rest, calls: this.#calls?.isWaiting === false ? [] : calls }
    await this.close()
    return snapshot
  }

  /** Ends the conversation here, because another process continues it. */
  async abandon(): Promise<void> {
    if (this.#state === 'open') this.#closeAsLost()
    await this.close()
  }

  #takeSnapshot(): LiveSnapshot {
    const { waiting, isWaiting } = this.#calls ?? NO_CALLS
    const eventId = this.#session.lastEventId
    const handle = isWaiting && this.#isAtRest ? this.#model?.coveringHandle : undefined
    return {
      ...(handle !== undefined && { handle }),
      ...(eventId !== undefined && { eventId }),
      calls: [...waiting],
    }
  }

  /** Whether the model has received everything that is stored, and everything that it has said is stored. */
  get #isAtRest(): boolean {
    return this.#state === 'open' && !this.isBusy && this.#sending === 0 && !this.#session.isWriting
  }

  /** Returns the handle of an earlier session, if it covers everything that is stored. */
  #resumeFrom(): string | undefined {
    const { handle, eventId } = this.#options.continues ?? {}
    return eventId === this.#session.lastEventId ? handle : undefined
  }

  #openCalls(): LiveCalls {
    this.#calls ??= this.#createCalls()
    return this.#calls
  }

  #createCalls(): LiveCalls {
    const { agent, onError, errors, hostPlugins, credentials } = this.#options
    const signIns =
      credentials &&
      new SignInCalls(credentials, (call, approval) =>
        this.#openCalls().askForSignIn(call, approval),
      )
    const host = { agent, onError, hostPlugins, errors, signIns }
    const { chat, ledger, terms, browserCalls, cancelRemoteTasks } = this.#options
    return new LiveCalls({
      chat,
      messages: this.messages,
      input: this.input,
      session: this.#session,
      ledger,
      terms,
      browserCalls,
      cancelRemoteTasks,
      onError,
      signIns,
      runTool: (call, record, outer) =>
        runLiveCall(call, { ...host, nest: (nested) => this.#options.nest(nested, outer) }, record),
      write: (toolCallId, event) => this.#write(toolCallId, event),
      writeInside: (toolCallId, event) => this.#writeInside(toolCallId, event),
      onLost: () => this.#closeAsLost(),
      onStateChange: (toolCallId, state) => {
        this.messages.setCallState(toolCallId, state)
        if (state === 'waiting' || (state === 'ended' && this.#snapshots.hasCalls))
          this.#snapshots.saveCalls()
      },
    })
  }

  /** Ends the conversation here, because another process continues it. */
  #closeAsLost(): void {
    this.#lostError ??= new ProtocolError('turn-lost')
    this.#openCalls().close()
    this.input.queue.close()
  }

  async #run(): Promise<void> {
    const { agent, services, chat, runConfig } = this.#options
    const model = this.#options.createModel(this, () => this.#resumeFrom())
    this.#model = model
    const plugin = new LivePlugin({
      hostPlugins: this.#options.hostPlugins,
      terms: this.#options.terms,
      onRun: (context) => this.#session.start(context),
      prepare: (event) => this.#output.prepare(event),
    })
    const runner = new Runner({ ...services, agent: toLiveAgent(agent, model), plugins: [plugin] })
    let failure: unknown
    try {
      const events = runner.runLive({
        userId: chat.principalId,
        sessionId: chat.chatId,
        liveRequestQueue: this.input.queue,
        runConfig,
      })
      for await (const event of events) this.#output.handle(event)
    } catch (error) {
      failure = (await this.#options.ledger.locks.findLoss(chat, error)) ?? toClientError(error)
      this.#options.onError(error)
    }
    await this.#end(this.#lostError ?? failure)
  }

  onConnecting(request: LlmRequest): void {
    wrapTools(request, (call) => this.#openCalls().start(call))
    if (this.#options.hasNonBlockingCalls) declareNonBlocking(request)
    this.#request = request
  }

  onConnected(): void {
    const { calls = [] } = this.#options.continues ?? {}
    if (calls.length > 0) this.#openCalls().adopt(calls, (name) => this.#findTool(name))
    this.#ready.resolve()
  }

  onHandle(): void {
    this.#snapshots.saveAtRest()
  }

  onOutput(parts: readonly Part[]): void {
    this.#output.recordAudio(parts)
    this.#calls?.confirmParked()
  }

  onInterrupted(): void {
    this.#output.interrupt()
    this.#options.listener.onInterrupted()
  }

  onReplyLost(): void {
    this.#output.cutOff()
  }

  onDropped(error: unknown): void {
    this.#options.onError(error)
    this.#output.drop(error)
  }

  onStatus(status: LiveStatus): void {
    this.#options.listener.onStatus(status)
  }

  onError(error: unknown): void {
    this.#options.onError(error)
  }

  async #end(failure: unknown): Promise<void> {
    this.#state = 'closed'
    this.#snapshots.close()
    this.#openCalls().close()
    this.#ready.reject(failure ?? new ProtocolError('unavailable'))
    // Before the client learns of it, so that a reload shows the same. Another process continues a lost session.
    if (failure !== undefined && toProtocolError(failure).code !== 'turn-lost')
      await this.#storeFailure(this.messages.ending, failure)
    this.messages.end(failure)
    this.#options.listener.onStatus('closed')
  }

  /** Stores how replies failed. Never rejects. */
  async #storeFailure(messages: readonly LiveMessage[], failure: unknown): Promise<void> {
    const { agent, onError } = this.#options
    try {
      for (const message of messages)
        await this.#session.append(
          createFailureEvent(message.messageId, agent.name, toProtocolError(failure)),
        )
    } catch (error) {
      onError(error)
    }
  }

  #receiveSpeech(text: string, isFinished: boolean): void {
    this.#speech ??= new UserSpeech({
      turnTaking: this.#turnTaking,
      listQuestions: () => this.#calls?.questions ?? [],
      decide: (reply, approvalIds) => {
        this.#decideSpoken?.(reply, ({ id }) => approvalIds.has(id)).catch(this.#options.onError)
      },
    })
    this.#speech.add(text, isFinished)
  }

  /** Stores an event of a call, and streams it in its message. */
  async #write(toolCallId: string, event: Event): Promise<void> {
    const message = this.messages.ofCall(toolCallId)
    if (this.messages.isUnstored(toolCallId)) return
    if (this.#state === 'open') await this.#session.append(event)
    else await this.#session.appendResponse(event)
    if (this.#state === 'open' && !message.isStopped) this.messages.stream(message, event)
    else this.#options.onLateResult(message.messageId)
  }

  /** Stores an event of an agent that a call runs. A message that is not being streamed shows it later. */
  async #writeInside(toolCallId: string, event: Event): Promise<void> {
    if (this.messages.isUnstored(toolCallId)) return
    if (this.#state !== 'open') return this.#session.appendResponse(event, [toolCallId])
    await this.#session.append(event)
    const message = this.messages.ofCall(toolCallId)
    if (message.isStreaming) message.push(event)
  }

  onCancelled(toolCallIds: readonly string[]): void {
    // The model has the status of a parked call, so there is nothing that it could withdraw.
    const withdrawn = toolCallIds.filter((id) => this.#calls?.parkingOf(id) !== 'known')
    for (const toolCallId of withdrawn) {
      this.#turnTaking.apply({ type: 'call-cancelled', toolCallId })
      // The status was sent too late.
      if (this.#calls?.parkingOf(toolCallId) !== undefined)
        this.#turnTaking.apply({
          type: 'result-ignored',
          message: this.messages.ofCall(toolCallId),
        })
    }
    this.#calls?.cancel(withdrawn)
    this.input.flushResults()
  }

  #findTool(name: string) {
    return this.#request && findLiveTool(this.#request, name)
  }
}
