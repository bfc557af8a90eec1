import type { ChatTransport } from 'ai'

import type { LoadedChat } from '../api/adk-api.ts'
import { AdkApi } from '../api/adk-api.ts'
import type {
  AdkChunkStream,
  AdkUIMessage,
  ReconnectOptions,
  SendOptions,
} from '../adk-ui-message.ts'
import type { ResponseChannel, DecisionSent } from './response-channel.ts'
import { ResponseStates, selectMessages } from '../sync/response-states.ts'
import type { Backoff } from '../../shared/backoff.ts'
import { withDefaults } from '../../shared/backoff.ts'
import type { ChatObserver } from './chat-observer.ts'
import type { Connected, ConnectionListener, ConnectionState } from './connection-state.ts'
import { SharedConnection } from './connection-state.ts'
import type { HttpOptions } from '../api/http.ts'
import { Http } from '../api/http.ts'
import { ChatObservers } from './chat-observers.ts'
import type { AgentOption } from './name-agent.ts'
import { nameAgent } from './name-agent.ts'
import { SseStreams } from './sse-streams.ts'
import type { WireObserver } from './wire-events.ts'
import { WireTap } from './wire-events.ts'

/** Where the bridge is, and how its answers are read. */
export interface SseTransportOptions extends HttpOptions {
  /**
   * The agent that new chats get, where the bridge has several; a function is asked for each chat. A chat that has another agent
   * refuses messages with `other-agent`. Default: what the bridge chooses. `body.agent` of a message overrides it.
   */
  readonly agent?: AgentOption
  /** How an answer that was cut off is asked for again, for chats that are attached. */
  readonly backoff?: Backoff
  /** Sees all that passes, for a record or an inspector. */
  readonly observe?: WireObserver
}

/** The transport of a chat over HTTP, for `useChat` of the AI SDK 6 and 7. */
export function sseTransport(options: SseTransportOptions): SseTransport {
  return new SseTransport(options)
}

/** The transport of `sseTransport()`: each answer by a request of its own. */
export class SseTransport implements ChatTransport<AdkUIMessage>, ResponseChannel, Connected {
  /** A stream that is resumed tells its message from the start. */
  readonly resumeStreamIsReplay = true
  readonly answers = new ResponseStates()
  /** What else can be asked of the same bridge. */
  readonly api: AdkApi
  readonly #http: Http
  readonly #agent: AgentOption | undefined
  readonly #observe: WireObserver | undefined
  readonly #keepers = new ChatObservers()
  readonly #shared = new SharedConnection()
  readonly #reading: SseStreams

  constructor({ agent, backoff, observe, ...options }: SseTransportOptions) {
    this.#agent = agent
    this.#http = new Http(options)
    this.api = new AdkApi(this.#http)
    this.#observe = observe
    this.#reading = new SseStreams({
      resume: (chatId, request) => this.#http.send(resumePath(chatId), request),
      stop: (chatId) => this.api.stopChat(chatId),
      keeperOf: this.#keepers.of,
      report: (strand, state) => this.#shared.report(strand, state),
      backoff: withDefaults(backoff),
      observe,
    })
  }

  get connection(): ConnectionState {
    return this.#shared.status.current
  }

  onConnection(listener: ConnectionListener): () => void {
    return this.#shared.status.subscribe(listener)
  }

  async sendMessages(options: SendOptions): Promise<AdkChunkStream> {
    const { chatId, trigger, messageId, abortSignal, headers, body } = options
    const { messages, answered } = selectMessages({ ...options, messageId, trigger }, this.answers)
    const supplements = this.answers.supplementsOf(answered)
    const named = nameAgent(this.#agent, chatId)
    this.answers.mark(answered, 'travelling')
    const tap = new WireTap(this.#observe, { chatId, trigger, messageId, message: messages[0] })
    const answer = this.#reading.begin(chatId, 'asked', { tap, signal: abortSignal })
    try {
      const response = await this.#http.send('/stream', {
        method: 'POST',
        body: { ...named, ...body, id: chatId, trigger, messageId, messages, ...supplements },
        signal: answer.signal,
        headers,
      })
      this.answers.mark(answered, 'taken')
      return this.#reading.read(answer, response)
    } catch (error) {
      answer.end(error)
      this.answers.mark(answered, 'refused')
      if (answered.length > 0) this.#keepers.of(chatId)?.onRefused(answered, error)
      throw error
    }
  }

  async reconnectToStream(options: ReconnectOptions): Promise<AdkChunkStream | null> {
    const { chatId, headers, abortSignal } = options
    const tap = new WireTap(this.#observe, { chatId, trigger: 'resume' })
    const answer = this.#reading.begin(chatId, 'resumed', { tap, signal: abortSignal })
    try {
      const { signal } = answer
      const response =
        this.#reading.takeRevived(chatId) ??
        (await this.#http.send(resumePath(chatId), { headers, signal }))
      if (response.status !== 204) return this.#reading.read(answer, response)
      answer.end()
      return null
    } catch (error) {
      answer.end(error)
      throw error
    }
  }

  /** Decides away from the chat's stream, as an inbox does; resolves with the state that the approval is in then. */
  decide({ approvalId, ...decision }: Omit<DecisionSent, 'chatId'>): Promise<string> {
    return this.api.decide(approvalId, decision)
  }

  /** The conversation as the server has it. */
  async loadMessages(chatId: string): Promise<AdkUIMessage[]> {
    return (await this.loadChat(chatId)).messages
  }

  /** The conversation as the server has it, and whether an answer is being written that it leaves out. */
  loadChat(chatId: string): Promise<LoadedChat> {
    return this.api.loadChat(chatId)
  }

  /** An answer over HTTP ends where it waits: there is nothing to travel beside. */
  beside(): undefined {
    return undefined
  }

  keep(chatId: string, keeper: ChatObserver): () => void {
    return this.#keepers.keep(chatId, keeper)
  }

  /** The feed of a chat shows in the connection: without it, the page does not keep up. */
  onFeed(feed: object, state: ConnectionState | undefined): void {
    this.#shared.report(feed, state)
  }
}

function resumePath(chatId: string): string {
  return `/stream/${encodeURIComponent(chatId)}/stream`
}
