import type { Chat } from '@ai-sdk/react'
import { WebSocket } from 'ws'

import type {
  AdkApi,
  AdkUIMessage,
  AttachedChat,
  BrowserTools,
  WireEvent,
} from '../../../src/client/index.ts'
import {
  adkApi,
  attachChat,
  runBrowserTools,
  sseTransport,
  webSocketTransport,
} from '../../../src/client/index.ts'
import { markStopped, recoverChat, sendDecision } from '../../../src/react/hooks/chat-actions.ts'
import { type Decision, findPending } from '../../../src/react/reading/approval.ts'
import { versions } from '../../client/support/client-page.ts'
import { type FakeLocks, PageLocks } from '../../client/support/fake-locks.ts'
import { runInTab } from '../../client/support/tab-locks.ts'
import { toLiveUrl } from '../../sockets/support/socket-client.ts'
import type { ChatMessage } from '../../support/chat-probe.ts'
import type { RecordedRun } from './history.ts'
import type { Random } from './random.ts'
import { TabVoice } from './tab-voice.ts'

/** How much of a chunk or frame is recorded. */
const MAX_LINE = 240

interface TabOptions {
  readonly chatId: string
  readonly user: string
  /** The address of the deployment. */
  readonly url: string
  readonly random: Random
  /** Whether the person speaks in the tab. */
  readonly isSpoken: boolean
  /** Whether the tab uses no socket. */
  readonly isHttp: boolean
  /** The locks of the browser. */
  readonly locks: FakeLocks
  readonly tools: (tab: PageTab) => BrowserTools
  /** What happens in the tabs of a person, for the report of a violation. */
  readonly log: string[]
}

/** A tab of a browser with the client library, over HTTP or a socket. */
export class PageTab {
  readonly #name: string
  readonly #chat: Chat<AdkUIMessage>
  readonly #attached: AttachedChat
  readonly #api: AdkApi
  readonly #log: string[]
  readonly #close: () => void
  readonly #locks: PageLocks
  /** The runs of browser tools in this tab, by the id of their calls. */
  readonly #runs: RecordedRun[] = []
  readonly #voice: TabVoice | undefined
  #isRecovering = false
  /** How many messages are being sent. While the tab also resumes, the status of the AI SDK does not say so. */
  #sending = 0
  #isClosed = false

  private constructor(
    { chatId, user, url, random, log, tools, isSpoken, isHttp }: TabOptions,
    locks: PageLocks,
    { api, messages }: { readonly api: AdkApi; readonly messages: AdkUIMessage[] },
  ) {
    const version = random.pick(versions)
    const isSocket = isSpoken || (random.chance(0.5) && !isHttp)
    this.#name = `${version.name} over ${isSocket ? 'a socket' : 'HTTP'}`
    this.#log = log
    this.#api = api
    this.#locks = locks
    const headers = { 'x-user': user }
    class PageSocket extends WebSocket {
      constructor(address: string, protocols?: string | string[]) {
        super(address, protocols, { headers })
      }
    }
    const backoff = { firstMs: 20, maxMs: 1_000 }
    const observe = (event: WireEvent): void => {
      const line = JSON.stringify(event)
      if (!line.includes('-delta"')) this.#note(line.slice(0, MAX_LINE))
    }
    const shared = { backoff, observe }
    const transport = isSocket
      ? webSocketTransport({ url: () => toLiveUrl(url), webSocket: PageSocket, ...shared })
      : sseTransport({ url, headers, ...shared })
    const chat = version.open({ id: chatId, messages, transport })
    // Both versions of the AI SDK have the methods that are used here.
    this.#chat = chat as unknown as Chat<AdkUIMessage>
    this.#attached = attachChat(chat, transport, {
      api: this.#observeApi(api),
      onError: (error) => this.#note(String(error)),
      onRefused: (ids, error) => this.#note(`refused: ${ids.join()}: ${String(error)}`),
    })
    this.#voice = 'sendAudio' in transport ? new TabVoice(transport, chatId) : undefined
    this.#close = () => {
      this.#voice?.close()
      this.#attached.detach()
      if ('close' in transport) transport.close()
    }
    runBrowserTools(this.#attached, tools(this))
    this.#do('resumes', () => this.#chat.resumeStream())
  }

  /** Loads a chat as a page does. */
  static async open(options: TabOptions): Promise<PageTab> {
    const api = adkApi({ url: options.url, headers: { 'x-user': options.user } })
    const { messages } = await api.loadChat(options.chatId)
    const locks = new PageLocks(options.locks)
    return runInTab(locks, () => new PageTab(options, locks, { api, messages }))
  }

  /** The messages that the tab shows as sent. */
  get messages(): readonly ChatMessage[] {
    return this.#chat.messages.filter(({ metadata }) => metadata?.unsent !== true)
  }

  /** The approvals and questions that the tab asks for. */
  get asked(): string[] {
    const parts = this.messages.flatMap((message) => message.parts)
    const approvals = parts.flatMap((part) => {
      const { approval } = part as { approval?: { id: string } }
      return part.state === 'approval-requested' && approval ? [approval.id] : []
    })
    const questions = this.#chat.messages
      .flatMap(findPending)
      .flatMap(({ approval }) => (approval.kind === undefined ? [] : [approval.approvalId]))
    return [...approvals, ...questions]
  }

  get isBusy(): boolean {
    const { status } = this.#chat
    return (
      this.#isRecovering || this.#sending > 0 || status === 'streaming' || status === 'submitted'
    )
  }

  get hasFailed(): boolean {
    return this.#chat.status === 'error'
  }

  /** Loads what the server has stored. Returns undefined if it does not respond. */
  async loadStored(): Promise<{ messages: readonly ChatMessage[]; running: boolean } | undefined> {
    return this.#api.loadChat(this.#chat.id).catch(() => undefined)
  }

  send(id: string, text: string): void {
    const message = { id, role: 'user' as const, parts: [{ type: 'text' as const, text }] }
    this.#sending += 1
    this.#do(`sends ${id}: ${text}`, () =>
      this.#chat.sendMessage(message).finally(() => {
        this.#sending -= 1
      }),
    )
  }

  /** Says something. Resolves when it is said. */
  async speak(utterance: number): Promise<void> {
    this.#note(`says ${utterance}, ${String(this.#voice)}`)
    await runInTab(this.#locks, async () => this.#voice?.speak(utterance))
    this.#note(`has said ${utterance}, ${String(this.#voice)}`)
  }

  /** Stops the voice. */
  hush(): void {
    this.#note('stops the voice')
    this.#voice?.stop()
  }

  /** Stops the reply, and marks it as a page does. */
  async stop(): Promise<void> {
    this.#do('stops', () => this.#chat.stop())
    while (this.isBusy) await new Promise(setImmediate)
    markStopped(this.#chat, this.#attached)
  }

  /** Decides as the components of the library do. Without the API, a question is answered as a stock client does. */
  decide(approvalId: string, decision: Decision, by: 'api' | 'chat'): void {
    this.#do(`decides ${approvalId}: ${JSON.stringify(decision)}`, () => {
      const api = by === 'api' ? this.#api : undefined
      const target = { chat: this.#chat, attached: this.#attached, api, isConnected: true }
      return sendDecision(target, approvalId, decision)
    })
  }

  /** Clicks the button that a page shows for an error. */
  recover(): void {
    this.#isRecovering = true
    this.#do(`tries again after ${String(this.#chat.error)}`, () =>
      recoverChat(this.#chat, this.#api, this.#attached).finally(() => {
        this.#isRecovering = false
      }),
    )
  }

  /** Records what the chat loads, and what its feed reports. */
  #observeApi(api: AdkApi): Pick<AdkApi, 'loadChat' | 'watchChat'> {
    return {
      loadChat: async (chatId, options) => {
        const { after = '' } = options ?? {}
        try {
          const loaded = await api.loadChat(chatId, options)
          const { position, running, messages } = loaded
          const ids = messages.map(({ id, parts }) => `${id.slice(-4)}:${parts.length}`)
          this.#note(`loads after ${after}: ${position}, running ${running}, ${ids.join()}`)
          return loaded
        } catch (error) {
          this.#note(`loads after ${after}: ${String(error)}`)
          throw error
        }
      },
      watchChat: (chatId, listener, options) =>
        api.watchChat(
          chatId,
          (event) => {
            this.#note(`feed: ${JSON.stringify(event).slice(0, MAX_LINE)}`)
            listener(event)
          },
          options,
        ),
    }
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  close(): void {
    if (this.#isClosed) return
    this.#note('closes')
    this.#isClosed = true
    for (const run of this.#runs) {
      run.closedAt = Date.now()
      run.isAcknowledged = this.#isAcknowledged(run)
    }
    this.#close()
    this.#locks.close()
  }

  /** Records a run of a browser tool in this tab. */
  record(run: RecordedRun): void {
    this.#note(`runs ${run.id} as ${run.name}`)
    const { toolCallId } = this.#findCall(run) ?? {}
    if (toolCallId !== undefined) run.toolCallId = toolCallId
    this.#runs.push(run)
  }

  #isAcknowledged(run: RecordedRun): boolean {
    const { toolCallId = '' } = this.#findCall(run) ?? {}
    return this.#attached.channel.responses.all.get(toolCallId) === 'accepted'
  }

  /** The call of a run, or of the newest reply that has one with this input. */
  #findCall({ id, toolCallId }: RecordedRun): ChatMessage['parts'][number] | undefined {
    return this.messages
      .flatMap((message) => message.parts)
      .findLast((part) =>
        toolCallId === undefined
          ? (part.input as { id?: number } | undefined)?.id === id
          : part.toolCallId === toolCallId,
      )
  }

  toString(): string {
    return `${this.#name}, ${this.#chat.status}`
  }

  #do(what: string, work: () => Promise<unknown>): void {
    this.#note(what)
    runInTab(this.#locks, work).catch((error: unknown) => this.#note(`${what}: ${String(error)}`))
  }

  #note(line: string): void {
    this.#log.push(`${new Date().toISOString()} ${this.#name}: ${line}`)
  }
}
