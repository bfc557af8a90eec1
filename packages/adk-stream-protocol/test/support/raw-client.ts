import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A client that reads only when the test says so. */
export interface RawClient extends Disposable {
  readonly socket: Socket
  /** Resolves when either side has closed the connection. */
  readonly closed: Promise<void>
  /** Reads until the connection is closed. */
  readonly drain: () => Promise<string>
}

interface RawRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Sends no `content-length`, because the body is chunked. */
  readonly withoutLength?: boolean
}

/** Sends one request over its own socket and reads nothing. */
export async function sendRaw(url: string, request: RawRequest): Promise<RawClient> {
  const { hostname, port, pathname } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.pause()
  // The server may disconnect the client with a reset.
  socket.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  await once(socket, 'connect')
  const { method = 'POST', headers = {}, body = '', withoutLength = false } = request
  const head = {
    host: `${hostname}:${port}`,
    'content-type': 'application/json',
    ...(!withoutLength && { 'content-length': String(Buffer.byteLength(body)) }),
    ...headers,
  }
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`${method} ${pathname} HTTP/1.1\r\n${lines.join('')}\r\n`)
  socket.write(body)
  return {
    socket,
    closed,
    async drain() {
      let received = ''
      socket.setEncoding('utf8').on('data', (text: string) => (received += text))
      socket.resume()
      await closed
      return received
    },
    [Symbol.dispose]: () => socket.destroy(),
  }
}

/** The body of a message, for clients that are not a `Chat`. */
export function messageBody(text: string, id = 'chat-1'): string {
  const message = { id: 'message-1', role: 'user', parts: [{ type: 'text', text }] }
  return JSON.stringify({ id, messages: [message] })
}
