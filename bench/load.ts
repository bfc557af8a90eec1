import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { Agent, request as httpRequest } from 'node:http'

import type { Script } from './script.ts'
import { TOKEN_LENGTH } from './script.ts'

/** What a request asks for; what is left out is a token of the usual length, and an answer that ends. */
export type Ask = Partial<Script> & Pick<Script, 'tokens'>

/** What a client saw of one answer. */
export interface Answer {
  /** Text deltas. */
  readonly chunks: number
  /** From the request to the first of them. */
  readonly firstChunkMs: number
}

/** One browser: a connection that is kept, a cookie, and chats. It counts what it reads and parses nothing. */
export class Client {
  readonly #port: number
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  #cookie: string | undefined

  constructor(port: number) {
    this.#port = port
  }

  /** Reads a whole answer, in a chat of its own unless one is named. */
  async ask(ask: Ask, chatId: string = randomUUID()): Promise<Answer> {
    const startedAt = performance.now()
    const response = await this.open(ask, chatId)
    let chunks = 0
    let firstChunkMs = 0
    let last: Buffer = Buffer.alloc(0)
    response.on('data', (bytes: Buffer) => {
      chunks += countDeltas(bytes)
      if (firstChunkMs === 0 && chunks > 0) firstChunkMs = performance.now() - startedAt
      last = bytes
    })
    await once(response, 'end')
    if (!last.includes('[DONE]')) throw new Error(`An answer broke off: ${last.toString()}`)
    return { chunks, firstChunkMs }
  }

  /** Begins an answer that is held, and resolves when all its tokens have come. */
  async begin(ask: Ask): Promise<void> {
    const response = await this.open(ask)
    await new Promise<void>((resolve) => {
      let chunks = 0
      response.on('data', (bytes: Buffer) => {
        chunks += countDeltas(bytes)
        if (chunks >= ask.tokens) resolve()
      })
    })
  }

  /** Sends a request and resolves when the head of its answer has come; the body waits to be read. */
  async open(ask: Ask, chatId: string = randomUUID()): Promise<IncomingMessage> {
    const request = this.#post(ask, chatId)
    // The only argument of this event.
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    if (response.statusCode !== 200) throw new Error(`A server answered ${response.statusCode}.`)
    this.#cookie ??= response.headers['set-cookie']?.[0]?.split(';', 1)[0]
    return response
  }

  /** Leaves, in the middle of an answer if there is one. */
  close(): void {
    this.#agent.destroy()
  }

  #post(ask: Ask, chatId: string): ClientRequest {
    const script: Script = { length: TOKEN_LENGTH, ending: 'end', ...ask }
    const parts = [{ type: 'text', text: JSON.stringify(script) }]
    const request = httpRequest({
      host: '127.0.0.1',
      port: this.#port,
      path: '/stream',
      method: 'POST',
      agent: this.#agent,
      headers: {
        'content-type': 'application/json',
        ...(this.#cookie !== undefined && { cookie: this.#cookie }),
      },
    })
    return request.end(
      JSON.stringify({ id: chatId, messages: [{ id: randomUUID(), role: 'user', parts }] }),
    )
  }
}

/** So many browsers, each known to the server already. */
export async function openClients(port: number, count: number): Promise<Client[]> {
  const clients = Array.from({ length: count }, () => new Client(port))
  await Promise.all(clients.map((client) => client.ask({ tokens: 1 })))
  return clients
}

const DELTA = Buffer.from('text-delta')

function countDeltas(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(DELTA); at !== -1; at = bytes.indexOf(DELTA, at + DELTA.length)) {
    count += 1
  }
  return count
}
