import { readFileSync } from 'node:fs'

import type { ChatMessage, ChatPart } from '../../support/chat-probe.ts'
import { readFrames, type WireChunk } from '../../support/wire-rules.ts'
import type { Effect } from './payment-server.ts'

/** An approval as `GET /approvals/:id` shows it. */
export interface SeenApproval {
  readonly id: string
  readonly state: string
  readonly toolName: string
  readonly args: Record<string, unknown>
  readonly chatId?: string
  readonly messageId?: string
  readonly toolCallId?: string
  readonly kind?: string
  readonly hint?: string
  readonly title?: string
}

export interface Answered {
  readonly status: number
  /** The code of a refusal. */
  readonly code: string | undefined
  readonly chunks: readonly WireChunk[]
  readonly body: string
}

/** A person in one chat who sends plain HTTP requests. */
export class Person {
  readonly url: string
  readonly user: string
  readonly chatId: string
  readonly #headers: Record<string, string>
  readonly #timeoutMs: number | undefined

  constructor(
    url: string,
    who: {
      user?: string
      chatId?: string
      headers?: Record<string, string>
      /** How long a whole response may take. */
      timeoutMs?: number
    } = {},
  ) {
    this.url = url
    this.user = who.user ?? 'hanako'
    this.chatId = who.chatId ?? 'chat-1'
    this.#headers = who.headers ?? { 'x-user': this.user }
    this.#timeoutMs = who.timeoutMs
  }

  say(text: string): Promise<Answered> {
    return this.post('/stream', this.#message(text))
  }

  /** Sends a message, and does not wait for the end of the reply. */
  begin(text: string, messageId?: string): Promise<Response> {
    return this.#begin(this.#message(text, messageId))
  }

  /** Decides like `answer`, and does not wait for the end of the reply. */
  beginAnswer(
    asked: Asked,
    approval: Record<string, unknown>,
    part: Record<string, unknown> = {},
  ): Promise<Response> {
    return this.#begin(this.#decision(asked, approval, part))
  }

  /** Makes the model call a payment. Returns the approval. */
  async ask(
    call = '[[call pay {"to": "花子", "amount": 50}]]',
  ): Promise<{ approvalId: string; toolCallId: string; messageId: string }> {
    const { chunks, body } = await this.say(call)
    const asked = chunks.find(({ type }) => type === 'tool-approval-request')
    if (!asked) throw new Error(`nothing was asked: ${body}`)
    return {
      approvalId: String(asked['approvalId']),
      toolCallId: String(asked['toolCallId']),
      messageId: String(chunks[0]?.['messageId']),
    }
  }

  /** Decides like `useChat`: sends the assistant message again, with the decision in the part of the call. */
  answer(
    asked: Asked,
    approval: Record<string, unknown>,
    part: Record<string, unknown> = {},
  ): Promise<Answered> {
    return this.post('/stream', this.#decision(asked, approval, part))
  }

  #begin(body: unknown): Promise<Response> {
    return fetch(`${this.url}/stream`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...this.#headers },
      body: JSON.stringify(body),
    })
  }

  #decision(
    { approvalId, toolCallId, messageId }: Asked,
    approval: Record<string, unknown>,
    part: Record<string, unknown>,
  ): Record<string, unknown> {
    const parts = [
      { type: 'step-start' },
      {
        type: 'tool-pay',
        toolCallId,
        state: 'approval-responded',
        input: { to: '花子', amount: 50 },
        approval: { id: approvalId, ...approval },
        ...part,
      },
    ]
    const messages = [{ id: messageId, role: 'assistant', parts }]
    return { id: this.chatId, messages, trigger: 'submit-message', messageId }
  }

  /** Decides like an inbox. */
  decide(approvalId: string, body: unknown): Promise<Answered> {
    return this.post(`/approvals/${approvalId}`, body)
  }

  async approvals(): Promise<SeenApproval[]> {
    const { body } = await this.get('/approvals')
    return (JSON.parse(body) as { approvals: SeenApproval[] }).approvals
  }

  /** The pending approvals of the chat. Other tests on the same database may leave some of theirs. */
  async approvalsOfChat(): Promise<SeenApproval[]> {
    return (await this.approvals()).filter(({ chatId }) => chatId === this.chatId)
  }

  /** Returns an approval with its audit record, or undefined if this person may not see one. */
  async approval(
    id: string,
  ): Promise<{ approval: SeenApproval; history: { type: string }[] } | undefined> {
    const { status, body } = await this.get(`/approvals/${id}`)
    return status === 200
      ? (JSON.parse(body) as { approval: SeenApproval; history: { type: string }[] })
      : undefined
  }

  async messages(): Promise<ChatMessage[]> {
    return (await this.conversation()).messages
  }

  /** The stored messages, and whether a turn runs that is still writing one. */
  async conversation(): Promise<{ messages: ChatMessage[]; running: boolean }> {
    const { body } = await this.get(`/chats/${this.chatId}/messages`)
    return JSON.parse(body) as { messages: ChatMessage[]; running: boolean }
  }

  /** The calls that the conversation shows, oldest first. */
  async calls(): Promise<ChatPart[]> {
    const messages = await this.messages()
    return messages.flatMap(({ parts }) => parts.filter(({ toolCallId }) => toolCallId))
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Answered> {
    return this.#fetch(path, { headers })
  }

  /** Posts a body: text as it is, anything else as JSON. */
  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answered> {
    return this.#fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  }

  #message(text: string, id: string = crypto.randomUUID()): Record<string, unknown> {
    const message = { id, role: 'user', parts: [{ type: 'text', text }] }
    return { id: this.chatId, messages: [message] }
  }

  async #fetch(path: string, init: RequestInit): Promise<Answered> {
    const headers = { ...this.#headers, ...(init.headers as Record<string, string>) }
    const signal = this.#timeoutMs === undefined ? null : AbortSignal.timeout(this.#timeoutMs)
    const response = await fetch(`${this.url}${path}`, { ...init, headers, signal })
    const body = await response.text()
    const { status } = response
    if (status !== 200) return { status, code: readCode(body), chunks: [], body }
    const isStream = response.headers.get('content-type') === 'text/event-stream'
    return { status, code: undefined, chunks: isStream ? readFrames(body).chunks : [], body }
  }
}

export type Asked = Awaited<ReturnType<Person['ask']>>

/** The effects of all chats, or of one. */
export function readEffects(file: string, chatId?: string): Effect[] {
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  const all = lines.map((line) => JSON.parse(line) as Effect)
  return chatId === undefined ? all : all.filter((effect) => effect.chatId === chatId)
}

function readCode(body: string): string | undefined {
  return body === '' ? undefined : (JSON.parse(body) as { error: { code: string } }).error.code
}
