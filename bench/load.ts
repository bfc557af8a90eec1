import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { Agent, request as httpRequest } from 'node:http'

import type { Script } from './script.ts'
import { TOKEN_LENGTH } from './script.ts'

/** The script of a request. Defaults: tokens of the usual length, and a reply that ends. */
export type RequestScript = Partial<Script> & Pick<Script, 'tokens'>

/** How a client asks for a reply and recognises what it receives. */
interface Wire {
  readonly path: string
  readonly toBody: (chatId: string, text: string) => object
  /** What each delta contains, once. */
  readonly delta: Buffer
  /** What the last bytes contain. */
  readonly end: string
}

const UI: Wire = {
  path: '/stream',
  toBody: (id, text) => ({
    id,
    messages: [{ id: randomUUID(), role: 'user', parts: [{ type: 'text', text }] }],
  }),
  delta: Buffer.from('text-delta'),
  end: '[DONE]',
}

const AG_UI: Wire = {
  path: '/ag-ui',
  toBody: (threadId, text) => ({
    threadId,
    runId: 'run',
    messages: [{ id: randomUUID(), role: 'user', content: text }],
  }),
  delta: Buffer.from('TEXT_MESSAGE_CONTENT'),
  end: 'RUN_FINISHED',
}

/** The ways to read a reply. */
export const WIRES = { ui: UI, 'ag-ui': AG_UI } as const

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
  readonly #wire: Wire
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  #cookie: string | undefined

  constructor(port: number, wire: Wire = UI) {
    this.#port = port
    this.#wire = wire
  }

  /** Requests a reply and reads it to its end. Default: in a new chat. */
  async readReply(script: RequestScript, chatId: string = randomUUID()): Promise<ReplyFigures> {
    const startedAt = performance.now()
    const response = await this.open(script, chatId)
    let chunks = 0
    let firstChunkMs = 0
    let last: Buffer = Buffer.alloc(0)
    response.on('data', (bytes: Buffer) => {
      chunks += countDeltas(bytes, this.#wire)
      if (firstChunkMs === 0 && chunks > 0) firstChunkMs = performance.now() - startedAt
      last = bytes
    })
    await once(response, 'end')
    if (!last.includes(this.#wire.end)) throw new Error(`A reply ended early: ${last.toString()}`)
    return { chunks, firstChunkMs }
  }

  /** Requests a reply with the ending `hold`. Resolves when all its tokens have arrived. */
  async readTokens(script: RequestScript): Promise<void> {
    const response = await this.open(script)
    await new Promise<void>((resolve) => {
      let chunks = 0
      response.on('data', (bytes: Buffer) => {
        chunks += countDeltas(bytes, this.#wire)
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
    const { path, toBody } = this.#wire
    const request = httpRequest({
      host: '127.0.0.1',
      port: this.#port,
      path,
      method: 'POST',
      agent: this.#agent,
      headers: {
        'content-type': 'application/json',
        ...(this.#cookie !== undefined && { cookie: this.#cookie }),
      },
    })
    return request.end(JSON.stringify(toBody(chatId, JSON.stringify(script))))
  }
}

/** Opens clients that already have a cookie of the server. */
export async function openClients(port: number, count: number, wire?: Wire): Promise<Client[]> {
  const clients = Array.from({ length: count }, () => new Client(port, wire))
  await Promise.all(clients.map((client) => client.readReply({ tokens: 1 })))
  return clients
}

function countDeltas(bytes: Buffer, { delta }: Wire): number {
  let count = 0
  for (let at = bytes.indexOf(delta); at !== -1; at = bytes.indexOf(delta, at + delta.length)) {
    count += 1
  }
  return count
}
