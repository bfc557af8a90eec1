import { once } from 'node:events'

import { WebSocket } from 'ws'

interface Frame {
  readonly type: string
  readonly requestId: string
  readonly chunk?: { readonly type: string; readonly approvalId?: string }
}

/** A client of the bridge's sockets that does not keep the replies. */
export class LiveClient {
  readonly #socket: WebSocket
  readonly #waiting = new Map<string, (frame: Frame) => void>()
  #requests = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on('message', (data: Buffer) => {
      // The server's frames are objects.
      const frame = JSON.parse(data.toString()) as Frame
      this.#waiting.get(frame.requestId)?.(frame)
    })
  }

  static async open(url: string): Promise<LiveClient> {
    const socket = new WebSocket(url)
    await once(socket, 'open')
    return new LiveClient(socket)
  }

  /** Sends a message. Resolves when the reply has ended, with the id of the requested approval, or an empty string. */
  sendMessage(id: string, text: string): Promise<string> {
    const requestId = `r${(this.#requests += 1)}`
    const message = { id: requestId, role: 'user', parts: [{ type: 'text', text }] }
    return new Promise((resolve, reject) => {
      let approvalId = ''
      this.#waiting.set(requestId, ({ type, chunk }) => {
        approvalId = chunk?.approvalId ?? approvalId
        if (type === 'error') reject(new Error(`The reply to ${requestId} failed.`))
        if (type !== 'end') return
        this.#waiting.delete(requestId)
        resolve(approvalId)
      })
      this.send({ type: 'send', requestId, id, messages: [message] })
    })
  }

  send(frame: object): void {
    this.#socket.send(JSON.stringify(frame))
  }

  close(): void {
    this.#socket.terminate()
  }
}
