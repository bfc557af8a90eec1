import type { Chat } from '@ai-sdk/react'
import { WebSocket } from 'ws'

import type { AdkApi, AdkUIMessage, AttachedChat, WireEvent } from '../../../src/client/index.ts'
import { adkApi, attachChat, sseTransport, webSocketTransport } from '../../../src/client/index.ts'
import { markStopped, recoverChat } from '../../../src/react/hooks/chat-actions.ts'
import { versions } from '../../client/support/client-page.ts'
import { toLiveUrl } from '../../sockets/support/socket-client.ts'
import type { ChatMessage } from '../../support/chat-probe.ts'
import type { Random } from './random.ts'

/** How much of a chunk or frame is recorded. */
const MAX_LINE = 240

interface TabOptions {
  readonly chatId: string
  readonly user: string
  /** The address of the deployment. */
  readonly url: string
  readonly random: Random
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
  #isRecovering = false

  private constructor(
    { chatId, user, url, random, log }: TabOptions,
    api: AdkApi,
    messages: AdkUIMessage[],
  ) {
    const version = random.pick(versions)
    const isSocket = random.chance(0.5)
    this.#name = `${version.name} over ${isSocket ? 'a socket' : 'HTTP'}`
    this.#log = log
    this.#api = api
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
      api,
      onError: (error) => this.#note(String(error)),
      onRefused: (ids, error) => this.#note(`refused: ${ids.join()}: ${String(error)}`),
    })
    this.#close = () => {
      this.#attached.detach()
      if ('close' in transport) transport.close()
    }
    this.#do('resumes', this.#chat.resumeStream())
  }

  /** Loads a chat as a page does. */
  static async open(options: TabOptions): Promise<PageTab> {
    const api = adkApi({ url: options.url, headers: { 'x-user': options.user } })
    const { messages } = await api.loadChat(options.chatId)
    return new PageTab(options, api, messages)
  }

  /** The messages that the tab shows. */
  get messages(): readonly ChatMessage[] {
    return this.#chat.messages
  }

  /** The approvals that the tab asks for. */
  get asked(): string[] {
    const parts = this.messages.flatMap((message) => message.parts)
    return parts.flatMap((part) => {
      const { approval } = part as { approval?: { id: string } }
      return part.state === 'approval-requested' && approval ? [approval.id] : []
    })
  }

  get isBusy(): boolean {
    const { status } = this.#chat
    return this.#isRecovering || status === 'streaming' || status === 'submitted'
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
    this.#do(`sends ${id}: ${text}`, this.#chat.sendMessage(message))
  }

  /** Stops the reply, and marks it as a page does. */
  async stop(): Promise<void> {
    this.#do('stops', this.#chat.stop())
    while (this.isBusy) await new Promise(setImmediate)
    markStopped(this.#chat)
  }

  approve(approvalId: string): void {
    this.#do(`approves ${approvalId}`, this.#attached.approve(approvalId))
  }

  deny(approvalId: string): void {
    this.#do(`denies ${approvalId}`, this.#attached.deny(approvalId))
  }

  /** Clicks the button that a page shows for an error. */
  recover(): void {
    this.#isRecovering = true
    const recovered = recoverChat(this.#chat, this.#api).finally(() => {
      this.#isRecovering = false
    })
    this.#do(`tries again after ${String(this.#chat.error)}`, recovered)
  }

  close(): void {
    this.#note('closes')
    this.#close()
  }

  toString(): string {
    return `${this.#name}, ${this.#chat.status}`
  }

  #do(what: string, work: Promise<unknown>): void {
    this.#note(what)
    work.catch((error: unknown) => this.#note(`${what}: ${String(error)}`))
  }

  #note(line: string): void {
    this.#log.push(`${new Date().toISOString()} ${this.#name}: ${line}`)
  }
}
