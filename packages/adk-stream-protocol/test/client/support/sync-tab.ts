import type { Chat } from '@ai-sdk/react'

import type { AdkApi, AdkUIMessage, AttachedChat } from '../../../src/client/index.ts'
import {
  adkApi,
  attachChat,
  runBrowserTools,
  sseTransport,
  webSocketTransport,
} from '../../../src/client/index.ts'
import { markStopped, recoverChat, sendDecision } from '../../../src/react/hooks/chat-actions.ts'
import { type Decision, findPending } from '../../../src/react/reading/approval.ts'
import { toLiveUrl } from '../../sockets/support/socket-client.ts'
import type { ChatMessage } from '../../support/chat-probe.ts'
import { versions } from './client-page.ts'
import { type FakeLocks, PageLocks } from './fake-locks.ts'
import type { TabPlan } from './sync-program.ts'
import { runInTab } from './tab-locks.ts'
import { TabNetwork } from './tab-network.ts'

/** Short enough for a test, with as many attempts as a page makes. */
const BACKOFF = { firstMs: 5, maxMs: 100, attempts: 10_000 }

export interface SyncTabOptions {
  readonly plan: TabPlan
  readonly chatId: string
  readonly serverUrl: () => string
  readonly headers: Readonly<Record<string, string>>
  readonly locks: FakeLocks
  readonly runTool: (tab: SyncTab, id: number) => Promise<{ run: string }>
  readonly note: (line: string) => void
}

/** A tab with an attached chat that has an `api`, and with a network of its own. */
export class SyncTab {
  readonly network: TabNetwork
  readonly #options: SyncTabOptions
  readonly #locks: PageLocks
  readonly #api: AdkApi
  /** Undefined while the page loads. */
  #page:
    | { readonly chat: Chat<AdkUIMessage>; readonly attached: AttachedChat; close(): void }
    | undefined
  /** The errors after which the person tried again. */
  readonly #errors: string[] = []
  #isClosed = false
  #working = 0
  /** The approvals that were decided here. */
  readonly decided = new Set<string>()

  constructor(options: SyncTabOptions, network?: TabNetwork) {
    const { headers, note } = options
    this.#options = options
    this.#locks = new PageLocks(options.locks)
    this.network = network ?? new TabNetwork(options.serverUrl, { headers, note })
    this.network.run = (work) => runInTab(this.#locks, work)
    const { url, fetch } = this.network
    this.#api = adkApi({ url, fetch, headers })
    const watchChat = this.#api.watchChat.bind(this.#api)
    this.#api.watchChat = (chatId, listener, given) =>
      watchChat(chatId, listener, { backoff: BACKOFF, ...given })
    this.#do('opens', () => this.#open())
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get isLoaded(): boolean {
    return this.#page !== undefined
  }

  /** The messages that the tab shows as sent. */
  get messages(): readonly ChatMessage[] {
    return (this.#page?.chat.messages ?? []).filter(({ metadata }) => metadata?.unsent !== true)
  }

  get status(): string {
    return this.#page?.chat.status ?? 'loading'
  }

  get error(): Error | undefined {
    return this.#page?.chat.error
  }

  /** Whether a request is in progress, or something that the person did. */
  get isBusy(): boolean {
    return this.#working > 0 || this.#isReading
  }

  get #isReading(): boolean {
    return this.status !== 'ready' && this.status !== 'error'
  }

  /** The approvals and questions that the tab asks for. */
  get asked(): string[] {
    const approvals = this.messages.flatMap(({ parts }) =>
      parts.flatMap((part) => {
        const { approval } = part as { approval?: { id: string } }
        return part.state === 'approval-requested' && approval ? [approval.id] : []
      }),
    )
    return [...approvals, ...this.#questions]
  }

  get #questions(): string[] {
    return (this.#page?.chat.messages ?? [])
      .flatMap(findPending)
      .flatMap(({ approval }) => (approval.kind === undefined ? [] : [approval.approvalId]))
  }

  send(id: string, text: string): void {
    const message = { id, role: 'user' as const, parts: [{ type: 'text' as const, text }] }
    this.#start(`sends ${id}: ${text}`, ({ chat }) => chat.sendMessage(message))
  }

  /** Stops the reply, and marks it as a page does. */
  stop(): void {
    this.#do('stops', async () => {
      const { chat, attached } = this.#page ?? {}
      if (!chat || !this.#isReading) return
      await chat.stop()
      while (this.#isReading) await new Promise(setImmediate)
      markStopped(chat, attached)
    })
  }

  regenerate(): void {
    this.#start('regenerates', ({ chat }) => chat.regenerate())
  }

  /** Decides as the components of the library do. Returns the decision. */
  decide(approvalId: string, approved: boolean, by: 'api' | 'chat'): Decision {
    this.decided.add(approvalId)
    const isAnswer = approved && this.#questions.includes(approvalId)
    const decision = { approved, ...(isAnswer && { payload: ANSWER }) }
    this.#start(`decides ${approvalId}: ${approved}`, ({ chat, attached }) => {
      const api = by === 'api' ? this.#api : undefined
      const target = { chat, attached, api, isConnected: true }
      return sendDecision(target, approvalId, decision)
    })
    return decision
  }

  /** Whether the same error followed each of several attempts: the server refuses what the person wants. */
  get isRefused(): boolean {
    const last = this.#errors.slice(-REFUSALS)
    return last.length === REFUSALS && last.every((each) => each === this.error?.message)
  }

  /** Clicks the button that a page shows for an error. */
  recover(): void {
    this.#errors.push(this.error?.message ?? '')
    this.#do(`tries again after ${String(this.error)}`, async () => {
      const { chat, attached } = this.#page ?? {}
      if (chat && attached) await recoverChat(chat, this.#api, attached)
    })
  }

  /** Leaves the page, and loads it again. */
  reload(): SyncTab {
    this.close()
    return new SyncTab(this.#options, this.network)
  }

  close(): void {
    this.#note('closes')
    this.#isClosed = true
    this.#page?.close()
    this.network.cut()
    this.#locks.close()
  }

  toString(): string {
    const { version, transport } = this.#options.plan
    return `ai ${version} ${transport}, ${this.status}${this.error ? `: ${this.error.message}` : ''}`
  }

  async #open(): Promise<void> {
    const { chatId, plan, headers, runTool, note } = this.#options
    const { messages } = await this.#load()
    if (this.#isClosed) return
    const { url, fetch, socketClass } = this.network
    const transport =
      plan.transport === 'sse'
        ? sseTransport({ url, fetch, headers, backoff: BACKOFF })
        : webSocketTransport({
            url: toLiveUrl(url),
            webSocket: socketClass,
            hold: plan.transport === 'held',
            backoff: BACKOFF,
          })
    const opened = versions[plan.version === 6 ? 0 : 1].open({ id: chatId, messages, transport })
    // Both versions of the AI SDK have the methods that are used here.
    const chat = opened as unknown as Chat<AdkUIMessage>
    const attached = attachChat(opened, transport, {
      api: this.#api,
      onError: (error) => note(`reports ${String(error)}`),
      onRefused: (ids, error) => note(`refused ${ids.join()}: ${String(error)}`),
    })
    const run = ({ id }: { id: number }): Promise<{ run: string }> => runTool(this, id)
    runBrowserTools(attached, { locate: run, select: run })
    const close = (): void => {
      attached.detach()
      if ('close' in transport) transport.close()
    }
    this.#page = { chat, attached, close }
    this.#start('resumes', () => chat.resumeStream())
  }

  /** A browser shows its own error page until the server responds, and the person tries again. */
  async #load(): Promise<{ messages: AdkUIMessage[] }> {
    for (;;)
      try {
        return await this.#api.loadChat(this.#options.chatId)
      } catch (error) {
        if (this.#isClosed) return { messages: [] }
        this.#note(`cannot load: ${String(error)}`)
        await new Promise((resolve) => setTimeout(resolve, BACKOFF.maxMs))
      }
  }

  /** Starts something that ends when the reply has ended. */
  #start(
    what: string,
    work: (page: { chat: Chat<AdkUIMessage>; attached: AttachedChat }) => Promise<unknown>,
  ): void {
    const page = this.#page
    if (!page) return
    this.#note(what)
    runInTab(this.#locks, () => work(page)).catch((error: unknown) =>
      this.#note(`${what}: ${String(error)}`),
    )
  }

  #do(what: string, work: () => Promise<unknown>): void {
    this.#note(what)
    this.#working += 1
    runInTab(this.#locks, work)
      .catch((error: unknown) => this.#note(`${what}: ${String(error)}`))
      .finally(() => {
        this.#working -= 1
      })
  }

  #note(line: string): void {
    this.#options.note(line)
  }
}

const ANSWER = { nights: 3 }
const REFUSALS = 5
