import type { ChatTransport } from 'ai'

import type { Backoff } from '../../shared/backoff.ts'
import { withDefaults } from '../../shared/backoff.ts'
import type {
  AdkChunkStream,
  AdkUIMessage,
  ReconnectOptions,
  SendOptions,
} from '../adk-ui-message.ts'
import type { LoadedChat } from '../api/adk-api.ts'
import { AdkApi } from '../api/adk-api.ts'
import type { HttpOptions } from '../api/http.ts'
import { Http } from '../api/http.ts'
import { ResponseStates, selectMessages } from '../sync/response-states.ts'
import type { ChatObserver } from './chat-observers.ts'
import { ChatObservers } from './chat-observers.ts'
import type { Connected, ConnectionListener, ConnectionState } from './connection-state.ts'
import { SharedConnection } from './connection-state.ts'
import type { AgentOption } from './name-agent.ts'
import { nameAgent } from './name-agent.ts'
import type { ResponseChannel, SentDecision } from './response-channel.ts'
import { SseStreams } from './sse-streams.ts'
import type { WireObserver } from './wire-events.ts'
import { tapStream } from './wire-events.ts'

/** Options of `sseTransport`. */
export interface SseTransportOptions extends HttpOptions {
  /**
   * The agent of new chats, if the bridge has several. A function is called for each chat. A chat that has another agent rejects messages
   * with `other-agent`. Default: the bridge chooses. `body.agent` of a message overrides it.
   */
  readonly agent?: AgentOption
  /** The delays before an interrupted stream is requested again. Applies to attached chats. */
  readonly backoff?: Backoff
  /** Called with everything that is sent and received, for a recorder or an inspector. */
  readonly observe?: WireObserver
}

/** Creates a chat transport over HTTP, for `useChat` of the AI SDK 6 and 7. */
export function sseTransport(options: SseTransportOptions): SseTransport {
  return new SseTransport(options)
}

/** The transport of `sseTransport()`. Each stream is the response to an HTTP request. */
export class SseTransport implements ChatTransport<AdkUIMessage>, ResponseChannel, Connected {
  /** A resumed stream replays its message from the start. */
  readonly resumeStreamIsReplay = true
  readonly responses = new ResponseStates()
  /** The other requests to the same bridge. */
  readonly api: AdkApi
  readonly #http: Http
  readonly #agent: AgentOption | undefined
  readonly #observe: WireObserver | undefined
  readonly #observers = new ChatObservers()
  readonly #shared = new SharedConnection()
  readonly #streams: SseStreams

  constructor({ agent, backoff, observe, ...options }: SseTransportOptions) {
    this.#agent = agent
    this.#http = new Http(options)
    this.api = new AdkApi(this.#http)
    this.#observe = observe
    this.#streams = new SseStreams({
      resume: (chatId, request) => this.#http.send(resumePath(chatId), request),
      stop: (chatId) => this.api.stopChat(chatId),
      findObserver: this.#observers.find,
      report: (request, state) => this.#shared.report(request, state),
      backoff: withDefaults(backoff),
    })
  }

  get connection(): ConnectionState {
    return this.#shared.status.current
  }

  /** Returns a function that unsubscribes. */
  onConnection(listener: ConnectionListener): () => void {
    return this.#shared.status.subscribe(listener)
  }

  async sendMessages(options: SendOptions): Promise<AdkChunkStream> {
    const { chatId, trigger, messageId, abortSignal: signal, headers, body } = options
    const { messages, responseIds } = selectMessages(
      { messages: options.messages, messageId, trigger },
      this.responses.all,
    )
    const named = nameAgent(this.#agent, chatId)
    const supplements = this.responses.supplementsOf(responseIds)
    this.responses.mark(responseIds, 'sent')
    const tap = tapStream(this.#observe, { chatId, trigger, messageId, message: messages[0] })
    const stream = this.#streams.open(chatId, { source: 'requested', tap, signal })
    try {
      const response = await this.#http.send('/stream', {
        method: 'POST',
        body: { ...named, ...body, id: chatId, trigger, messageId, messages, ...supplements },
        signal: stream.signal,
        headers,
      })
      this.responses.mark(responseIds, 'accepted')
      return this.#streams.read(stream, response)
    } catch (error) {
      stream.end(error)
      this.responses.mark(responseIds, 'refused')
      if (responseIds.length > 0)
        this.#observers.find(chatId)?.onResponsesRefused(responseIds, error)
      throw error
    }
  }

  async reconnectToStream(options: ReconnectOptions): Promise<AdkChunkStream | null> {
    const { chatId, headers, abortSignal } = options
    const tap = tapStream(this.#observe, { chatId, trigger: 'resume' })
    const stream = this.#streams.open(chatId, { source: 'resumed', tap, signal: abortSignal })
    try {
      const { signal } = stream
      const response =
        this.#streams.takeResumed(chatId) ??
        (await this.#http.send(resumePath(chatId), { headers, signal }))
      if (response.status !== 204) return this.#streams.read(stream, response)
      stream.end()
      return null
    } catch (error) {
      stream.end(error)
      throw error
    }
  }

  /** Decides an approval outside the chat's stream, as an inbox does. Resolves with the new state of the approval. */
  decide({ approvalId, ...decision }: Omit<SentDecision, 'chatId'>): Promise<string> {
    return this.api.decide(approvalId, decision)
  }

  /** Loads the stored messages of a chat. */
  async loadMessages(chatId: string): Promise<AdkUIMessage[]> {
    return (await this.loadChat(chatId)).messages
  }

  /** Loads the stored messages of a chat, and whether a turn is running, which they leave out. */
  loadChat(chatId: string): Promise<LoadedChat> {
    return this.api.loadChat(chatId)
  }

  /** Returns undefined: a stream over HTTP ends when it waits for a response. */
  openStream(): undefined {
    return undefined
  }

  observeChat(chatId: string, observer: ChatObserver): () => void {
    return this.#observers.add(chatId, observer)
  }

  /** The feed of a chat counts as part of the connection: without it, the page does not follow the server. */
  onFeed(feed: object, state: ConnectionState | undefined): void {
    this.#shared.report(feed, state)
  }
}

function resumePath(chatId: string): string {
  return `/stream/${encodeURIComponent(chatId)}/stream`
}
