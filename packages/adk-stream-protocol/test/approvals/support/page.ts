import { WebSocket } from 'ws'

import type { ChatMessage } from '../../support/chat-probe.ts'
import type { ApprovingChat, ApprovingClient, AutoSend } from './approving-chat.ts'

/** A client in a loop would never be idle. No action of a person causes this many requests. */
const MAX_STREAMS = 30

interface Address {
  readonly url: string
}

/** The response of `GET /approvals/:id`. */
export interface ApprovalRecord {
  readonly approval: {
    readonly id: string
    readonly state: string
    readonly [key: string]: unknown
  }
  readonly history: readonly { readonly type: string; readonly [key: string]: unknown }[]
}

/** A response of the server that is not a stream. */
export interface Answer {
  readonly status: number
  readonly body: {
    readonly error?: { readonly code: string; readonly message: string }
    readonly approval?: ApprovalRecord['approval']
  }
}

/** A WebSocket as a page creates one. */
export type PageSocketClass = new (
  address: string | URL,
  protocols?: string | string[],
) => WebSocket

interface OpenOptions {
  /** The id of the chat. Default `chat-1`. */
  readonly id?: string
  /** Default `approvals`. */
  readonly autoSend?: AutoSend
  /** Sends the requests of the chat. Default: `fetch` of the page. */
  readonly fetch?: typeof globalThis.fetch
}

interface Conversation {
  readonly messages: readonly ChatMessage[]
  readonly running: boolean
}

/** A page in the browser of a principal. It finds the server again after a restart. */
export class Page {
  /** Everything that was sent, in order: bodies of `POST /stream`, frames `send` and `decide`. */
  readonly sent: unknown[] = []
  /** Every stream that was read to its end. */
  readonly streams: Promise<string>[] = []
  /** The number of streams that have begun, over HTTP and over sockets. */
  started = 0
  readonly #address: Address
  readonly #key: string
  readonly #sockets = new Set<WebSocket>()
  #connection = new AbortController()

  constructor(address: Address, key: string) {
    this.#address = address
    this.#key = key
  }

  /** Creates the sockets of this page. */
  readonly webSocket: PageSocketClass = toSocketClass({
    open: (protocols) => {
      const url = `${this.#address.url.replace('http', 'ws')}/live`
      return [url, protocols, { headers: { 'x-api-key': this.#key } }]
    },
    onOpen: (socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
      socket.on('message', (data: Buffer) => {
        if ((JSON.parse(data.toString()) as { type: string }).type === 'start') this.started += 1
      })
    },
    onSend: (frame) => {
      if (frame.type === 'send' || frame.type === 'decide') this.#note(frame)
    },
  })

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const given = new Request(input, init)
    const { pathname, search } = new URL(given.url)
    const request = new Request(`${this.#address.url}${pathname}${search}`, given)
    request.headers.set('x-api-key', this.#key)
    if (given.method === 'POST' && pathname === '/stream') {
      this.#note(JSON.parse(String(init?.body)))
    }
    const signal = AbortSignal.any([given.signal, this.#connection.signal])
    const response = await fetch(request, { signal })
    if (response.headers.get('content-type') === 'text/event-stream') {
      this.started += 1
      this.streams.push(
        response
          .clone()
          .text()
          .catch(() => ''),
      )
    }
    return response
  }

  /** Opens a chat as a page does: with the stored messages. */
  async open(
    client: ApprovingClient,
    { id = 'chat-1', autoSend = 'approvals', fetch = this.fetch }: OpenOptions = {},
  ): Promise<ApprovingChat> {
    const messages = await this.messages(id)
    const api = `${this.#address.url}/stream`
    const { webSocket } = this
    const loadChat = (): Promise<Conversation> => this.conversation(id)
    return client.openChat({ id, api, fetch, webSocket, loadChat, messages, autoSend })
  }

  async messages(id = 'chat-1'): Promise<readonly ChatMessage[]> {
    return (await this.conversation(id)).messages
  }

  /** Returns the stored messages, and whether a turn runs, whose message is not among them. */
  async conversation(id = 'chat-1'): Promise<Conversation> {
    const response = await this.#ask(`/chats/${id}/messages`)
    // PROTOCOL.md defines the response of this endpoint.
    return (await response.json()) as Conversation
  }

  /** Returns an approval with its audit record. */
  async approval(id: string): Promise<ApprovalRecord> {
    const response = await this.#ask(`/approvals/${id}`)
    if (!response.ok) throw new Error(`GET /approvals/${id}: ${await response.text()}`)
    return (await response.json()) as ApprovalRecord
  }

  /** Returns the types of the audit entries of an approval, in order. */
  async history(id: string): Promise<string[]> {
    return (await this.approval(id)).history.map(({ type }) => type)
  }

  /** The approvals that wait for this principal. */
  async inbox(): Promise<readonly ApprovalRecord['approval'][]> {
    const response = await this.#ask('/approvals')
    const body = (await response.json()) as { approvals: ApprovalRecord['approval'][] }
    return body.approvals
  }

  /** A page of the approvals that this principal may see. `query` is that of `GET /approvals`. */
  async list(query: string) {
    const response = await this.#ask(`/approvals?${query}`)
    const body = (await response.json()) as {
      approvals?: ApprovalRecord['approval'][]
      next?: string
      error?: { code: string }
    }
    return { status: response.status, ...body }
  }

  /** Decides outside the chat, as an inbox or a bot does. */
  decide(id: string, body: unknown): Promise<Answer> {
    return this.#send('POST', `/approvals/${id}`, body)
  }

  /** Withdraws the vote of this principal. */
  withdraw(id: string): Promise<Answer> {
    return this.#send('DELETE', `/approvals/${id}/vote`)
  }

  /** Posts to the chat without a `Chat`. Reads the response to its end. */
  async post(body: unknown): Promise<Answer> {
    return this.#send('POST', '/stream', body)
  }

  delete(id = 'chat-1'): Promise<Answer> {
    return this.#send('DELETE', `/chats/${id}`)
  }

  show(id: string): Promise<Answer> {
    return this.#send('GET', `/approvals/${id}`)
  }

  /** Resolves when an approval is in a state. */
  async untilState(id: string, state: string): Promise<void> {
    await poll(async () => (await this.approval(id)).approval.state === state)
  }

  /** Resolves when this many approvals wait for this principal. */
  async untilInbox(count: number): Promise<void> {
    await poll(async () => (await this.inbox()).length === count)
  }

  /** Resolves when no turn runs in a chat and its messages match. */
  async untilMessages(
    fits: (messages: readonly ChatMessage[]) => boolean,
    id = 'chat-1',
  ): Promise<void> {
    await poll(async () => {
      const response = await this.#ask(`/chats/${id}/messages`)
      const body = (await response.json()) as { messages: ChatMessage[]; running: boolean }
      return !body.running && fits(body.messages)
    })
  }

  /** Ends all open requests. The next one works again. */
  loseConnection(): void {
    this.#connection.abort(new TypeError('network error'))
    this.#connection = new AbortController()
    for (const socket of this.#sockets) socket.terminate()
  }

  /** Closes the page. */
  close(): void {
    for (const socket of this.#sockets) socket.terminate()
  }

  #note(request: unknown): void {
    if (this.sent.length >= MAX_STREAMS) throw new Error('The client sends in a loop.')
    this.sent.push(request)
  }

  async #send(method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await fetch(`${this.#address.url}${path}`, {
      method,
      headers: { 'content-type': 'application/json', 'x-api-key': this.#key },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const json = response.headers.get('content-type')?.startsWith('application/json') === true
    // Every JSON response of the server has one of these shapes: PROTOCOL.md, Errors.
    return { status: response.status, body: json ? (JSON.parse(text) as Answer['body']) : {} }
  }

  #ask(path: string): Promise<Response> {
    return fetch(`${this.#address.url}${path}`, { headers: { 'x-api-key': this.#key } })
  }
}

interface SocketClassOptions {
  readonly open: (
    protocols: string | string[] | undefined,
  ) => ConstructorParameters<typeof WebSocket>
  readonly onOpen: (socket: WebSocket) => void
  readonly onSend: (frame: { readonly type: string }) => void
}

/** A WebSocket class that connects to the server of the page, and records what is sent. */
function toSocketClass({ open, onOpen, onSend }: SocketClassOptions): PageSocketClass {
  return class extends WebSocket {
    constructor(_address: string | URL, protocols?: string | string[]) {
      super(...open(protocols))
      onOpen(this)
    }

    override send(data: string): void {
      onSend(JSON.parse(data) as { type: string })
      super.send(data)
    }
  }
}

// The server does not notify this page. Each attempt is a request, so this is not a busy loop.
async function poll(reached: () => Promise<boolean>): Promise<void> {
  while (!(await reached())) await new Promise((resolve) => setTimeout(resolve, 5))
}
