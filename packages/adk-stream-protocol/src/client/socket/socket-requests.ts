import { AdkError, disconnected } from '../adk-error.ts'
import type { AdkChunkStream } from '../adk-ui-message.ts'
import type { ChatPositions } from '../../protocol/sse.ts'
import type { ResponseStates } from '../connection/response-states.ts'
import {
  type ChatObserver,
  type FindObserver,
  DECISION_CANCELLED,
} from '../connection/transport.ts'
import { type Backoff, delayBefore } from '../../shared/backoff.ts'
import { type WireObserver, createTap } from '../connection/wire-events.ts'
import {
  type IncomingFrameOf,
  type RequestFrame,
  describeRequest,
  SocketRequest,
} from './socket-request.ts'
import type { ReconnectingSocket } from './reconnecting-socket.ts'

type StreamFrame = IncomingFrameOf<'start' | 'chunk' | 'end' | 'error' | 'no-active'>

interface Dependencies {
  readonly socket: () => ReconnectingSocket
  readonly backoff: Required<Backoff>
  readonly responses: ResponseStates
  readonly findObserver: FindObserver
  readonly observe: WireObserver | undefined
  readonly isWatched: (chatId: string) => boolean
  readonly ping: () => Promise<unknown>
}

/** The streams that chats requested over a socket. Resumes them when the socket was lost. */
export class SocketRequests {
  readonly #dependencies: Dependencies
  /** By their id on the wire. */
  readonly #requests = new Map<string, SocketRequest>()

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  get size(): number {
    return this.#requests.size
  }

  /** Returns the request whose stream a chat reads. */
  ofChat(chatId: string): SocketRequest | undefined {
    const chat = this.#dependencies.findObserver(chatId)?.chat
    return this.#all.findLast(
      (request) =>
        request.chatId === chatId &&
        request.isRead &&
        (chat === undefined || request.chat === undefined || request.chat === chat),
    )
  }

  chatOf(requestId: string): string | undefined {
    return this.#requests.get(requestId)?.chatId
  }

  /** Whether a request of a chat reads this turn. */
  isReading(chatId: string, turn: string): boolean {
    return this.#all.some((request) => request.chatId === chatId && request.turn === turn)
  }

  /** Requests a stream. Resolves when the server has accepted the request. */
  open(
    frame: RequestFrame,
    responseIds: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<AdkChunkStream | undefined> {
    // The reply to a new message is not what the person has stopped.
    if (frame.type === 'send')
      for (const each of this.#all)
        if (each.chatId === frame.id && each.state === 'finding') this.#leave(each)
    const request = this.#create(frame, responseIds)
    this.#dependencies.responses.mark(responseIds, 'sent')
    this.#listen(request, signal)
    this.#dependencies.socket().open()
    this.#send(request)
    return request.opened
  }

  onFrame(frame: StreamFrame): void {
    const request = this.#requests.get(frame.requestId)
    if (!request) return
    if (request.state === 'finding') return this.#stopFound(request, frame)
    if (request.state === 'stopping') return
    switch (frame.type) {
      case 'start':
        return this.#start(request)
      case 'chunk':
        // A missing chunk is a fault of the connection. The stream is continued over the next one.
        if (!request.take(frame)) this.#dependencies.socket().renew()
        else if (request.isWaiting && this.#isAbandoned(request)) this.#leave(request)
        return
      case 'end':
        return request.isUnconfirmed
          ? void this.#check(request)
          : this.#end(request, frame.position)
      case 'no-active':
        return this.#onNotActive(request)
      case 'error':
        if (frame.code === 'unavailable' && this.#sendLater(request)) return
        return this.#fail(request, new AdkError(frame.code, frame.errorText))
    }
  }

  /** A socket is open: sends what was not sent, and resumes what was interrupted. */
  onOpen(): void {
    for (const request of this.#all) {
      const { state } = request
      if (state === 'unsent' || (state === 'sent' && request.isRepeatable)) this.#send(request)
      else if (state === 'stopping') this.#stopAgain(request)
      else if (state === 'finding') this.#sendFrame(request, 'resume')
      else this.#resume(request)
    }
  }

  /** The socket was lost. The stream of a chat that is not attached fails; the chat can resume it. */
  onLost(): void {
    for (const request of this.#all) {
      const isInterrupted = request.state === 'reading' || request.state === 'resuming'
      if (isInterrupted && !request.isRead) this.#end(request)
      else if (isInterrupted && !this.#observerOf(request))
        this.#fail(request, disconnected('the connection was lost during the response'))
    }
  }

  /** Leaves the turns that wait in a chat that was detached. They would keep their streams for ever. */
  leaveWaiting(chatId: string): void {
    for (const request of this.#abandonedIn(chatId)) if (request.isWaiting) this.#leave(request)
  }

  /** Unless it is final, responses and stops that name their message are kept: they are sent when the server can be reached. */
  failAll(error: unknown, { isFinal }: { readonly isFinal: boolean }): void {
    for (const request of this.#all) {
      const isUnconfirmed = request.state === 'unsent' || request.state === 'sent'
      const hasResponses = isUnconfirmed && request.responseIds.length > 0
      if (isFinal || !(hasResponses || request.state === 'stopping')) this.#fail(request, error)
    }
  }

  /** Takes back the responses of a request that was not sent. Returns false if there is none, or if it may have arrived. */
  cancelDecision(id: string): boolean {
    const request = this.#all.find(
      ({ state, responseIds }) => state === 'unsent' && responseIds.includes(id),
    )
    if (!request) return false
    this.#requests.delete(request.id)
    request.end()
    this.#refuseResponses(request, DECISION_CANCELLED)
    return true
  }

  #refuseResponses(request: SocketRequest, reason: unknown): void {
    const { responseIds } = request
    if (responseIds.length === 0) return
    this.#dependencies.responses.mark(responseIds, 'refused')
    this.#observerOf(request)?.onResponsesRefused(responseIds, reason)
  }

  /** A copy: a request that is sent again gets another id. */
  get #all(): SocketRequest[] {
    return [...this.#requests.values()]
  }

  #create(
    frame: RequestFrame,
    responseIds: readonly string[],
    chat = this.#dependencies.findObserver(frame.id)?.chat,
  ): SocketRequest {
    const { findObserver, observe } = this.#dependencies
    const request = new SocketRequest(frame, {
      responseIds,
      chat,
      observer: () => findObserver(frame.id, chat),
      tap: observe && createTap(observe, { chatId: frame.id, ...describeRequest(frame) }),
      onCancel: (cancelled) => {
        // The AI SDK cancels the stream after it has aborted the signal. See #listen.
        if (cancelled.signal?.aborted !== true) this.#stop(cancelled)
      },
    })
    this.#requests.set(request.id, request)
    return request
  }

  #send(request: SocketRequest): void {
    if (this.#sendFrame(request, 'original')) request.state = 'sent'
  }

  /** CL1952: sends responses again that the server could not take. Returns false if the request has failed. */
  #sendLater(request: SocketRequest): boolean {
    const { backoff } = this.#dependencies
    const { responseIds, refusals } = request
    const isKept = request.state === 'sent' && responseIds.length > 0 && this.#observerOf(request)
    if (!isKept || refusals >= backoff.attempts) return false
    request.refusals += 1
    // Unless another socket is open before: then it has another id.
    const { id } = request
    const onDue = (): void => {
      if (request.state === 'sent' && request.id === id) this.#send(request)
    }
    setTimeout(onDue, delayBefore(refusals, backoff))
    return true
  }

  #resume(request: SocketRequest): void {
    const hasNoReply = request.state === 'sent' || request.state === 'checking'
    if (this.#sendFrame(request, 'resume')) request.state = hasNoReply ? 'checking' : 'resuming'
  }

  #sendFrame(request: SocketRequest, type: 'original' | 'resume'): boolean {
    const socket = this.#dependencies.socket()
    if (!socket.isOpen) return false
    this.#requests.delete(request.id)
    const frame = request.nextFrame(type)
    this.#requests.set(request.id, request)
    return socket.send(this.#isHeard(request) ? frame : { ...frame, audio: 'none' })
  }

  /** Whether the audio of a request may be used. An attached chat gets its audio by `watch`. */
  #isHeard({ chatId, chat }: SocketRequest): boolean {
    return chat === undefined || this.#dependencies.isWatched(chatId)
  }

  #start(request: SocketRequest): void {
    this.#dependencies.responses.mark(request.responseIds, 'accepted')
    // The turn has this reader now, so that the server does not stop it when the others are gone.
    for (const replaced of request.replaced.splice(0)) this.#abort(replaced, false)
    request.start()
    if (request.frame.type === 'resume')
      for (const abandoned of this.#abandonedIn(request.chatId)) this.#leave(abandoned)
  }

  #observerOf({ chatId, chat }: SocketRequest): ChatObserver | undefined {
    return this.#dependencies.findObserver(chatId, chat)
  }

  /** Whether the chat of a request was attached, and is not any more. */
  #isAbandoned(request: SocketRequest): boolean {
    return request.chat !== undefined && !this.#observerOf(request)
  }

  #abandonedIn(chatId: string): SocketRequest[] {
    return this.#all.filter((each) => each.chatId === chatId && this.#isAbandoned(each))
  }

  /** Stops reading a turn. The turn continues. */
  #leave(request: SocketRequest): void {
    if (!request.isOpen && request.state !== 'finding') return
    this.#end(request)
    this.#dependencies.socket().send({ type: 'leave', requestId: request.id })
  }

  #end(request: SocketRequest, positions?: ChatPositions): void {
    this.#requests.delete(request.id)
    request.end(positions)
  }

  #fail(request: SocketRequest, error: unknown): void {
    this.#requests.delete(request.id)
    const { state } = request
    const hasNoReply = state === 'sent' || state === 'checking' || state === 'unsent'
    if (hasNoReply) this.#refuseResponses(request, error)
    request.fail(error)
  }

  #onNotActive(request: SocketRequest): void {
    if (request.state === 'sent') return this.#end(request)
    if (request.state === 'resuming' || request.state === 'checking') void this.#check(request)
  }

  /** No turn is running for an interrupted request. Finds out whether the server has handled it. */
  async #check(request: SocketRequest): Promise<void> {
    const { state } = request
    const storedIds = await this.#observerOf(request)
      ?.reload(request.unconfirmedEdit)
      .catch(() => undefined)
    if (request.state !== state) return
    if (storedIds && request.isHandled(storedIds)) this.#end(request)
    else if (storedIds && state === 'checking') this.#send(request)
    else this.#fail(request, disconnected('the connection was lost, and the turn has ended'))
  }

  /** Stops the turn when the signal is aborted, unless another request of the chat replaces this one. */
  #listen(request: SocketRequest, signal: AbortSignal | undefined): void {
    request.signal = signal
    // A second `resumeStream()` aborts the first one and sends its request right after.
    const onAbort = (): void =>
      queueMicrotask(() => {
        const newer = this.#newerThan(request)
        if (request.frame.type === 'resume' && newer) this.#replace(request, newer)
        else this.#stop(request)
      })
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
  }

  #newerThan({ chatId, createdSeq }: SocketRequest): SocketRequest | undefined {
    return this.#all.findLast(
      (other) => other.chatId === chatId && other.isRead && other.createdSeq > createdSeq,
    )
  }

  /** Ends a request here. Its `abort` is sent when the server streams to the newer one. */
  #replace(request: SocketRequest, newer: SocketRequest): void {
    if (!request.isOpen) return
    const replaced = [...request.replaced, ...(request.state === 'unsent' ? [] : [request])]
    this.#end(request)
    newer.replaced.push(...replaced)
    if (newer.state === 'reading') this.#start(newer)
  }

  /** Ends a request on the server. If the person pressed Stop, the turn ends too, whichever tab started it. */
  #abort({ id: requestId, signal }: SocketRequest, isStopped = signal?.aborted === true): boolean {
    const frame = { type: 'abort' as const, requestId, ...(isStopped && { stop: true }) }
    return this.#dependencies.socket().send(frame)
  }

  #stop(request: SocketRequest): void {
    if (!request.isOpen) return
    const { state, frame } = request
    request.end()
    if (state === 'unsent' && frame.type === 'send') {
      this.#requests.delete(request.id)
      return this.#refuseResponses(request, DECISION_CANCELLED)
    }
    if (request.stoppedMessageId !== undefined) {
      request.state = 'stopping'
      this.#abort(request)
    } else if (state === 'reading' && this.#abort(request)) {
      this.#requests.delete(request.id)
    } else {
      request.state = 'finding'
      return
    }
    void this.#settle(request, state)
  }

  /**
   * The server has found the turn that a stopped request resumes. An `abort` before that could stop the reply to a later message, if the
   * server looks for the turn late.
   */
  #stopFound(request: SocketRequest, { type }: StreamFrame): void {
    if (type === 'start') this.#abort(request)
    this.#requests.delete(request.id)
    void this.#settle(request, 'ended')
  }

  /**
   * The server has handled a stop, and the request before it, when it answers a ping. If it does not, the stop may have been lost with its
   * connection: it is sent again over the next one.
   */
  async #settle(request: SocketRequest, state: SocketRequest['state']): Promise<void> {
    const { findObserver, ping } = this.#dependencies
    let isHandled = false
    while (!isHandled)
      isHandled = await ping().then(
        () => true,
        () => request.state !== 'stopping',
      )
    this.#requests.delete(request.id)
    const hasNoReply = state === 'sent' || state === 'checking'
    if (hasNoReply && request.responseIds.length > 0)
      this.#refuseResponses(request, new DOMException('The request was stopped.', 'AbortError'))
    else if (request.chat) findObserver(request.chatId, request.chat)?.onStopped()
  }

  /** The connection was lost before the server confirmed the stop. */
  #stopAgain({ chatId: id, stoppedMessageId: messageId }: SocketRequest): void {
    this.#dependencies.socket().send({ type: 'stop', id, messageId })
  }
}
