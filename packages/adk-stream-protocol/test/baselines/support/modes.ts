import { BidiClient } from '../../bidi/support/bidi-client.ts'
import { SocketClient } from '../../sockets/support/socket-client.ts'
import type { WireChunk } from '../../support/wire-rules.ts'
import { readFrames } from '../../support/wire-rules.ts'
import type { Conversation, Line } from './conversation.ts'
import {
  CHAT,
  findAsked,
  firstCall,
  nameOf,
  toDecisions,
  toOutput,
  toUserMessage,
} from './conversation.ts'

const KEY = { 'x-api-key': 'hanako' }

export interface Mode {
  readonly name: string
  readonly open: (url: string) => Promise<Conversation>
}

export const modes: readonly Mode[] = [
  { name: 'sse-ui', open: (url) => Promise.resolve(new OverHttp(url, 'ui')) },
  { name: 'sse-confirmation', open: (url) => Promise.resolve(new OverHttp(url, 'confirmation')) },
  {
    name: 'live-json',
    open: async (url) => new OverFrames(await SocketClient.open(url, { headers: KEY })),
  },
  { name: 'live-bidi', open: async (url) => new OverText(await BidiClient.open(url)) },
]

/** A conversation of requests, each with a stream that ends. Responses are sent as messages. */
abstract class ByRequests implements Conversation {
  readonly lines: Line[] = []
  readonly chunks: WireChunk[] = []
  readonly #dialect: 'ui' | 'confirmation'

  constructor(dialect: 'ui' | 'confirmation') {
    this.#dialect = dialect
  }

  /** Sends messages, and reads the reply to its end. */
  abstract send(messages: readonly object[]): Promise<void>
  abstract [Symbol.asyncDispose](): Promise<void>

  say(text: string): Promise<void> {
    return this.send([toUserMessage(text)])
  }

  decide(approved: readonly boolean[]): Promise<void> {
    return this.send([toDecisions(this.chunks, approved, { dialect: this.#dialect })])
  }

  give(output: unknown): Promise<void> {
    return this.send([toOutput(this.chunks, output)])
  }

  async expire(untilExpired: () => Promise<void>): Promise<void> {
    await untilExpired()
    await this.decide([true])
  }

  end(): Promise<void> {
    return Promise.resolve()
  }

  protected note(from: Line['from'], sent: unknown): void {
    this.lines.push({ from, sent })
  }
}

class OverHttp extends ByRequests {
  readonly #url: string

  constructor(url: string, dialect: 'ui' | 'confirmation') {
    super(dialect)
    this.#url = `${url}/stream?dialect=${dialect}`
  }

  async send(messages: readonly object[]): Promise<void> {
    const body = { id: CHAT, messages }
    this.note('client', body)
    const headers = { 'content-type': 'application/json', ...KEY }
    const response = await fetch(this.#url, { method: 'POST', headers, body: JSON.stringify(body) })
    const { chunks, done } = readFrames(await response.text())
    this.chunks.push(...chunks)
    for (const chunk of chunks) this.note('server', chunk)
    this.note('server', done ? '[DONE]' : '(cut)')
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

class OverFrames extends ByRequests {
  readonly #client: SocketClient
  #requests = 0

  constructor(client: SocketClient) {
    super('ui')
    this.#client = client
  }

  // One after the other: the order of two parallel calls is not defined.
  override async decide(approved: readonly boolean[]): Promise<void> {
    for (const [index] of approved.entries()) {
      await this.send([toDecisions(this.chunks, approved, { dialect: 'ui', only: index })])
    }
  }

  async send(messages: readonly object[]): Promise<void> {
    this.#requests += 1
    const requestId = `r${this.#requests}`
    const frame = { type: 'send', requestId, id: CHAT, trigger: 'submit-message', messages }
    this.note('client', frame)
    this.#client.send(frame)
    await this.#client.nextOf('end', requestId)
    for (const { sequence: _sequence, ...received } of this.#client.of(requestId)) {
      this.note('server', received)
    }
    this.chunks.push(...this.#client.chunks(requestId))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#client[Symbol.asyncDispose]()
  }
}

/** One stream that stays open while the client responds. */
class OverText implements Conversation {
  readonly #client: BidiClient
  readonly #events: { readonly at: number; readonly event: object }[] = []

  constructor(client: BidiClient) {
    this.#client = client
  }

  get lines(): Line[] {
    const sent = this.#events.map(({ at, event }) => ({
      at,
      line: { from: 'client', sent: event },
    }))
    const received = this.#client.chunks.map((chunk, index) => ({
      at: index + 0.5,
      line: { from: 'server', sent: chunk.type === '[DONE]' ? '[DONE]' : chunk },
    }))
    const all = [...sent, ...received].toSorted((one, other) => one.at - other.at)
    return all.map(({ line }) => line as Line)
  }

  async say(text: string): Promise<void> {
    this.#send({ type: 'message', version: '1.0', id: CHAT, messages: [toUserMessage(text)] })
    await this.#client.until(({ types }) => types.includes('tool-input-available'))
  }

  async decide(approved: readonly boolean[]): Promise<void> {
    for (const [index, confirmed] of approved.entries()) {
      // The stream shows one approval request at a time.
      await this.#client.until(
        ({ chunks, types }) => findAsked(chunks).length > index && types.at(-1) === 'finish-step',
      )
      const toolCallId = findAsked(this.#client.chunks)[index]?.approvalId
      const data = { toolCallId, toolName: 'adk_request_confirmation', result: { confirmed } }
      this.#send({ type: 'tool_result', version: '1.0', data })
      await this.#client.until(({ chunks }) => isDecided(chunks, index))
    }
  }

  async give(result: unknown): Promise<void> {
    const toolCallId = firstCall(this.#client.chunks)
    this.#send({ type: 'tool_result', version: '1.0', data: { toolCallId, result } })
    await this.#client.untilDone()
  }

  expire(): Promise<void> {
    return this.#client.untilDone()
  }

  end(): Promise<void> {
    return this.#client.untilDone()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#client[Symbol.asyncDispose]()
  }

  #send(event: object): void {
    this.#events.push({ at: this.#client.chunks.length, event })
    this.#client.send(event)
  }
}

function countApprovals(chunks: readonly WireChunk[]): number {
  return chunks.filter(({ type }) => type === 'data-approval').length
}

/** Whether a call has ended, or was handed over to the client. */
function isDecided(chunks: readonly WireChunk[], index: number): boolean {
  const call = findAsked(chunks)[index]?.toolCallId ?? ''
  if (nameOf(chunks, call) === 'get_location' && countApprovals(chunks) > 1) return true
  return chunks.some(
    ({ type, toolCallId }) => type.startsWith('tool-output') && toolCallId === call,
  )
}
