import { setTimeout as delay } from 'node:timers/promises'

import type {
  BaseAgent,
  Event,
  LlmRequest,
  PluginManager,
  RunConfig,
  RunnerConfig,
} from '@google/adk'
import { Context, LiveRequestQueue, Runner } from '@google/adk'
import type { Blob, Content, FunctionResponse, Part } from '@google/genai'
import { FunctionResponseScheduling } from '@google/genai'

import { isUnstoredMedia } from '../agent/history/interrupted-turn.ts'
import { AWAITING_APPROVAL } from '../agent/call-responses.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import type { Approval, Refusal } from '../approvals/approval.ts'
import type { Decision } from '../approvals/next-approval.ts'
import type { Reply } from '../approvals/understand-reply.ts'
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
import type { LiveHooks, LiveStatus } from '../gemini-live/live-hooks.ts'
import { AudioEpochs } from '../gemini-live/live-hooks.ts'
import type { ReconnectingLiveModel } from '../gemini-live/reconnecting-model.ts'
import { AUDIO_END } from '../gemini-live/reconnecting-model.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { OutputResponse } from '../protocol/read-responses.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import { SparseMap } from '../shared/collections.ts'
import type { Turn } from '../turns/turn.ts'
import { LiveCalls } from './live-calls.ts'
import {
  SourcesPerMessage,
  kindOf,
  prepareEvent,
  toRepliedEvent,
  toUserEvent,
  withoutStoring,
} from './live-events.ts'
import type { LiveMessageOptions, OpenTurn } from './live-message.ts'
import { LiveMessage, LiveMessages } from './live-message.ts'
import type { LiveSnapshot } from './live-snapshot.ts'
import type { LiveListener } from './live-watchers.ts'
import type { EndedCall, LiveRunOptions } from './open-call.ts'
import { describeParkedResult } from './open-call.ts'
import { SessionWriter } from './session-writer.ts'
import { SnapshotSaver } from './live-snapshot.ts'
import { SpeechTranscript, partialUserMessage, transcriptOf, SpokenReplies } from './user-speech.ts'
import type { ShownQuestion } from './user-speech.ts'
import { TurnTaking } from './turn-taking.ts'

export interface LiveConversationOptions extends Pick<
  LiveRunOptions,
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
  readonly listener: LiveListener
}

/** Lets the words of a person decide the open approval of the chat, if it is in reach. */
type DecideSpoken = (reply: Reply, isInReach: (approval: Approval) => boolean) => Promise<unknown>

/** How long `close` waits for running calls. */
const ABANDON_AFTER_MS = 1_000

/** The state of a conversation in which the model has made no call. */
const NO_CALLS: Pick<LiveCalls, 'waiting' | 'isWaiting'> = { waiting: [], isWaiting: true }

/** One live conversation with the model, through ADK's `runLive`. Each reply is a message, streamed in a turn of its own. Its methods `on…` are for its model. */
export class LiveConversation implements LiveHooks {
  readonly #options: LiveConversationOptions
  readonly #queue = new LiveRequestQueue()
  readonly #turnTaking: TurnTaking<LiveMessage>
  /** Created with the first call, because most conversations wait for a person and have none. */
  #calls: LiveCalls | undefined
  readonly #messages: LiveMessages
  readonly #transcript: SpeechTranscript
  /** Created with the first words of the user. */
  #spokenReplies: SpokenReplies | undefined
  /** When the calls that wait were shown to clients: call → time. */
  readonly #shownAt = new SparseMap<string, number>()
  #decideSpoken: DecideSpoken | undefined
  readonly #loop: Promise<void>
  #request: LlmRequest | undefined
  #model: ReconnectingLiveModel | undefined
  /** The message of the event that ADK yields next. */
  #target: LiveMessage | undefined
  readonly #sources = new SourcesPerMessage()
  readonly #session = new SessionWriter()
  /** Resolves when the model is connected. Messages from then on are not part of its history. */
  readonly #ready: Promise<void>
  #resolveReady: () => void = () => undefined
  #rejectReady: (error: unknown) => void = () => undefined
  readonly #audio = new AudioEpochs()
  /** Turns that were cut off by a lost connection, and whose end ADK has not yielded yet. */
  #cutOffTurns = 0
  /** Errors of dropped messages that wait for the end of cut-off turns. */
  readonly #dropErrors: unknown[] = []
  /** Results of parked calls that wait until the model has the results of its other calls: a text would cancel those. */
  readonly #unsentResults: string[] = []
  #lostError: ProtocolError | undefined
  readonly #snapshots: SnapshotSaver
  /** Messages that are being stored and are not sent to the model yet. */
  #sending = 0
  #state: 'open' | 'closing' | 'closed' = 'open'

  constructor(options: LiveConversationOptions) {
    this.#options = options
    this.#ready = new Promise((resolve, reject) => {
      this.#resolveReady = resolve
      this.#rejectReady = reject
    })
    this.#ready.catch(() => undefined)
    this.#turnTaking = new TurnTaking(options)
    this.#transcript = new SpeechTranscript(this.#turnTaking)
    this.#messages = new LiveMessages({
      turnTaking: this.#turnTaking,
      openTurn: options.openTurn,
      onTurn: (turn, message) => options.listener.onTurn(turn, partialUserMessage(message)),
      onStop: (message) => {
        if (this.#turnTaking.speaker === message) this.interrupt()
      },
      onError: options.onError,
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
    return this.#ready.catch(() => undefined)
  }

  /** Whether a call runs or the model replies. */
  get isBusy(): boolean {
    return this.#state === 'open' && (this.#calls?.isBusy === true || this.#messages.isBusy)
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
    await this.#ready
    this.#messages.pauseOthers()
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
      this.#prepareInput()
      this.#sendUnsentResults()
      this.#turnTaking.apply({ type: 'message-sent', message })
      this.#queue.sendContent(content)
    } finally {
      this.#sending -= 1
    }
    return this.#messages.open(message, { background: false })
  }

  /** Streams the message after a reply that decided an approval. The agent continues in the message with the call. */
  async #showDecision(message: LiveMessage, approval: Approval): Promise<Turn> {
    const event = toRepliedEvent(message, this.#options.agent.name, approval)
    await this.#session.append(event)
    const turn = this.#messages.open(message, { background: false })
    message.push(event)
    this.#messages.closeIfDone(message)
    return turn
  }

  /** Sends a chunk of audio, or an image. `decideSpoken` lets what the person says decide an approval. */
  sendMedia(blob: Blob, decideSpoken?: DecideSpoken): void {
    if (decideSpoken) this.#decideSpoken = decideSpoken
    this.#prepareInput()
    this.#queue.sendRealtime(blob)
  }

  /** Marks the start or end of the user's speech, for a model without activity detection. */
  sendActivity(activity: 'start' | 'end'): void {
    if (activity === 'end') return this.#queue.sendActivityEnd()
    this.#prepareInput()
    this.#queue.sendActivityStart()
  }

  /** Ends the audio stream, because the user muted the microphone. */
  endAudio(): void {
    this.#queue.sendRealtime(AUDIO_END)
  }

  /** Interrupts the model's speech. */
  interrupt(): void {
    this.#model?.interrupt()
  }

  /** Returns the turn that continues a message after a client's response. Returns undefined if the message is unknown. */
  turnOf(messageId: string): Promise<Turn | undefined> {
    return this.#messages.turnOf(messageId)
  }

  /** Keeps streams open while the responses of a request are recorded. */
  keepOpen<Result>(record: () => Promise<Result>): Promise<Result> {
    return this.#messages.keepOpen(record)
  }

  isStreaming(messageId: string): boolean {
    return this.#messages.isStreaming(messageId)
  }

  hasRunningCalls(messageId: string): boolean {
    return this.#messages.hasRunningCalls(messageId)
  }

  /** Returns the id of the message that made an open call. */
  messageOf(toolCallId: string): string | undefined {
    return this.hasCall(toolCallId) ? this.#messages.ofCall(toolCallId).messageId : undefined
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
      this.#queue.close()
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

  /** Continues the calls that waited in an earlier session. */
  #adoptCalls(): void {
    const { context } = this.#session
    for (const waiting of this.#options.continues?.calls ?? []) {
      const { toolCallId, toolName, messageId } = waiting
      const tool = this.#findTool(toolName)
      const args = this.#session.argsOf(toolCallId)
      const isSettled = this.#session.hasResponse(toolCallId)
      if (!tool || !context || !args || isSettled || this.hasCall(toolCallId)) continue
      const toolContext = new Context({ invocationContext: context, functionCallId: toolCallId })
      this.#messages.adopt(messageId, toolCallId)
      this.#openCalls().adopt({ tool, toolArgs: args, toolContext }, waiting)
    }
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
      ledger,
      terms,
      browserCalls,
      cancelRemoteTasks,
      onError,
      signIns,
      runTool: (call, record, outer) =>
        runLiveCall(call, { ...host, nest: (nested) => this.#options.nest(nested, outer) }, record),
      write: (toolCallId, event) => this.#write(toolCallId, event),
      stream: (toolCallId, event) => {
        const message = this.#messages.ofCall(toolCallId)
        if (message.isStreaming) this.#stream(message, event)
      },
      writeInside: (toolCallId, event) => this.#writeInside(toolCallId, event),
      onAskInside: (toolCallId, insideId) =>
        this.#messages.addCalls(this.#messages.ofCall(toolCallId), [insideId], false),
      sendResult: (toolCallId, name, response) => this.#sendResult(toolCallId, name, response),
      sendParkedResult: (call) => this.#sendParkedResult(call),
      sendPending: (toolCallId, name) => this.#sendPending(toolCallId, name),
      messageOf: (toolCallId) => this.#messages.ofCall(toolCallId).messageId,
      isCurrent: () => this.isCurrent(),
      isUnwanted: (toolCallId) => this.#messages.isUnwanted(toolCallId),
      onResponse: (toolCallId) => this.#messages.resume(toolCallId),
      onLost: () => this.#closeAsLost(),
      onStateChange: (toolCallId, state) => {
        this.#messages.setCallState(toolCallId, state)
        if (state === 'waiting') this.#shownAt.set(toolCallId, performance.now())
        else this.#shownAt.delete(toolCallId)
        if (state === 'waiting' || (state === 'ended' && this.#snapshots.hasCalls))
          this.#snapshots.saveCalls()
      },
    })
  }

  /** Ends the conversation here, because another process continues it. */
  #closeAsLost(): void {
    this.#lostError ??= new ProtocolError('turn-lost')
    this.#openCalls().close()
    this.#queue.close()
  }

  async #run(): Promise<void> {
    const { agent, services, chat, runConfig } = this.#options
    const model = this.#options.createModel(this, () => this.#resumeFrom())
    this.#model = model
    const plugin = new LivePlugin({
      hostPlugins: this.#options.hostPlugins,
      terms: this.#options.terms,
      onRun: (context) => this.#session.start(context),
      prepare: (event) => this.#prepareEvent(event),
    })
    const runner = new Runner({ ...services, agent: toLiveAgent(agent, model), plugins: [plugin] })
    let failure: unknown
    try {
      const events = runner.runLive({
        userId: chat.principalId,
        sessionId: chat.chatId,
        liveRequestQueue: this.#queue,
        runConfig,
      })
      for await (const event of events) this.#handleEvent(event)
    } catch (error) {
      const isOurs = await this.#options.ledger.locks.stillHolds(chat).catch(() => true)
      failure = isOurs ? toClientError(error) : new ProtocolError('turn-lost', { cause: error })
      this.#options.onError(error)
    }
    this.#end(this.#lostError ?? failure)
  }

  onConnecting(request: LlmRequest): void {
    wrapTools(request, (call) => this.#openCalls().start(call))
    if (this.#options.hasNonBlockingCalls) declareNonBlocking(request)
    this.#request = request
  }

  onConnected(): void {
    this.#adoptCalls()
    this.#resolveReady()
  }

  onHandle(): void {
    this.#snapshots.saveAtRest()
  }

  onOutput(parts: readonly Part[]): void {
    this.#audio.record(parts)
    this.#calls?.confirmParked()
  }

  onInterrupted(): void {
    this.#audio.interrupt()
    this.#options.listener.onInterrupted()
  }

  onReplyLost(): void {
    this.#cutOffTurns += 1
  }

  onStatus(status: LiveStatus): void {
    this.#options.listener.onStatus(status)
  }

  onError(error: unknown): void {
    this.#options.onError(error)
  }

  #end(failure: unknown): void {
    this.#state = 'closed'
    this.#snapshots.close()
    this.#openCalls().close()
    this.#rejectReady(failure ?? new ProtocolError('unavailable'))
    this.#messages.end(failure)
    this.#options.listener.onStatus('closed')
  }

  /** Finds the message that an event belongs to, and converts the event into its stored form. */
  async #prepareEvent(event: Event): Promise<Event> {
    const kind = kindOf(event)
    this.#target = undefined
    if (kind === 'user-transcript') return withoutStoring(event)
    const isOutput = kind === 'output' || kind === 'audio' || kind === 'call'
    const message = isOutput ? this.#receiveOutput() : this.#turnTaking.speaker
    if (kind === 'turn-end' && !this.#sources.has(event, message)) return withoutStoring(event)
    this.#target = message
    if (!message || message.isStopped) return withoutStoring(event)
    if (kind === 'audio' || event.partial) return event
    await this.#storeUserSpeech(message)
    const own = this.#sources.filter(event, message)
    const prepared = prepareEvent(own, message, (name) => this.#findTool(name))
    // ADK does not store pictures and other files of a live model. Clients show them, so they must be stored (LV16).
    if (isUnstoredMedia(prepared)) await this.#session.append(prepared)
    return prepared
  }

  #handleEvent(event: Event): void {
    this.#messages.resetIdleTimer()
    const message = this.#target
    const kind = kindOf(event)
    if (kind === 'user-transcript') return this.#receiveTranscript(event)
    if (message) this.#recordCalls(message, event)
    // After `interrupted`, clients receive no audio from before it (LV41).
    const isStale = kind === 'audio' && this.#audio.isStale(event.content?.parts ?? [])
    if (message && !message.isStopped && !isStale) this.#stream(message, event)
    if (kind === 'turn-end') this.#endTurn(event)
  }

  #endTurn({ interrupted }: Event): void {
    if (interrupted === true && this.#cutOffTurns > 0) {
      this.#cutOffTurns -= 1
      const isRepeated = this.#turnTaking.isReplying
      this.#turnTaking.apply({ type: 'turn-cut-off' })
      if (this.#cutOffTurns === 0 && this.#dropErrors.length > 0) {
        for (const error of this.#dropErrors.splice(0)) this.#failNextReply(error)
        return
      }
      if (isRepeated) return
    }
    const message = this.#completeTurn()
    if (message) this.#messages.closeIfDone(message)
  }

  /** Ends the model's turn. Returns the message that it belonged to. */
  #completeTurn(): LiveMessage | undefined {
    const message = this.#turnTaking.current
    this.#turnTaking.apply({ type: 'turn-completed' })
    return message
  }

  /** Fails the reply to a message that could not be sent, after the output that ADK has not yielded yet. */
  onDropped(error: unknown): void {
    this.#options.onError(error)
    if (this.#cutOffTurns > 0) this.#dropErrors.push(error)
    else this.#failNextReply(error)
  }

  #failNextReply(error: unknown): void {
    const message = this.#completeTurn()
    message?.fail(toClientError(error))
    if (message) this.#messages.closeIfDone(message)
  }

  /** Records every call, also those of a stopped reply: the model expects a result for each. */
  #recordCalls(message: LiveMessage, { content, partial = false }: Event): void {
    const toolCallIds = (content?.parts ?? []).flatMap(({ functionCall }) =>
      functionCall?.id !== undefined && this.#findTool(functionCall.name ?? '')
        ? functionCall.id
        : [],
    )
    this.#messages.addCalls(message, toolCallIds, partial)
    if (!this.#options.hasNonBlockingCalls)
      this.#turnTaking.apply({ type: 'calls-made', toolCallIds })
  }

  #stream(message: LiveMessage, event: Event): void {
    this.#messages.openIfNeeded(message)
    message.push(event)
  }

  #receiveTranscript(event: Event): void {
    const { text = '', finished = false } = event.inputTranscription ?? {}
    this.#options.listener.onTranscript({ text, final: finished })
    this.#transcript.add(event)
    this.#spokenReplies ??= this.#createSpokenReplies()
    this.#spokenReplies.add(text, finished)
  }

  #createSpokenReplies(): SpokenReplies {
    return new SpokenReplies({
      listQuestions: () => this.#listQuestions(),
      decide: (reply, approvalIds) => {
        this.#decideSpoken?.(reply, ({ id }) => approvalIds.has(id)).catch(this.#options.onError)
      },
    })
  }

  /** Returns the questions that clients see. */
  #listQuestions(): ShownQuestion[] {
    return (this.#calls?.waiting ?? []).flatMap(({ toolCallId, approvalId }) => {
      const shownAt = this.#shownAt.get(toolCallId)
      if (approvalId === undefined || shownAt === undefined) return []
      const { isPromptKnown } = this.#messages.ofCall(toolCallId)
      return { approvalId, shownAt, isPromptKnown }
    })
  }

  /** Returns the message that new output belongs to. It is a new one if there is no pending message, or the transcript has not arrived yet. */
  #receiveOutput(): LiveMessage {
    this.#turnTaking.apply({ type: 'output-received' })
    const { speaker } = this.#turnTaking
    if (speaker) return speaker
    const message = new LiveMessage()
    this.#turnTaking.apply({ type: 'unprompted-output-received', message })
    return message
  }

  /** Stores the user's speech as a message, before the reply to it. */
  async #storeUserSpeech(message: LiveMessage): Promise<void> {
    if (message.isUserMessageStored) return
    message.isUserMessageStored = true
    const text = transcriptOf(message)
    await this.#session.append(toUserEvent(message, { role: 'user', parts: [{ text }] }))
    this.#options.listener.onUserMessage({
      id: message.userMessageId,
      role: 'user',
      parts: [{ type: 'text', text }],
    })
  }

  /** Stores an event of a call, and streams it in its message. */
  async #write(toolCallId: string, event: Event): Promise<void> {
    const message = this.#messages.ofCall(toolCallId)
    if (this.#messages.isUnstored(toolCallId)) return
    if (this.#state !== 'open') return this.#session.appendResponse(event)
    await this.#session.append(event)
    if (this.#state === 'open') this.#stream(message, event)
  }

  /** Stores an event of an agent that a call runs. A message that is not being streamed shows it later. */
  async #writeInside(toolCallId: string, event: Event): Promise<void> {
    if (this.#messages.isUnstored(toolCallId)) return
    if (this.#state !== 'open') return this.#session.appendResponse(event, [toolCallId])
    await this.#session.append(event)
    const message = this.#messages.ofCall(toolCallId)
    if (message.isStreaming) message.push(event)
  }

  #sendResult(toolCallId: string, name: string, response: Record<string, unknown>): void {
    const functionResponse: FunctionResponse = { id: toolCallId, name, response }
    if (this.#options.hasNonBlockingCalls)
      functionResponse.scheduling = FunctionResponseScheduling.WHEN_IDLE
    this.#queue.sendContent({ role: 'user', parts: [{ functionResponse }] })
    const message = this.#messages.ofCall(toolCallId)
    this.#turnTaking.apply({ type: 'result-sent', toolCallId, message })
    if (!this.#turnTaking.hasBlockingCalls) this.#sendUnsentResults()
  }

  /** Parks the calls that wait for people, before input reaches a model that would cancel them. */
  #prepareInput(): void {
    if (!this.#options.hasNonBlockingCalls && this.#calls?.park()) this.#snapshots.saveCalls()
  }

  /** Sends the result of a parked call as text. Other calls of the model stay unaffected. */
  #sendParkedResult(call: EndedCall): void {
    this.#prepareInput()
    const message = this.#messages.ofCall(call.id)
    this.#turnTaking.apply({ type: 'result-sent', toolCallId: call.id, message })
    this.#unsentResults.push(describeParkedResult(call))
    if (!this.#turnTaking.hasBlockingCalls) this.#sendUnsentResults()
  }

  #sendUnsentResults(): void {
    for (const text of this.#unsentResults.splice(0))
      this.#queue.sendContent({ role: 'user', parts: [{ text }] })
  }

  /** Tells the model that a call waits for a person. A model that waits for its calls is silent meanwhile, so it needs no status. */
  #sendPending(toolCallId: string, name: string): void {
    if (!this.#options.hasNonBlockingCalls) return
    const functionResponse: FunctionResponse = {
      id: toolCallId,
      name,
      response: { ...AWAITING_APPROVAL },
      willContinue: true,
      scheduling: FunctionResponseScheduling.SILENT,
    }
    this.#queue.sendContent({ role: 'user', parts: [{ functionResponse }] })
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
          message: this.#messages.ofCall(toolCallId),
        })
    }
    this.#calls?.cancel(withdrawn)
    if (!this.#turnTaking.hasBlockingCalls) this.#sendUnsentResults()
  }

  #findTool(name: string) {
    return this.#request && findLiveTool(this.#request, name)
  }
}
