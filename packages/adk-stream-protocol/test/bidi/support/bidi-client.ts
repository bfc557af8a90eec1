import { once } from 'node:events'
import { WebSocket } from 'ws'

import type { WireChunk } from '../../support/wire-rules.ts'

export interface BidiClientOptions {
  /** The API key of the principal. Default hanako. */
  readonly key?: string
  /** The headers that authenticate the client. Default: `x-api-key` with the key. */
  readonly headers?: Record<string, string>
  readonly query?: string
  /** The chat id of every event. Default: each event sets its own, or none. */
  readonly chatId?: string
  /** Default `bidi`. */
  readonly protocols?: readonly string[]
}

/** A client of the earlier system: it sends events and receives `data: …` frames, without the AI SDK. */
export class BidiClient implements AsyncDisposable {
  readonly socket: WebSocket
  /** Every text frame that was received. */
  readonly frames: string[] = []
  /** The number of events that were sent. */
  sent = 0
  readonly closed: Promise<number>
  readonly #chatId: string | undefined
  readonly #waiting = new Set<() => void>()

  private constructor(socket: WebSocket, chatId: string | undefined) {
    this.socket = socket
    this.#chatId = chatId
    socket.on('error', () => undefined)
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) throw new Error('A client of text frames got bytes.')
      this.frames.push(data.toString())
      for (const check of this.#waiting) check()
    })
    this.closed = new Promise((resolve) => socket.on('close', resolve))
  }

  static async open(url: string, options: BidiClientOptions = {}): Promise<BidiClient> {
    const { key = 'hanako', query = '', protocols = ['bidi'] } = options
    const address = `${url.replace(/^http/, 'ws')}/live${query}`
    const { headers = { 'x-api-key': key } } = options
    const socket = new WebSocket(address, [...protocols], { headers })
    const client = new BidiClient(socket, options.chatId)
    await once(socket, 'open')
    return client
  }

  /** The chunks that were received, with `[DONE]` as a chunk of that type. */
  get chunks(): WireChunk[] {
    return this.frames.flatMap((frame) => {
      const json = /^data: (\{[^\n]*\}|\[DONE\])\n\n$/.exec(frame)?.[1]
      if (json === undefined) return []
      return [json === '[DONE]' ? { type: '[DONE]' } : (JSON.parse(json) as WireChunk)]
    })
  }

  get types(): string[] {
    return this.chunks.map(({ type }) => type)
  }

  ofType(type: string): WireChunk[] {
    return this.chunks.filter((chunk) => chunk.type === type)
  }

  get text(): string {
    return this.ofType('text-delta')
      .map(({ delta }) => String(delta))
      .join('')
  }

  /** The number of turns that have ended. */
  get done(): number {
    return this.ofType('[DONE]').length
  }

  /** The approvals that were requested, in order, with the calls that they are about. */
  get asked(): { readonly approvalId: string; readonly toolCallId: string }[] {
    const asked = this.ofType('tool-approval-request')
    return asked as unknown as { approvalId: string; toolCallId: string }[]
  }

  send(event: object | string): void {
    this.sent += 1
    const named = this.#chatId === undefined ? {} : { chatId: this.#chatId }
    this.socket.send(typeof event === 'string' ? event : JSON.stringify({ ...named, ...event }))
  }

  say(text: string, id = 'chat-1'): void {
    const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
    this.send({ type: 'message', version: '1.0', id, messages: [message] })
  }

  /** Sends a decision in form 4, nested. */
  confirm(approvalId: string, confirmed: boolean, reason?: string): void {
    const result = { confirmed, ...(reason !== undefined && { reason }) }
    const data = { toolCallId: approvalId, toolName: 'adk_request_confirmation', result }
    this.send({ type: 'tool_result', version: '1.0', data })
  }

  /** Sends the result of a tool that runs in this client. */
  give(toolCallId: string, result: unknown): void {
    this.send({ type: 'tool_result', toolCallId, result })
  }

  /** Resolves when the received frames match. */
  until(matches: (client: this) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (!matches(this)) return
        this.#waiting.delete(check)
        resolve()
      }
      this.#waiting.add(check)
      check()
    })
  }

  untilAsked(count = 1): Promise<void> {
    return this.until(({ asked }) => asked.length >= count)
  }

  untilDone(count = 1): Promise<void> {
    return this.until(({ done }) => done >= count)
  }

  /** Resolves when the server has processed all events before this one. */
  async sync(): Promise<void> {
    const timestamp = crypto.randomUUID()
    this.send({ type: 'ping', version: '1.0', timestamp })
    this.sent -= 1
    await this.until(({ frames }) => frames.some((frame) => frame.includes(timestamp)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.terminate()
    await this.closed
  }
}
