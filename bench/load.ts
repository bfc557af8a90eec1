import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { Agent, request as httpRequest } from 'node:http'

import type { Script } from './script.ts'
import { TOKEN_LENGTH } from './script.ts'

/** The script of a request. Defaults: tokens of the usual length, and a reply that ends. */
export type RequestScript = Partial<Script> & Pick<Script, 'tokens'>

/** Figures of one reply, as its client measured them. */
export interface ReplyFigures {
  /** The number of text deltas. */
  readonly chunks: number
  /** The time from the request to the first text delta. */
  readonly firstChunkMs: number
}

/** A browser with one keep-alive connection and a cookie. It counts deltas and does not parse them. */
export class Client {
  readonly #port: number
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  #cookie: string | undefined

  constructor(port: number) {
    this.#port = port
  }

  /** Requests a reply and reads it to its end. Default: in a new chat. */
  async readReply(script: RequestScript, chatId: string = randomUUID()): Promise<ReplyFigures> {
    const startedAt = performance.now()
    const response = await this.open(script, chatId)
    let chunks = 0
    let firstChunkMs = 0
    let last: Buffer = Buffer.alloc(0)
    response.on('data', (bytes: Buffer) => {
      chunks += countDeltas(bytes)
      if (firstChunkMs === 0 && chunks > 0) firstChunkMs = performance.now() - startedAt
      last = bytes
    })
    await once(response, 'end')
    if (!last.includes('[DONE]')) throw new Error(`A reply ended early: ${last.toString()}`)
    return { chunks, firstChunkMs }
  }

  /** Requests a reply with the ending `hold`. Resolves when all its tokens have arrived. */
  async readTokens(script: RequestScript): Promise<void> {
    const response = await this.open(script)
    await new Promise<void>((resolve) => {
      let chunks = 0
      response.on('data', (bytes: Buffer) => {
        chunks += countDeltas(bytes)
        if (chunks >= script.tokens) resolve()
      })
    })
  }

  /** Sends a request. Resolves with the response when its headers have arrived. Does not read the body. */
  async open(script: RequestScript, chatId: string = randomUUID()): Promise<IncomingMessage> {
    const request = this.#post(script, chatId)
    // The event has this argument.
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    if (response.statusCode !== 200)
      throw new Error(`A server responded with ${response.statusCode}.`)
    this.#cookie ??= response.headers['set-cookie']?.[0]?.split(';', 1)[0]
    return response
  }

  /** Closes the connection, also during a reply. */
  close(): void {
    this.#agent.destroy()
  }

  #post(requested: RequestScript, chatId: string): ClientRequest {
    const script: Script = { length: TOKEN_LENGTH, ending: 'end', ...requested }
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

/** Opens clients that already have a cookie of the server. */
export async function openClients(port: number, count: number): Promise<Client[]> {
  const clients = Array.from({ length: count }, () => new Client(port))
  await Promise.all(clients.map((client) => client.readReply({ tokens: 1 })))
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
