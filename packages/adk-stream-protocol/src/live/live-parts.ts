import type { BaseAgent, BaseTool, PluginManager, RunConfig, RunnerConfig } from '@google/adk'

import type { ToolCall } from '../agent/tool-call.ts'
import type { ToolErrors } from '../calls/run-call.ts'
import type { RunState } from '../calls/run-state.ts'
import type { CredentialSource } from '../calls/sign-in-calls.ts'
import { SignInCalls } from '../calls/sign-in-calls.ts'
import { runLiveCall } from '../gemini-live/live-agent.ts'
import type { LiveHooks } from '../gemini-live/message-receiver.ts'
import type { ReconnectingLiveModel } from '../gemini-live/reconnecting-model.ts'
import type { ShownReply } from '../protocol/message.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import { LiveCalls } from './live-calls.ts'
import { LiveInput } from './live-input.ts'
import type { LiveMessage, OpenTurn } from './live-message.ts'
import { LiveMessages } from './live-message.ts'
import { LiveOutput } from './live-output.ts'
import type { LiveSnapshot } from './live-snapshot.ts'
import { SnapshotSaver } from './live-snapshot.ts'
import type { LiveListener } from './live-watchers.ts'
import type { LiveCallsOptions } from './open-call.ts'
import { SessionWriter } from './session-writer.ts'
import { TurnTaking } from './turn-taking.ts'
import { partialUserMessage, UserSpeech } from './user-speech.ts'

export interface LiveConversationOptions extends Pick<
  LiveCallsOptions,
  'ledger' | 'terms' | 'browserCalls' | 'cancelRemoteTasks' | 'onLateResult' | 'onLeft' | 'onError'
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

/** What the parts of a conversation need of it. */
interface ConversationLinks {
  /** Whether the conversation has not ended, and is not about to. */
  readonly isOpen: () => boolean
  /** Interrupts the model's speech. */
  readonly interrupt: () => void
  /** Finds a tool that the model knows. */
  readonly findTool: (name: string) => BaseTool | undefined
  readonly takeSnapshot: () => LiveSnapshot
  /** Lets the words of a person decide one of these approvals. Never rejects. */
  readonly decideSpoken: (reply: ShownReply, approvalIds: ReadonlySet<string>) => void
  /** Another process continues the conversation. */
  readonly onLost: () => void
}

/** The parts of a live conversation, connected with each other. */
export class LiveParts {
  readonly #options: LiveConversationOptions
  readonly #links: ConversationLinks
  readonly #turnTaking: TurnTaking<LiveMessage>
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
    const { openTurn, listener, hasNonBlockingCalls, onError } = options
    const { session } = this
    const turnTaking = new TurnTaking<LiveMessage>(options)
    this.#options = options
    this.#links = links
    this.#turnTaking = turnTaking
    const messages = new LiveMessages({
      turnTaking,
      openTurn,
      onTurn: (turn, message) => listener.onTurn(turn, partialUserMessage(message)),
      onStop: (message) => {
        if (turnTaking.speaker === message) links.interrupt()
      },
      onError,
    })
    this.messages = messages
    this.input = new LiveInput({
      turnTaking,
      hasNonBlockingCalls,
      park: () => {
        if (this.#calls?.park()) this.snapshots.saveCalls()
      },
    })
    this.output = new LiveOutput({
      turnTaking,
      messages,
      session,
      listener,
      hasNonBlockingCalls,
      agentName: options.agent.name,
      onTurnEnd: () => this.input.flushResults(),
      findTool: links.findTool,
      onSpeech: (text, isFinished) => this.#openSpeech().add(text, isFinished),
      onError,
    })
    this.snapshots = new SnapshotSaver({
      take: () => (links.isOpen() ? links.takeSnapshot() : undefined),
      save: options.onRest,
    })
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
    const { agent, onError, errors, hostPlugins, credentials } = this.#options
    const signIns =
      credentials &&
      new SignInCalls(credentials, (call, approval) =>
        this.openCalls().askForSignIn(call, approval),
      )
    const host = { agent, onError, hostPlugins, errors, signIns }
    const { chat, ledger, terms, browserCalls, cancelRemoteTasks } = this.#options
    const { onLateResult, onLeft } = this.#options
    const { messages, input, session, snapshots } = this
    const { isOpen, onLost } = this.#links
    return new LiveCalls({
      chat,
      messages,
      input,
      session,
      ledger,
      terms,
      browserCalls,
      cancelRemoteTasks,
      signIns,
      runTool: (call, record, outer) =>
        runLiveCall(call, { ...host, nest: (nested) => this.#options.nest(nested, outer) }, record),
      isOpen,
      onLateResult,
      onLost,
      onLeft,
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
      turnTaking: this.#turnTaking,
      listQuestions: () => this.#calls?.questions ?? [],
      decide: this.#links.decideSpoken,
    })
    return this.#speech
  }
}
