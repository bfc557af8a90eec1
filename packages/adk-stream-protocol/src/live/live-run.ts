import { setTimeout as delay } from 'node:timers/promises'

import type { BaseAgent, Event, LlmRequest, RunConfig, RunnerConfig } from '@google/adk'
import { LiveRequestQueue, PluginManager, Runner } from '@google/adk'
import type { Blob, Content, FunctionResponse } from '@google/genai'
import { FunctionResponseScheduling } from '@google/genai'

import { AUDIO_END } from '../gemini-live/reconnecting-connection.ts'
import { AudioEpochs } from '../gemini-live/audio-epochs.ts'
import { runLiveCall } from '../gemini-live/run-live-call.ts'
import { toLiveAgent } from '../gemini-live/live-agent.ts'
import type { LiveHooks } from '../gemini-live/live-hooks.ts'
import type { ReconnectingLiveModel } from '../gemini-live/reconnecting-model.ts'
import { LivePlugin } from '../gemini-live/live-plugin.ts'
import { toModelError } from '../gemini-live/live-connection-error.ts'
import { declareNonBlocking, findLiveTool, wrapTools } from '../gemini-live/live-tool.ts'
import { ToolErrors } from '../calls/tool-errors.ts'
import type { Approval, ApprovalChat } from '../approvals/approval.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { OutputAnswer } from '../protocol/read-answers.ts'
import type { Turn } from '../turns/turn.ts'
import { Floor } from './floor.ts'
import { FreshSources } from './fresh-sources.ts'
import { Hearing } from './hearing.ts'
import type { LiveCallsOptions } from './live-calls.ts'
import { LiveCalls } from './live-calls.ts'
import type { LiveMessageOptions } from './live-message.ts'
import { LiveMessage } from './live-message.ts'
import type { LiveListener } from './live-listener.ts'
import type { OpenTurn } from './live-messages.ts'
import { LiveMessages } from './live-messages.ts'
import { kindOf, prepareEvent, unstored } from './prepare-event.ts'
import { RunSession } from './run-session.ts'
import { toUserEvent } from './user-event.ts'

export interface LiveRunOptions extends Pick<
  LiveCallsOptions,
  'ledger' | 'terms' | 'waits' | 'onError'
> {
  readonly chat: ApprovalChat
  readonly agent: BaseAgent
  /** Whether the model is told the words of an error that a tool threw. */
  readonly exposeErrors: boolean
  readonly services: Omit<RunnerConfig, 'agent'> & { readonly appName: string }
  /** The model of this run, which tells the hooks what its connection tells beside its messages. */
  readonly openModel: (hooks: LiveHooks) => ReconnectingLiveModel
  readonly runConfig: Partial<RunConfig>
  /** Whether the model goes on talking while its calls wait. */
  readonly free: boolean
  /** Whether the model is taken to complete a turn at once that ends in calls, until it shows. */
  readonly completesCalls: boolean
  readonly openTurn: OpenTurn
  readonly listener: LiveListener
}

/** How long a call that runs may take to come to its end before the conversation closes without it. */
const ABANDON_AFTER_MS = 1_000

/** One live conversation with the model, through ADK: what is said goes in, messages come out, each in a turn of its own. */
export class LiveRun {
  readonly #options: LiveRunOptions
  readonly #queue = new LiveRequestQueue()
  readonly #floor: Floor<LiveMessage>
  readonly #calls: LiveCalls
  readonly #messages: LiveMessages
  readonly #hearing: Hearing
  readonly #hostPlugins: PluginManager
  readonly #loop: Promise<void>
  #request: LlmRequest | undefined
  #model: ReconnectingLiveModel | undefined
  /** The message that the event is for that ADK yields next. */
  #target: LiveMessage | undefined
  readonly #sources = new FreshSources()
  readonly #session = new RunSession()
  /** Whether the model has been asked for its attention: what is said from then on is not part of the history it is given. */
  readonly #ready: Promise<void>
  #connected: () => void = () => undefined
  #failed: (error: unknown) => void = () => undefined
  readonly #sound = new AudioEpochs()
  /** Turns that were cut off, and whose end has not come out of ADK yet. */
  #cutOffs = 0
  /** What could not be told to the model; what it had said before is still on its way through ADK. */
  readonly #givenUp: unknown[] = []
  #lost: ProtocolError | undefined
  #state: 'open' | 'closing' | 'closed' = 'open'

  constructor(options: LiveRunOptions) {
    this.#options = options
    this.#ready = new Promise((resolve, reject) => {
      this.#connected = resolve
      this.#failed = reject
    })
    this.#ready.catch(() => undefined)
    this.#floor = new Floor(options)
    this.#hearing = new Hearing(this.#floor)
    this.#messages = new LiveMessages({
      floor: this.#floor,
      openTurn: options.openTurn,
      onTurn: (turn, message) => options.listener.onTurn(turn, this.#hearing.heardOf(message)),
      onStop: (message) => {
        if (this.#floor.holder === message) this.interrupt()
      },
      onError: options.onError,
    })
    this.#hostPlugins = new PluginManager([...(options.services.plugins ?? [])])
    const { agent, onError, exposeErrors } = options
    const errors = new ToolErrors({ exposeErrors, onNestedError: onError })
    const host = { agent, onError, hostPlugins: this.#hostPlugins, errors }
    this.#calls = new LiveCalls({
      ...options,
      run: (call, record) => runLiveCall(call, host, record),
      write: (toolCallId, event) => this.#write(toolCallId, event),
      tell: (toolCallId, event) => {
        const message = this.#messages.ofCall(toolCallId)
        if (message.open) this.#show(message, event)
      },
      answer: (toolCallId, name, response) => this.#answer(toolCallId, name, response),
      messageOf: (toolCallId) => this.#messages.ofCall(toolCallId).messageId,
      isCurrent: () => this.isCurrent(),
      isUnwanted: (toolCallId) => this.#messages.isUnwanted(toolCallId),
      onAnswered: (toolCallId) => this.#messages.goOn(toolCallId),
      onLost: () => this.#lose(),
      onChange: (toolCallId, state) => this.#messages.noteCall(toolCallId, state),
    })
    this.#loop = this.#follow()
  }

  /** Resolves when the run is over, for whatever reason. Never rejects. */
  get over(): Promise<void> {
    return this.#loop
  }

  /** Whether a call runs, or the model is answering. */
  get busy(): boolean {
    return this.#state === 'open' && (this.#calls.busy || this.#messages.busy)
  }

  /** Whether the run knows all that its chat holds. */
  isCurrent(): Promise<boolean> {
    return this.#session.isCurrent()
  }

  /** Says something in writing. What the model is saying, it breaks off. */
  async say(content: Content, options: LiveMessageOptions): Promise<Turn> {
    await this.#ready
    this.#messages.makeRoom()
    const message = new LiveMessage(options)
    await this.#session.append(toUserEvent(message, content))
    // The conversation may have ended while that was written.
    if (this.#state !== 'open') throw new ProtocolError('unavailable')
    message.written = true
    this.#floor.said(message)
    this.#queue.sendContent(content)
    return this.#messages.open(message, { background: false })
  }

  /** Takes a piece of sound, or a picture. */
  show(blob: Blob): void {
    this.#queue.sendRealtime(blob)
  }

  /** Marks where the person begins and ends to speak, for a model that does not find out by itself. */
  mark(activity: 'start' | 'end'): void {
    if (activity === 'start') this.#queue.sendActivityStart()
    else this.#queue.sendActivityEnd()
  }

  /** The microphone went mute: what was said so far is all. */
  endAudio(): void {
    this.#queue.sendRealtime(AUDIO_END)
  }

  /** The person wants to hear no more of what is being said. */
  interrupt(): void {
    this.#model?.interrupt()
  }

  /** The turn in which a message goes on that a client answered. Nothing when nothing of it is known here. */
  turnOf(messageId: string): Promise<Turn | undefined> {
    return this.#messages.turnOf(messageId)
  }

  /** Whether a message is being told now. */
  tells(messageId: string): boolean {
    return this.#messages.tells(messageId)
  }

  runsCallsOf(messageId: string): boolean {
    return this.#messages.runsCallsOf(messageId)
  }

  /** The message of a call that has not ended. */
  messageOf(toolCallId: string): string | undefined {
    return this.hasCall(toolCallId) ? this.#messages.ofCall(toolCallId).messageId : undefined
  }

  hasCall(toolCallId: string): boolean {
    return this.#calls.has(toolCallId)
  }

  /** Whether a call of the run waits for a decision. */
  get asks(): boolean {
    return this.#calls.asks
  }

  approvalChanged(approval: Approval): void {
    this.#calls.approvalChanged(approval)
  }

  takeOutput(output: OutputAnswer): boolean {
    return this.#calls.takeOutput(output)
  }

  /** Ends the conversation with the model. What waits for approval stays in the ledger; what runs has a moment to get its outcome there. */
  async close(): Promise<void> {
    if (this.#state === 'open') {
      this.#state = 'closing'
      this.#calls.close()
      this.#queue.close()
    }
    await this.#loop
    await Promise.race([this.#calls.idle(), delay(ABANDON_AFTER_MS, undefined, { ref: false })])
  }

  /** Ends the conversation here, because another process goes on with it. */
  #lose(): void {
    this.#lost ??= new ProtocolError('turn-lost')
    this.#calls.close()
    this.#queue.close()
  }

  async #follow(): Promise<void> {
    const { agent, services, chat, runConfig } = this.#options
    const model = this.#options.openModel({
      onConnecting: (request) => this.#connect(request),
      onConnected: () => this.#connected(),
      onCancelled: (ids) => this.#cancel(ids),
      onOutput: (parts) => this.#sound.record(parts),
      onInterrupted: () => {
        this.#sound.interrupt()
        this.#options.listener.onInterrupted()
      },
      onCutOff: () => {
        this.#cutOffs += 1
      },
      onDropped: (error) => this.#giveUp(error),
      onStatus: (status) => this.#options.listener.onStatus(status),
      onError: this.#options.onError,
    })
    this.#model = model
    const plugin = new LivePlugin({
      hostPlugins: this.#hostPlugins,
      terms: this.#options.terms,
      onRun: (context) => this.#session.begin(context),
      prepare: (event) => this.#prepare(event),
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
      for await (const event of events) this.#tell(event)
    } catch (error) {
      const isOurs = await this.#options.ledger.stillHolds(chat).catch(() => true)
      failure = isOurs ? toModelError(error) : new ProtocolError('turn-lost', { cause: error })
      this.#options.onError(error)
    }
    this.#end(this.#lost ?? failure)
  }

  #connect(request: LlmRequest): void {
    wrapTools(request, (call) => this.#calls.begin(call))
    if (this.#options.free) declareNonBlocking(request)
    this.#request = request
  }

  #end(failure: unknown): void {
    this.#state = 'closed'
    this.#calls.close()
    this.#failed(failure ?? new ProtocolError('unavailable'))
    this.#messages.end(failure)
    this.#options.listener.onStatus('closed')
  }

  /** Finds out whom an event is for, and makes it ready to be stored. */
  async #prepare(event: Event): Promise<Event> {
    const kind = kindOf(event)
    this.#target = undefined
    if (kind === 'heard') return unstored(event)
    const message =
      kind === 'speech' || kind === 'sound' || kind === 'call'
        ? this.#speaker()
        : this.#floor.holder
    if (kind === 'end' && !this.#sources.has(event, message)) return unstored(event)
    this.#target = message
    if (!message || message.stopped) return unstored(event)
    if (kind === 'sound' || event.partial) return event
    await this.#writeHeard(message)
    const own = this.#sources.keep(event, message)
    return prepareEvent(own, message, (name) => this.#findTool(name))
  }

  #tell(event: Event): void {
    this.#messages.stir()
    const message = this.#target
    const kind = kindOf(event)
    if (kind === 'heard') return this.#hear(event)
    if (message) this.#noteCalls(message, event)
    // Who was told of an interruption hears nothing more of before it (LV41).
    const isOvertaken = kind === 'sound' && this.#sound.isStale(event.content?.parts ?? [])
    if (message && !message.stopped && !isOvertaken) this.#show(message, event)
    if (kind === 'end') this.#endTurn(event)
  }

  #endTurn({ interrupted }: Event): void {
    if (interrupted === true && this.#cutOffs > 0) {
      this.#cutOffs -= 1
      const beginsAnew = this.#floor.beginsAnew()
      if (this.#cutOffs === 0 && this.#givenUp.length > 0) {
        for (const error of this.#givenUp.splice(0)) this.#failNext(error)
        return
      }
      if (beginsAnew) return
    }
    const done = this.#floor.completed()
    if (done) this.#messages.review(done)
  }

  /** What a person said could not be told to the model. */
  #giveUp(error: unknown): void {
    this.#options.onError(error)
    if (this.#cutOffs > 0) this.#givenUp.push(error)
    else this.#failNext(error)
  }

  /** Fails the message that the model would have answered next. */
  #failNext(error: unknown): void {
    const message = this.#floor.completed()
    message?.fail(toModelError(error))
    if (message) this.#messages.review(message)
  }

  /** Every call is answered, also one of an answer that nobody hears. */
  #noteCalls(message: LiveMessage, { content, partial = false }: Event): void {
    const calls = (content?.parts ?? []).flatMap(({ functionCall }) =>
      functionCall?.id !== undefined && this.#findTool(functionCall.name ?? '')
        ? functionCall.id
        : [],
    )
    this.#messages.addCalls(message, calls, partial)
    if (!this.#options.free) this.#floor.called(calls)
  }

  #show(message: LiveMessage, event: Event): void {
    this.#messages.ensureOpen(message)
    message.tell(event)
  }

  #hear(event: Event): void {
    const { text = '', finished = false } = event.inputTranscription ?? {}
    this.#options.listener.onTranscript({ text, final: finished })
    this.#hearing.hear(event)
  }

  /** For whom the model speaks; a message of its own when nobody asked, or when what they said is not known yet. */
  #speaker(): LiveMessage {
    const known = this.#floor.spoke()
    if (known) return known
    const message = new LiveMessage()
    this.#floor.take(message)
    return message
  }

  /** Puts what was spoken into the session, before what answers it. */
  async #writeHeard(message: LiveMessage): Promise<void> {
    if (message.written) return
    message.written = true
    const text = this.#hearing.textOf(message)
    await this.#session.append(toUserEvent(message, { role: 'user', parts: [{ text }] }))
    this.#options.listener.onHeard(message, text)
  }

  /** Stores an event of a call, and tells it in its message. */
  async #write(toolCallId: string, event: Event): Promise<void> {
    const message = this.#messages.ofCall(toolCallId)
    if (this.#messages.isUnheard(toolCallId)) return
    if (this.#state !== 'open') return this.#session.appendAnswer(event)
    await this.#session.append(event)
    if (this.#state === 'open') this.#show(message, event)
  }

  #answer(id: string, name: string, response: Record<string, unknown>): void {
    const functionResponse: FunctionResponse = { id, name, response }
    if (this.#options.free) functionResponse.scheduling = FunctionResponseScheduling.WHEN_IDLE
    this.#queue.sendContent({ role: 'user', parts: [{ functionResponse }] })
    this.#floor.answered(id, this.#messages.ofCall(id))
  }

  #cancel(ids: readonly string[]): void {
    for (const id of ids) this.#floor.dropped(id)
    this.#calls.cancel(ids)
  }

  #findTool(name: string) {
    return this.#request && findLiveTool(this.#request, name)
  }
}
