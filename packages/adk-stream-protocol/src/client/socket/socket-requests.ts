import { AdkError, disconnected } from '../adk-error.ts'
import type { AdkChunkStream } from '../adk-ui-message.ts'
import type { ResponseStates } from '../sync/response-states.ts'
import type { ChatObserver } from '../transports/chat-observer.ts'
import type { FindObserver } from '../transports/chat-observers.ts'
import type { RequestFrame } from './socket-request.ts'
import { SocketRequest } from './socket-request.ts'
import type { IncomingFrameOf } from './incoming-frame.ts'
import type { ReconnectingSocket } from './reconnecting-socket.ts'
import { OpenRequests } from './open-requests.ts'
import { describeRequest, isAnswered } from './request-frames.ts'
import type { WireObserver } from '../transports/wire-events.ts'
import { WireTap } from '../transports/wire-events.ts'

type StreamFrame = IncomingFrameOf<'start' | 'chunk' | 'end' | 'error' | 'no-active'>

interface Parts {
  readonly link: () => ReconnectingSocket
  readonly answers: ResponseStates
  readonly keeperOf: FindObserver
  readonly observe: WireObserver | undefined
}

/** The answers that are being read over a socket, and what becomes of them when it is lost. */
export class SocketRequests {
  readonly #parts: Parts
  readonly #requests = new OpenRequests()
  /** Streams that go on with one that was cut off, until their chat takes them. */
  readonly #revived = new Map<string, SocketRequest>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#requests.size
  }

  /** The answer that a chat is reading. */
  ofChat(chatId: string): SocketRequest | undefined {
    return this.#requests.ofChat(chatId, this.#parts.keeperOf(chatId)?.chat)
  }

  chatOf(requestId: string): string | undefined {
    return this.#requests.find(requestId)?.chatId
  }

  /** Asks for an answer; resolves when the server has taken the request. */
  ask(
    frame: RequestFrame,
    answered: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<AdkChunkStream | undefined> {
    const request = this.#create(frame, answered)
    this.#parts.answers.mark(answered, 'travelling')
    this.#listen(request, signal)
    this.#parts.link().open()
    this.#transmit(request)
    return request.opened
  }

  /** The stream that goes on with one that was cut off. */
  takeRevived(chatId: string, signal: AbortSignal | undefined): AdkChunkStream | undefined {
    const request = this.#revived.get(chatId)
    this.#revived.delete(chatId)
    if (request) this.#listen(request, signal)
    return request?.stream
  }

  onFrame(frame: StreamFrame): void {
    const request = this.#requests.find(frame.requestId)
    if (!request) return
    switch (frame.type) {
      case 'start':
        return this.#start(request)
      case 'chunk':
        // A gap cannot be: it is a fault on the way, and the next connection brings the whole.
        if (!request.take(frame.sequence, frame.chunk)) this.#parts.link().renew()
        else if (request.isWaiting && this.#isLeft(request)) this.#leave(request)
        return
      case 'end':
        return this.#end(request)
      case 'no-active':
        return this.#notActive(request)
      case 'error':
        return this.#fail(request, new AdkError(frame.code, frame.errorText))
    }
  }

  /** The socket is there: says what was not said, and goes on with what was cut off. */
  onUp(): void {
    for (const request of this.#requests.all) {
      if (request.state === 'new') this.#transmit(request)
      else if (request.state === 'stopping') this.#stopAnew(request)
      else if (request.state === 'asked' && request.answered.length > 0) this.#transmit(request)
      else if (request.state === 'asked' && request.frame.type === 'resume') this.#transmit(request)
      else this.#resume(request)
    }
  }

  /** The socket was lost. Whom nobody looks after is told; they can resume. */
  onDown(): void {
    for (const request of this.#requests.all) {
      const isCut = request.state === 'reading' || request.state === 'healing'
      if (isCut && !request.isRead) this.#end(request)
      else if (isCut && !this.#keeperOf(request))
        this.#fail(request, disconnected('the connection was lost in mid-answer'))
    }
  }

  /** Reads no more of what waits in a chat that was left: it would wait, and hold its place, for ever. */
  leaveWaiting(chatId: string): void {
    for (const request of this.#leftIn(chatId)) if (request.isWaiting) this.#leave(request)
  }

  failAll(error: unknown): void {
    for (const request of this.#requests.all) this.#fail(request, error)
  }

  #create(
    frame: RequestFrame,
    answered: readonly string[],
    chat = this.#parts.keeperOf(frame.id)?.chat,
  ): SocketRequest {
    const request = new SocketRequest(frame, answered, {
      chat,
      keeper: () => this.#parts.keeperOf(frame.id, chat),
      tap: new WireTap(this.#parts.observe, { chatId: frame.id, ...describeRequest(frame) }),
      // Whoever ends it says so by its signal as well, and more exactly.
      onCancel: (cancelled) => this.#abandon(cancelled),
    })
    this.#requests.add(request)
    return request
  }

  #transmit(request: SocketRequest): void {
    if (this.#say(request, 'as-asked')) request.state = 'asked'
  }

  #resume(request: SocketRequest): void {
    const unheard = request.state === 'asked' || request.state === 'checking'
    if (this.#say(request, 'resume')) request.state = unheard ? 'checking' : 'healing'
  }

  #say(request: SocketRequest, type: 'as-asked' | 'resume'): boolean {
    if (!this.#parts.link().isOpen) return false
    return this.#parts.link().send(this.#requests.rename(request, type))
  }

  #start(request: SocketRequest): void {
    if (request.state === 'healing') return this.#revive(request)
    this.#parts.answers.mark(request.answered, 'taken')
    // The server reads the turn to this one now, so that it does not stop it for want of readers.
    for (const replaced of request.replaced.splice(0)) this.#tellAbort(replaced)
    request.start()
    // The turn has another reader now.
    if (request.frame.type === 'resume')
      for (const left of this.#leftIn(request.chatId)) this.#leave(left)
  }

  #keeperOf({ chatId, chat }: SocketRequest): ChatObserver | undefined {
    return this.#parts.keeperOf(chatId, chat)
  }

  /** Whether the chat that reads it was looked after, and was let go. */
  #isLeft(request: SocketRequest): boolean {
    return request.chat !== undefined && !this.#keeperOf(request)
  }

  #leftIn(chatId: string): SocketRequest[] {
    return this.#requests.all.filter((each) => each.chatId === chatId && this.#isLeft(each))
  }

  /** Reads no more of it; the turn goes on. */
  #leave(request: SocketRequest): void {
    if (request.state === 'over' || request.state === 'stopping') return
    this.#end(request)
    this.#parts.link().send({ type: 'leave', requestId: request.id })
  }

  /** The server tells the message from its start again, so the chat reads it in a stream of its own. */
  #revive(cut: SocketRequest): void {
    const { chatId: id } = cut
    const next = this.#create({ type: 'resume', requestId: cut.id, id }, [], cut.chat)
    this.#requests.replace(cut, next)
    next.start()
    this.#revived.set(id, next)
    cut.end()
    this.#keeperOf(cut)?.onRevived()
  }

  #end(request: SocketRequest): void {
    this.#requests.drop(request)
    request.end()
  }

  #fail(request: SocketRequest, error: unknown): void {
    this.#requests.drop(request)
    if (request.state === 'asked' || request.state === 'checking' || request.state === 'new') {
      this.#parts.answers.mark(request.answered, 'refused')
      if (request.answered.length > 0) this.#keeperOf(request)?.onRefused(request.answered, error)
    }
    request.fail(error)
  }

  #notActive(request: SocketRequest): void {
    if (request.state === 'asked') return this.#end(request)
    if (request.state === 'healing' || request.state === 'checking') void this.#lookUp(request)
  }

  /** Nothing runs for a request that was cut off: it was answered meanwhile, or never heard of. */
  async #lookUp(request: SocketRequest): Promise<void> {
    const { state } = request
    const known = await this.#keeperOf(request)
      ?.reload()
      .catch(() => undefined)
    if (request.state !== state) return
    const isThere = known !== undefined && isAnswered(request, known)
    if (isThere) this.#end(request)
    else if (known && state === 'checking') this.#transmit(request)
    else this.#fail(request, disconnected('the connection was lost, and the answer is over'))
  }

  /** The person presses stop; or a second `resumeStream()`, which aborts the first and asks at once, takes its place. */
  #listen(request: SocketRequest, signal: AbortSignal | undefined): void {
    const onAbort = (): void =>
      queueMicrotask(() => {
        const newer = this.#requests.newerThan(request)
        if (request.frame.type === 'resume' && newer) this.#replace(request, newer)
        else this.#stop(request)
      })
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
  }

  /** Nobody reads its stream any more, and a moment later nobody has said why: the chat is gone. */
  #abandon(request: SocketRequest): void {
    queueMicrotask(() => queueMicrotask(() => this.#stop(request)))
  }

  /** Ends a request here; the server is told when the newer one is being read. */
  #replace(request: SocketRequest, newer: SocketRequest): void {
    if (request.state === 'over' || request.state === 'stopping') return
    const replaced = [...request.replaced, ...(request.state === 'new' ? [] : [request])]
    this.#end(request)
    newer.replaced.push(...replaced)
    if (newer.state === 'reading') this.#start(newer)
  }

  #tellAbort({ id: requestId }: SocketRequest): void {
    this.#parts.link().send({ type: 'abort', requestId })
  }

  #stop(request: SocketRequest): void {
    if (request.state === 'over' || request.state === 'stopping') return
    const { id: requestId, state } = request
    request.end()
    if (state === 'new' || this.#parts.link().send({ type: 'abort', requestId })) {
      this.#requests.drop(request)
    } else request.state = 'stopping'
  }

  /** The answer was to be stopped while there was no connection. */
  #stopAnew(request: SocketRequest): void {
    this.#say(request, 'resume')
    this.#parts.link().send({ type: 'abort', requestId: request.id })
    this.#requests.drop(request)
    request.state = 'over'
  }
}
