import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'

import { WebSocket, type ClientOptions } from 'ws'

import { findFaults, type WireChunk } from '../../support/wire-rules.ts'

/** A frame that was received. */
export interface ServerFrameSeen {
  readonly type: string
  readonly requestId: string
  readonly [key: string]: unknown
}

export interface SocketClientOptions extends ClientOptions {
  readonly protocols?: string | string[]
  /** The query of the URL, such as `?agent=sales`. */
  readonly query?: string
}

/** A client that sends frames itself, records everything that it receives, and can wait for it. */
export class SocketClient implements AsyncDisposable {
  readonly socket: WebSocket
  readonly frames: ServerFrameSeen[] = []
  readonly binary: Buffer[] = []
  /** The code that the socket was closed with. */
  readonly closed: Promise<number>
  readonly #waiting = new Set<() => void>()

  private constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('error', () => undefined)
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.binary.push(data)
      // The frames of the server are objects. The tests check their fields.
      else this.frames.push(JSON.parse(data.toString()) as ServerFrameSeen)
      for (const check of this.#waiting) check()
    })
    this.closed = new Promise((resolve) => socket.on('close', resolve))
  }

  static async open(url: string, options: SocketClientOptions = {}): Promise<SocketClient> {
    const { protocols, query = '', ...rest } = options
    const socket = new WebSocket(`${toLiveUrl(url)}${query}`, protocols, rest)
    const client = new SocketClient(socket)
    await once(socket, 'open')
    return client
  }

  send(frame: object | string): void {
    this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  }

  /** Sends a message to a chat. */
  say(text: string, requestId = 'r1', id = 'chat-1'): void {
    const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
    const rest = { trigger: 'submit-message', messages: [message], headers: {}, body: {} }
    this.send({ type: 'send', requestId, id, ...rest })
  }

  resume(requestId = 'r1', id = 'chat-1'): void {
    this.send({ type: 'resume', requestId, id, headers: {}, body: {} })
  }

  /** Resolves with the first frame that matches, received earlier or later. */
  next(matches: (frame: ServerFrameSeen) => boolean): Promise<ServerFrameSeen> {
    return new Promise((resolve) => {
      const check = (): void => {
        const found = this.frames.find(matches)
        if (!found) return
        this.#waiting.delete(check)
        resolve(found)
      }
      this.#waiting.add(check)
      check()
    })
  }

  nextOf(type: string, requestId?: string): Promise<ServerFrameSeen> {
    return this.next(
      (frame) => frame.type === type && (requestId === undefined || frame.requestId === requestId),
    )
  }

  /** The frames of one request. */
  of(requestId: string): ServerFrameSeen[] {
    return this.frames.filter((frame) => frame.requestId === requestId)
  }

  chunks(requestId = 'r1'): WireChunk[] {
    return this.of(requestId).flatMap(({ type, chunk }) =>
      type === 'chunk' ? [chunk as WireChunk] : [],
    )
  }

  /** The text of the reply to a request so far. */
  text(requestId = 'r1'): string {
    return textOfChunks(this.chunks(requestId))
  }

  untilText(text: string, requestId = 'r1'): Promise<ServerFrameSeen> {
    return this.next(() => this.text(requestId) === text)
  }

  /** Resolves when the server has processed all frames before this one. */
  async sync(): Promise<void> {
    const nonce = crypto.randomUUID()
    this.send({ type: 'ping', nonce })
    await this.next((frame) => frame['nonce'] === nonce)
  }

  /** The violations of the protocol in the reply to a request. */
  async faults(requestId = 'r1'): Promise<string[]> {
    const numbers = this.of(requestId).flatMap(({ sequence }) => sequence ?? [])
    const gaps = numbers.flatMap((number, index) =>
      number === index ? [] : [`chunk ${index} is numbered ${String(number)}`],
    )
    const whole = this.of(requestId).at(-1)?.type === 'end'
    return [...gaps, ...(await findFaults(this.chunks(requestId), whole))]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.terminate()
    await this.closed
  }
}

export function textOfChunks(chunks: readonly WireChunk[]): string {
  return chunks.map(({ type, delta }) => (type === 'text-delta' ? String(delta) : '')).join('')
}

export function toLiveUrl(url: string): string {
  return `${url.replace(/^http/, 'ws')}/live`
}

/** Returns the response to a rejected upgrade. */
export async function refusedUpgrade(
  url: string,
  options: SocketClientOptions = {},
): Promise<{ status: number; code: string; message: string }> {
  const { protocols, ...rest } = options
  const socket = new WebSocket(toLiveUrl(url), protocols, rest)
  socket.on('error', () => undefined)
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    socket.on('unexpected-response', (_request, given) => resolve(given))
    socket.on('open', () => reject(new Error('The upgrade was not refused.')))
  })
  const pieces: Buffer[] = []
  for await (const piece of response) pieces.push(piece as Buffer)
  // ER1: the body of every error.
  const { error } = JSON.parse(Buffer.concat(pieces).toString()) as {
    error: { code: string; message: string }
  }
  return { status: response.statusCode ?? 0, ...error }
}
