import type { BaseAgent, BaseTool, PluginManager, RunConfig, RunnerConfig } from '@google/adk'

import type { ToolCall } from '../../../agent/tool-call.ts'
import type { ToolErrors } from '../../../calls/run-call.ts'
import type { RunState } from '../../../calls/run-state.ts'
import { runLiveCall } from '../gemini/live-agent.ts'
import type { LiveHooks } from '../gemini/message-receiver.ts'
import type { ReconnectingLiveModel } from '../gemini/reconnecting-model.ts'
import type { AppChatRef } from '../../../shared/chat-ref.ts'
import type { Turn } from '../../../turns/turn.ts'
import { LiveCalls } from './live-calls.ts'
import { LiveInput } from './live-input.ts'
import type { LiveMessage, TurnStream } from './live-message.ts'
import { LiveMessages } from './live-message.ts'
import { LiveOutput } from './live-output.ts'
import type { LiveSnapshot } from './live-snapshot.ts'
import { SnapshotSaver } from './live-snapshot.ts'
import type { LiveListener } from './live-watchers.ts'
import type { LiveCallsOptions } from './open-call.ts'
import { SessionWriter } from './session-writer.ts'
import { TurnTaking } from './turn-taking.ts'
import { partialUserMessage, UserSpeech } from './user-speech.ts'

/** What the conversations with one agent share. There may be thousands of idle ones, so nothing here belongs to a single chat. */
export interface LiveHost extends Pick<
  LiveCallsOptions,
  'ledger' | 'terms' | 'onHandedOver' | 'onDelivered' | 'onCancelled' | 'onError'
> {
  readonly agent: BaseAgent
  /** Responds for tools that throw. */
  readonly errors: ToolErrors
  /** The plugins of the host. ADK does not know them in a live run. */
  readonly hostPlugins: PluginManager
  readonly services: Omit<RunnerConfig, 'agent'> & { readonly appName: string }
  readonly runConfig: Partial<RunConfig>
  /** Whether the model continues to speak while its calls wait. */
  readonly hasNonBlockingCalls: boolean
  /** Whether the model completes a turn with calls at once. This is an assumption until the model shows it. */
  readonly completesCalls: boolean
  /** Creates the model of a conversation. */
  readonly createModel: (
    hooks: LiveHooks,
    resumeFrom: () => string | undefined,
  ) => ReconnectingLiveModel
  /** Called before a call runs. `outer` is the run that an agent used as a tool runs in. */
  readonly prepareCall: (call: ToolCall, outer: RunState) => void
  /** Streams a message in a turn of its chat, after the previous turn has ended. */
  readonly openTurn: (chat: AppChatRef, messageId: string, stream: TurnStream) => Promise<Turn>
  /** Called when a result was stored in a message that is not streamed any more. */
  readonly onLateResult: (chat: AppChatRef, messageId: string) => void
  /** An error has ended the work on these calls here, before the conversation had their results. Returns whether a sweep continues them. */
  readonly onLeft: (chat: AppChatRef, toolCallIds: readonly string[], error: unknown) => boolean
}

export interface LiveConversationOptions {
  readonly host: LiveHost
  readonly chat: AppChatRef
  readonly listener: LiveListener
  /** The session of another process that this one continues. */
  readonly continues: LiveSnapshot | undefined
  /** Stores snapshots of the session, for a process that continues it after a crash. */
  readonly lease: { save(snapshot: LiveSnapshot): Promise<unknown> }
}

/** What the parts of a conversation need of it. */
export interface ConversationLinks {
  /** Whether the conversation has not ended, and is not about to. */
  readonly isOpen: boolean
  /** Interrupts the model's speech. */
  interrupt(): void
  /** Finds a tool that the model knows. */
  findTool(name: string): BaseTool | undefined
  takeSnapshot(): LiveSnapshot
  /** Reports the words of a person who saw these approvals. Never rejects. */
  hear(words: string, approvalIds: ReadonlySet<string>): void
  /** Another process continues the conversation. */
  closeAsLost(): void
}

/** The parts of a live conversation. They call each other through this class: each idle conversation would keep callbacks in memory. */
export class LiveParts {
  readonly #options: LiveConversationOptions
  readonly #links: ConversationLinks
  readonly turnTaking: TurnTaking<LiveMessage>
  readonly session = new SessionWriter()
  /** The replies of the model, each in a turn of its own. */
  readonly messages: LiveMessages
  /** What the model receives. */
  readonly input: LiveInput
  /** What the model sends. */
  readonly output: LiveOutput
  readonly snapshots: SnapshotSaver
  #calls: LiveCalls | undefined
  #speech: UserSpeech | undefined

  constructor(options: LiveConversationOptions, links: ConversationLinks) {
    this.#options = options
    this.#links = links
    this.turnTaking = new TurnTaking<LiveMessage>(options.host)
    this.messages = new LiveMessages(this)
    this.input = new LiveInput(this)
    this.output = new LiveOutput(this)
    this.snapshots = new SnapshotSaver(this)
  }

  get listener(): LiveListener {
    return this.#options.listener
  }

  get hasNonBlockingCalls(): boolean {
    return this.#options.host.hasNonBlockingCalls
  }

  get hasHeard(): boolean {
    return this.input.hasMedia
  }

  get agentName(): string {
    return this.#options.host.agent.name
  }

  get onError(): (error: unknown) => void {
    return this.#options.host.onError
  }

  openTurn(messageId: string, stream: TurnStream): Promise<Turn> {
    const { host, chat } = this.#options
    return host.openTurn(chat, messageId, stream)
  }

  onTurn(turn: Turn, message: LiveMessage): void {
    this.listener.onTurn(turn, partialUserMessage(message))
  }

  onStop(message: LiveMessage): void {
    if (this.turnTaking.speaker === message) this.#links.interrupt()
  }

  storePrompt(message: LiveMessage): Promise<void> {
    return this.output.storeUserSpeech(message)
  }

  park(): void {
    if (this.#calls?.park()) this.snapshots.saveCalls()
  }

  findTool(name: string): BaseTool | undefined {
    return this.#links.findTool(name)
  }

  onTurnEnd(): void {
    this.#calls?.endTurn()
    this.input.flushResults()
  }

  onSpeech(text: string, isFinished: boolean): void {
    this.#openSpeech().add(text, isFinished)
  }

  takeSnapshot(): LiveSnapshot | undefined {
    return this.#links.isOpen ? this.#links.takeSnapshot() : undefined
  }

  saveSnapshot(snapshot: LiveSnapshot): void {
    this.#options.lease.save(snapshot).catch(this.onError)
  }

  /** The calls of the model. Undefined before the first one, because most conversations wait for a person and have none. */
  get calls(): LiveCalls | undefined {
    return this.#calls
  }

  openCalls(): LiveCalls {
    this.#calls ??= this.#createCalls()
    return this.#calls
  }

  #createCalls(): LiveCalls {
    const { host, chat } = this.#options
    const { agent, onError, errors, hostPlugins, ledger, terms } = host
    const { onHandedOver, onDelivered, onCancelled } = host
    const tools = { agent, onError, hostPlugins, errors }
    const { messages, input, session, snapshots } = this
    return new LiveCalls({
      chat,
      messages,
      input,
      session,
      ledger,
      terms,
      onHandedOver,
      onDelivered,
      onCancelled,
      kinds: terms.kinds,
      runTool: (call, record, outer) =>
        runLiveCall(call, { ...tools, prepare: (ready) => host.prepareCall(ready, outer) }, record),
      isOpen: () => this.#links.isOpen,
      onLateResult: (messageId) => host.onLateResult(chat, messageId),
      onLost: () => this.#links.closeAsLost(),
      onLeft: (toolCallIds, error) => host.onLeft(chat, toolCallIds, error),
      onStateChange: (toolCallId, state) => {
        messages.setCallState(toolCallId, state)
        if (state === 'waiting' || (state === 'ended' && snapshots.hasCalls)) snapshots.saveCalls()
      },
      onError,
    })
  }

  /** Created with the first words of the user. */
  #openSpeech(): UserSpeech {
    this.#speech ??= new UserSpeech({
      turnTaking: this.turnTaking,
      listQuestions: () => this.#calls?.questions ?? [],
      onWords: (words, approvalIds) => this.#links.hear(words, approvalIds),
    })
    return this.#speech
  }
}
