import { z } from 'zod'

import { findChunkFaults } from './chunk-order.ts'
import type { ChatOptions, ConformChat, ConformClient } from './conform-chat.ts'
import { RecordedRequests } from './recorded-requests.ts'

/** A message of the AI SDK, as far as it is read here. */
interface UiMessage {
  readonly id: string
  readonly role: string
  readonly parts: readonly UiPart[]
}

interface UiPart {
  readonly type: string
  readonly text?: string
  readonly state?: string
  readonly toolCallId?: string
  readonly approval?: { readonly id: string }
}

/** The chat of `useChat` without React, in AI SDK 6 and 7. */
interface AbstractChat {
  readonly id: string
  readonly status: string
  readonly error: Error | undefined
  readonly messages: readonly UiMessage[]
  sendMessage(message: { text: string }): Promise<void>
  addToolApprovalResponse(response: { id: string; approved: boolean }): void | PromiseLike<void>
  stop(): Promise<void>
}

/** What is used of the package `ai`. */
export interface AiPackage {
  readonly AbstractChat: new (options: object) => AbstractChat
  readonly DefaultChatTransport: new (options: object) => object
  readonly lastAssistantMessageIsCompleteWithApprovalResponses: (state: object) => boolean
}

/** Returns the client of a version of the AI SDK: its own chat, transport and helper. */
export function uiClient(name: string, ai: AiPackage): ConformClient {
  return {
    name,
    open: (options) => new UiChat(ai, options, crypto.randomUUID(), []),
  }
}

class UiChat implements ConformChat {
  readonly requests: RecordedRequests
  readonly #ai: AiPackage
  readonly #options: ChatOptions
  readonly #chat: AbstractChat

  constructor(ai: AiPackage, options: ChatOptions, id: string, messages: readonly UiMessage[]) {
    this.#ai = ai
    this.#options = options
    this.requests = new RecordedRequests(options)
    this.#chat = new ai.AbstractChat({
      id,
      state: createState(messages),
      transport: new ai.DefaultChatTransport({ api: options.url, fetch: this.requests.fetch }),
      sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithApprovalResponses,
    })
  }

  get pending(): readonly string[] {
    return this.#parts.flatMap(({ state, approval }) =>
      state === 'approval-requested' && approval ? [approval.id] : [],
    )
  }

  get calls(): readonly string[] {
    return this.#parts.flatMap(({ toolCallId }) => toolCallId ?? [])
  }

  get results(): readonly string[] {
    return this.#parts.flatMap(({ state, toolCallId }) =>
      state === 'output-available' && toolCallId !== undefined ? [toolCallId] : [],
    )
  }

  get text(): string {
    const { messages } = this.#chat
    const last = messages.findLastIndex(({ role }) => role === 'user')
    const parts = messages.slice(last + 1).flatMap((message) => message.parts)
    return parts.flatMap(({ type, text }) => (type === 'text' && text ? [text] : [])).join('')
  }

  get error(): string | undefined {
    return this.#chat.status === 'error' ? (this.#chat.error?.message ?? 'an error') : undefined
  }

  async send(text: string): Promise<void> {
    await this.#chat.sendMessage({ text })
    await this.#rest()
  }

  async answer(approved: boolean): Promise<void> {
    for (const id of this.pending) await this.#chat.addToolApprovalResponse({ id, approved })
    await this.#rest()
  }

  stop(): void {
    // The promise resolves when the client is idle, which `send` waits for.
    void this.#chat.stop()
  }

  writer(): this {
    return this
  }

  async reload(): Promise<ConformChat> {
    const { historyUrl } = this.#options
    const copy = structuredClone([...this.#chat.messages])
    const messages = historyUrl === undefined ? copy : await this.#load(historyUrl)
    return new UiChat(this.#ai, this.#options, this.#chat.id, messages)
  }

  async findFaults(): Promise<string[]> {
    const bodies = await Promise.all(
      this.requests.responses.flatMap(({ isStream, text }) => (isStream ? [text] : [])),
    )
    return bodies.flatMap((body) => (body === undefined ? [] : findChunkFaults(body)))
  }

  get #parts(): readonly UiPart[] {
    return this.#chat.messages.flatMap(({ parts }) => parts)
  }

  async #load(historyUrl: string): Promise<readonly UiMessage[]> {
    const url = historyUrl.replaceAll('{chat}', encodeURIComponent(this.#chat.id))
    const response = await fetch(url, { headers: this.#options.headers })
    const read = History.safeParse(await response.json().catch(() => undefined))
    if (!read.success)
      throw new TypeError(`${url} must return UI messages, or { "messages": [...] }.`)
    return read.data
  }

  /** Resolves when no request is open and the client sends none by itself. It decides that within a few microtasks. */
  async #rest(): Promise<void> {
    const end = Date.now() + this.#options.timeoutMs
    for (let quiet = 0; quiet < QUIET_CHECKS; quiet = this.#isIdle() ? quiet + 1 : 0) {
      if (Date.now() > end) throw new TypeError(`The client is still ${this.#chat.status}.`)
      await new Promise((resolve) => {
        setTimeout(resolve, 2)
      })
    }
  }

  #isIdle(): boolean {
    return this.#chat.status === 'ready' || this.#chat.status === 'error'
  }
}

const QUIET_CHECKS = 5

const Messages = z.array(
  z.looseObject({
    id: z.string(),
    role: z.string(),
    parts: z.array(
      z.looseObject({
        type: z.string(),
        text: z.string().exactOptional(),
        state: z.string().exactOptional(),
        toolCallId: z.string().exactOptional(),
        approval: z.looseObject({ id: z.string() }).exactOptional(),
      }),
    ),
  }),
)
const History = z.union([
  Messages,
  z.looseObject({ messages: Messages }).transform(({ messages }) => messages),
])

/** The state that `AbstractChat` leaves to the framework around it. */
function createState(messages: readonly UiMessage[]): object {
  const state = {
    status: 'ready',
    error: undefined,
    messages: [...messages],
    pushMessage: (message: UiMessage): void => void state.messages.push(message),
    popMessage: (): void => void state.messages.pop(),
    replaceMessage: (index: number, message: UiMessage): void => {
      state.messages[index] = structuredClone(message)
    },
    snapshot: <Thing>(thing: Thing): Thing => structuredClone(thing),
  }
  return state
}
