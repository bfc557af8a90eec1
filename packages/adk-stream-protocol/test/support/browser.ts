import type { ChatMessage, ChatOptions, ChatProbe } from './chat-probe.ts'
import type { Client } from './clients.ts'

interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly status: number
}

/** A browser: keeps its cookie, counts its requests, can lose its connections. */
export class Browser {
  /** Every request that got a response, in the order of the responses. */
  readonly requests: SeenRequest[] = []
  readonly url: string
  cookie = ''
  #connection = new AbortController()

  constructor(url: string) {
    this.url = url
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    if (this.cookie !== '' && !request.headers.has('cookie')) {
      request.headers.set('cookie', this.cookie)
    }
    const signal = AbortSignal.any([request.signal, this.#connection.signal])
    const response = await fetch(request, { signal })
    const given = response.headers.get('set-cookie')
    if (given !== null) this.cookie = given.split(';', 1)[0] ?? ''
    const { pathname: path } = new URL(request.url)
    this.requests.push({ method: request.method, path, status: response.status })
    return response
  }

  /** A chat of the given client version on this browser's server. */
  openChat(client: Client, options: Omit<Partial<ChatOptions>, 'api' | 'fetch'> = {}): ChatProbe {
    const { id = 'chat-1', ...rest } = options
    return client.openChat({ id, api: `${this.url}/stream`, fetch: this.fetch, ...rest })
  }

  /** Opens a chat as a reloaded page does: with the stored messages. */
  async reload(client: Client, id = 'chat-1'): Promise<ChatProbe> {
    const { messages } = await this.messages(id)
    return this.openChat(client, { id, messages })
  }

  async messages(id = 'chat-1'): Promise<{ messages: ChatMessage[]; running: boolean }> {
    const response = await this.get(`/chats/${id}/messages`)
    // PROTOCOL.md defines the response of this endpoint.
    return (await response.json()) as { messages: ChatMessage[]; running: boolean }
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return this.fetch(`${this.url}${path}`, { headers })
  }

  /** Posts a body: a string or bytes as they are, anything else as JSON. */
  post(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const raw = typeof body === 'string' || body instanceof Uint8Array
    return this.fetch(`${this.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: raw ? (body as BodyInit) : JSON.stringify(body) }),
    })
  }

  /** Posts a message without a `Chat`. */
  say(text: string, chatId = 'chat-1', more: Record<string, unknown> = {}): Promise<Response> {
    const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
    return this.post('/stream', { id: chatId, messages: [message], ...more })
  }

  stop(id = 'chat-1'): Promise<Response> {
    return this.post(`/chats/${id}/stop`)
  }

  delete(id = 'chat-1'): Promise<Response> {
    return this.fetch(`${this.url}/chats/${id}`, { method: 'DELETE' })
  }

  /** Ends all open requests. The next one works again. */
  loseConnection(): void {
    this.#connection.abort(new TypeError('network error'))
    this.#connection = new AbortController()
  }

  /** The number of replies that were started. */
  get sent(): number {
    return this.requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/stream'))
      .length
  }
}

/** Returns the code of an error response. */
export async function codeOf(response: Response): Promise<string> {
  const body = (await response.json()) as { error: { code: string } }
  return body.error.code
}
