import type { SocketRequest, RequestFrame } from './socket-request.ts'

/** The requests that are open, under the names that they have on the wire now. */
export class OpenRequests {
  readonly #byName = new Map<string, SocketRequest>()

  get size(): number {
    return this.#byName.size
  }

  /** A list of its own: a request that is said again gets another name, and with it another place. */
  get all(): SocketRequest[] {
    return Array.from(this.#byName.values())
  }

  find(requestId: string): SocketRequest | undefined {
    return this.#byName.get(requestId)
  }

  /** The answer that a chat is reading, of the `Chat` of this id that is looked after where one is. */
  ofChat(chatId: string, chat: object | undefined): SocketRequest | undefined {
    const isOurs = (request: SocketRequest): boolean =>
      chat === undefined || request.chat === undefined || request.chat === chat
    return this.all.findLast(
      (request) => request.chatId === chatId && request.isRead && isOurs(request),
    )
  }

  /** An answer to the same chat that was asked for later. */
  newerThan(request: SocketRequest): SocketRequest | undefined {
    const { chatId, born } = request
    const others = this.all.filter((other) => other !== request && other.isRead)
    const newest = others.findLast((other) => other.chatId === chatId)
    return newest && newest.born > born ? newest : undefined
  }

  add(request: SocketRequest): void {
    this.#byName.set(request.id, request)
  }

  drop(request: SocketRequest): void {
    this.#byName.delete(request.id)
  }

  /** Gives a request another name; gives back the frame that is to be sent under it. */
  rename(request: SocketRequest, type: 'as-asked' | 'resume'): RequestFrame {
    this.drop(request)
    const frame = request.named(type)
    this.add(request)
    return frame
  }

  /** What comes under the name of one request is now for another. */
  replace(request: SocketRequest, next: SocketRequest): void {
    this.drop(next)
    next.id = request.id
    this.add(next)
  }
}
