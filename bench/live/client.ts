import { once } from 'node:events'

import { WebSocket } from 'ws'

interface Frame {
  readonly type: string
  readonly requestId?: string
  readonly chunk?: { readonly type: string; readonly approvalId?: string }
}

/** A client on a socket of its own that looks at no more of a frame than it needs. */
export class LiveClient {
  readonly #socket: WebSocket
  #requests = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
  }

  static async open(port: number): Promise<LiveClient> {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/live`)
    await once(socket, 'open')
    return new LiveClient(socket)
  }

  /** Says something, and waits for the end of the answer; gives the approvals that it asks for. */
  say(chatId: string, text: string): Promise<string[]> {
    this.#requests += 1
    const requestId = `r${this.#requests}`
    const messages = [{ id: requestId, role: 'user', parts: [{ type: 'text', text }] }]
    const trigger = 'submit-message'
    const approvals: string[] = []
    return new Promise((resolve, reject) => {
      const hear = (data: Buffer): void => {
        const text = data.toString('latin1')
        if (text.includes('"tool-approval-request"')) {
          approvals.push((JSON.parse(data.toString()) as Frame).chunk?.approvalId ?? '')
        }
        if (text.startsWith('{"type":"error"')) reject(new Error(data.toString()))
        if (!text.startsWith('{"type":"end"')) return
        this.#socket.off('message', hear)
        resolve(approvals)
      }
      this.#socket.on('message', hear)
      this.#socket.send(JSON.stringify({ type: 'send', requestId, id: chatId, trigger, messages }))
    })
  }

  decide(chatId: string, approvalId: string): void {
    const decision = { type: 'decide', decisionId: approvalId, id: chatId, approvalId }
    this.#socket.send(JSON.stringify({ ...decision, approved: true }))
  }

  close(): void {
    this.#socket.terminate()
  }
}
