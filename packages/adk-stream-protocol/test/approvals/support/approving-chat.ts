import { Chat as Chat6 } from '@ai-sdk/react'
import { Chat as Chat7 } from '@ai-sdk/react-7'
import * as ai6 from 'ai'
import * as ai7 from 'ai-7'

import { isLong } from '../../../../../test/support/long-run.ts'
import type { AdkUIMessage, AttachedChat } from '../../../src/client/index.ts'
import { AdkError, attachChat, webSocketTransport } from '../../../src/client/index.ts'
import { ERROR_CODES } from '../../../src/protocol/error-codes.ts'
import { ProtocolError } from '../../../src/protocol/errors.ts'
import type { ChatMessage, ChatPart } from '../../support/chat-probe.ts'
import { ChatProbe } from '../../support/chat-probe.ts'
import type { PageSocketClass } from './page.ts'
import type { AttachableChat } from '../../../src/client/sync/attachable-chat.ts'

/** The helper of the AI SDK that decides when the client sends by itself. */
export type AutoSend = 'approvals' | 'tool-calls' | 'both'

interface ApprovingChatOptions {
  readonly id: string
  readonly api: string
  readonly fetch: typeof globalThis.fetch
  readonly webSocket: PageSocketClass
  readonly loadChat: () => Promise<{ messages: readonly ChatMessage[]; running: boolean }>
  readonly messages: readonly ChatMessage[]
  /** Default `approvals`. */
  readonly autoSend?: AutoSend
}

/** An unmodified version of the AI SDK, with everything that it offers for approvals. */
export interface ApprovingClient {
  readonly name: string
  /** Whether it uses a live conversation. */
  readonly live?: true
  /** Whether it is the client library, which sends responses at once, whatever helper the page has. */
  readonly ours?: true
  readonly openChat: (options: ApprovingChatOptions) => ApprovingChat
}

interface Decision {
  readonly id: string
  readonly approved: boolean
  readonly reason?: string
  /** The payload of a decision. */
  readonly payload?: unknown
}

/** The result of a call that the page sends. */
interface GivenOutput {
  readonly tool: string
  readonly toolCallId: string
  readonly output: unknown
}

type RealChat = ConstructorParameters<typeof ChatProbe>[0] & {
  addToolApprovalResponse(
    decision: Omit<Decision, 'payload'> & { options?: { body?: object } },
  ): void | PromiseLike<void>
  addToolOutput(output: GivenOutput): void | PromiseLike<void>
  sendMessage(): Promise<void>
}

type Edits = Record<string, Record<string, unknown>>

/** A real `Chat`, and the actions of a person who decides. */
export class ApprovingChat extends ChatProbe {
  readonly #chat: RealChat
  readonly #edits: Edits

  constructor(chat: RealChat, edits: Edits) {
    super(chat)
    this.#chat = chat
    this.#edits = edits
  }

  /** The approvals that the newest message asks for, in the order of its calls. */
  get asked(): string[] {
    return approvalIds(this.lastMessage)
  }

  /** The code of the error that the client received. Over a socket, stock clients receive only the sentence. */
  get refusal(): string | undefined {
    if (this.error instanceof AdkError) return this.error.code
    const told = this.error?.message ?? ''
    return ERROR_CODES.find(
      (code) => told.includes(`"${code}"`) || told.startsWith(new ProtocolError(code).message),
    )
  }

  /** Clicks, without waiting for anything. */
  async click({ payload, ...decision }: Decision): Promise<void> {
    // The AI SDK can send it beside the messages of the next request, but not in the decision.
    const body = payload !== undefined && { payloads: { [decision.id]: payload } }
    await this.#chat.addToolApprovalResponse({ ...decision, ...(body && { options: { body } }) })
  }

  /** Adds the result of a call, without waiting for anything. */
  async give(output: GivenOutput): Promise<void> {
    await this.#chat.addToolOutput(output)
  }

  /** Decides all pending approvals, with one decision for all or one for each, and waits until the client is idle. */
  async decide(...answers: readonly (boolean | Omit<Decision, 'id'>)[]): Promise<void> {
    for (const [index, id] of this.asked.entries()) {
      const answer = answers[index] ?? answers.at(-1) ?? true
      await this.click({ id, ...(typeof answer === 'boolean' ? { approved: answer } : answer) })
    }
    await this.rest()
  }

  /** Sends edited arguments with the next requests. */
  edit(approvalId: string, args: Record<string, unknown>): void {
    this.#edits[approvalId] = args
  }

  /** Removes all messages but the first ones, as `setMessages(messages.slice(0, count))` does. */
  keepFirst(count: number): void {
    Object.assign(this.#chat, { messages: this.messages.slice(0, count) })
  }

  /** Sends the current messages, without a new one. */
  async sendAsItIs(): Promise<void> {
    await this.#chat.sendMessage()
    await this.rest()
  }

  /** Resolves when no request is in progress and none follows by itself. A client decides that within a few microtasks. */
  async rest(): Promise<void> {
    let quiet = 0
    while (quiet < QUIET_TURNS) {
      await this.until(({ status }) => status === 'ready' || status === 'error')
      await new Promise(setImmediate)
      quiet = this.status === 'ready' || this.status === 'error' ? quiet + 1 : 0
    }
  }
}

const QUIET_TURNS = 5

/** The approvals that a message asks for. */
function approvalIds(message: ChatMessage | undefined): string[] {
  return (message?.parts ?? []).flatMap((part) =>
    part.state === 'approval-requested' ? [approvalOf(part)?.id ?? ''] : [],
  )
}

/** The approval of a part. */
export function approvalOf(part: ChatPart | undefined): Partial<Decision> | undefined {
  return part && 'approval' in part ? (part.approval as Partial<Decision>) : undefined
}

export const approvingClients: readonly ApprovingClient[] = [
  {
    name: 'ai 6',
    openChat: ({ id, api, fetch, messages, autoSend = 'approvals' }) => {
      const edits: Edits = {}
      const approvals = ai6.lastAssistantMessageIsCompleteWithApprovalResponses
      const toolCalls = ai6.lastAssistantMessageIsCompleteWithToolCalls
      return new ApprovingChat(
        new Chat6({
          id,
          // Messages of the server are UI messages: `expectRecord` has both versions validate them.
          messages: messages as ai6.UIMessage[],
          transport: new ai6.DefaultChatTransport({
            api,
            fetch,
            prepareSendMessagesRequest: (request) => ({ body: toBody(request, edits) }),
          }),
          sendAutomaticallyWhen: (state) => combine(autoSend, approvals(state), toolCalls(state)),
        }),
        edits,
      )
    },
  },
  {
    name: 'ai 7',
    openChat: ({ id, api, fetch, messages, autoSend = 'approvals' }) => {
      const edits: Edits = {}
      const approvals = ai7.lastAssistantMessageIsCompleteWithApprovalResponses
      const toolCalls = ai7.lastAssistantMessageIsCompleteWithToolCalls
      return new ApprovingChat(
        new Chat7({
          id,
          messages: messages as ai7.UIMessage[],
          transport: new ai7.DefaultChatTransport({
            api,
            fetch,
            prepareSendMessagesRequest: (request) => ({ body: toBody(request, edits) }),
          }),
          sendAutomaticallyWhen: (state) => combine(autoSend, approvals(state), toolCalls(state)),
        }),
        edits,
      )
    },
  },
]

/** The AI SDK's own transport for sockets, unmodified; 6 has none. */
export const liveClient: ApprovingClient = {
  name: 'ai 7 live',
  live: true,
  openChat: ({ id, api, webSocket, messages, autoSend = 'approvals' }) => {
    const edits: Edits = {}
    const approvals = ai7.lastAssistantMessageIsCompleteWithApprovalResponses
    const toolCalls = ai7.lastAssistantMessageIsCompleteWithToolCalls
    return new ApprovingChat(
      new Chat7({
        id,
        messages: messages as ai7.UIMessage[],
        transport: new ai7.WebSocketChatTransport({
          url: api.replace('http', 'ws').replace(/stream$/, 'live'),
          // `ws` is the implementation that the AI SDK names for Node.
          webSocket: webSocket as unknown as NonNullable<
            ConstructorParameters<typeof ai7.WebSocketChatTransport>[0]['webSocket']
          >,
          body: () => (Object.keys(edits).length > 0 ? { edits } : {}),
        }),
        sendAutomaticallyWhen: (state) => combine(autoSend, approvals(state), toolCalls(state)),
      }),
      edits,
    )
  },
}

/** The client library around the `Chat` of each version. Streams end where they wait, as they do for the others. */
export const ourClients: readonly ApprovingClient[] = [
  {
    name: 'ai 6 ours live',
    live: true,
    ours: true,
    openChat: (options) => {
      const transport = openTransport(options)
      const messages = options.messages as AdkUIMessage[]
      const chat = new Chat6({ id: options.id, messages, transport })
      return new OurChat(chat, attach(chat, transport, options))
    },
  },
  {
    name: 'ai 7 ours live',
    live: true,
    ours: true,
    openChat: (options) => {
      const transport = openTransport(options)
      const messages = options.messages as AdkUIMessage[]
      const chat = new Chat7({ id: options.id, messages, transport })
      return new OurChat(chat, attach(chat, transport, options))
    },
  },
]

/**
 * Returns the clients that run a table of tests: all of them in `npm run test:long`. In `npm test` they are one for each way to
 * connect, with both versions of the AI SDK among them. `sse` is the version that connects over HTTP.
 */
export function clientsWith(sse: '6' | '7'): readonly ApprovingClient[] {
  if (isLong) return [...approvingClients, liveClient, ...ourClients]
  const other = sse === '6' ? '7' : '6'
  const chosen = (clients: readonly ApprovingClient[], version: string) =>
    clients.filter(({ name }) => name.startsWith(`ai ${version}`))
  return [...chosen(approvingClients, sse), liveClient, ...chosen(ourClients, other)]
}

/** Returns the AI SDK's own client of a version, over HTTP. */
export function stockClient(version: '6' | '7'): ApprovingClient {
  const found = approvingClients.find(({ name }) => name === `ai ${version}`)
  if (!found) throw new Error(`There is no client of AI SDK ${version}.`)
  return found
}

function openTransport({ api, webSocket }: ApprovingChatOptions) {
  const url = api.replace('http', 'ws').replace(/stream$/, 'live')
  return webSocketTransport({ url, webSocket, hold: false, backoff: { firstMs: 1, maxMs: 20 } })
}

function attach(
  chat: AttachableChat,
  transport: ReturnType<typeof openTransport>,
  { loadChat }: ApprovingChatOptions,
): AttachedChat {
  return attachChat(chat, transport, { loadChat })
}

/** A chat of the client library: edited arguments are sent with the approval itself. */
class OurChat extends ApprovingChat {
  readonly #attached: AttachedChat
  readonly #changed = new Map<string, Record<string, unknown>>()

  constructor(chat: RealChat, attached: AttachedChat) {
    super(chat, {})
    this.#attached = attached
  }

  override edit(approvalId: string, args: Record<string, unknown>): void {
    this.#changed.set(approvalId, args)
  }

  override async click({ id, approved, reason, payload }: Decision): Promise<void> {
    const args = this.#changed.get(id)
    if (!approved || (!args && payload === undefined))
      return super.click({ id, approved, ...(reason !== undefined && { reason }) })
    await this.#attached.approve(id, { args, payload })
  }
}

interface PreparedRequest {
  readonly id: string
  readonly messages: readonly object[]
  readonly trigger: string
  readonly messageId: string | undefined
  readonly body: object | undefined
}

// The body that DefaultChatTransport sends by itself, with the edits, if there are any.
function toBody({ body, id, messages, trigger, messageId }: PreparedRequest, edits: Edits): object {
  const edited = Object.keys(edits).length > 0 && { edits }
  return { ...body, id, messages, trigger, messageId, ...edited }
}

function combine(autoSend: AutoSend, approvals: boolean, toolCalls: boolean): boolean {
  return (autoSend !== 'tool-calls' && approvals) || (autoSend !== 'approvals' && toolCalls)
}
