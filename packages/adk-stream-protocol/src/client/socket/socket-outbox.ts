import type { ClientFrameOf } from '../../protocol/client-frame.ts'
import { defer, type Deferred } from '../../shared/async.ts'
import { type Backoff, delayBefore } from '../../shared/backoff.ts'
import { AdkError } from '../adk-error.ts'
import { DECISION_CANCELLED } from '../connection/transport.ts'
import type { ReconnectingSocket } from './reconnecting-socket.ts'
import type { IncomingFrameOf } from './socket-request.ts'

type OutgoingFrame =
  | ClientFrameOf<'decide'>
  | ClientFrameOf<'tool-output'>
  | (ClientFrameOf<'text'> & { readonly messageId: string })

interface OutboxEntry extends Deferred<string> {
  readonly frame: OutgoingFrame
  isSent: boolean
  /** Whether the frame was sent over a connection that was lost. */
  isRepeated: boolean
  /** How often a server was not available for it. */
  refusals: number
  /** Whether it waits to be sent again after such a refusal. */
  isRefused: boolean
}

const NOT_SENT = { isSent: false, isRepeated: false, refusals: 0, isRefused: false }

/**
 * Texts, decisions and outputs that the server has not acknowledged. Each is sent again over the next socket and counts once (TU901, WS7,
 * WS9). A decision is also sent again to a server that is not available for it (CL1952).
 */
export class SocketOutbox {
  readonly #socket: () => ReconnectingSocket
  readonly #backoff: Required<Backoff>
  /** By the id that the acknowledgement has. */
  readonly #all = new Map<string, OutboxEntry>()

  constructor(socket: () => ReconnectingSocket, backoff: Required<Backoff>) {
    this.#socket = socket
    this.#backoff = backoff
  }

  get size(): number {
    return this.#all.size
  }

  /** Resolves with the state that the server reports. Rejects if the server rejects the frame. */
  async send(frame: OutgoingFrame): Promise<string> {
    // Throws here if JSON cannot represent the frame. Otherwise it would be tried again with every socket.
    JSON.stringify(frame)
    const added = { ...defer<string>(), frame, ...NOT_SENT }
    this.#all.set(idOf(frame), added)
    this.#socket().open()
    this.#transmit(added)
    return added.promise
  }

  onFrame(frame: IncomingFrameOf<'decided' | 'tool-output-taken'>): void {
    const id = frame.type === 'decided' ? frame.decisionId : frame.outputId
    const sent = this.#all.get(id)
    if (!sent || this.#sendLater(sent, frame)) return
    this.#all.delete(id)
    if (frame.ok) sent.resolve(frame.type === 'decided' ? frame.state : 'taken')
    // The server accepted the output before the connection was lost.
    else if (sent.isRepeated && frame.code === 'nothing-new') sent.resolve('taken')
    else sent.reject(new AdkError(frame.code, frame.message, undefined, frame.preview))
  }

  /** A text has no acknowledgement of its own. The server has read it when it answers the ping that follows it. */
  onPong(nonce: string): void {
    this.#remove(nonce)?.resolve('taken')
  }

  onOpen(): void {
    for (const each of this.#all.values()) this.#transmit(each)
  }

  onLost(): void {
    for (const each of this.#all.values()) each.isRepeated = each.isSent
  }

  /** Takes back a decision that was not sent. Returns false if there is none, or if it may have arrived. */
  cancelDecision(approvalId: string): boolean {
    for (const { frame, isSent } of this.#all.values())
      if (!isSent && frame.type === 'decide' && frame.approvalId === approvalId) {
        this.#remove(frame.decisionId)?.reject(DECISION_CANCELLED)
        return true
      }
    return false
  }

  failAll(error: unknown): void {
    for (const id of this.#all.keys()) this.#remove(id)?.reject(error)
  }

  /** CL1952. A page sends outputs again itself. Returns false if the decision is not sent again. */
  #sendLater(
    entry: OutboxEntry,
    answer: IncomingFrameOf<'decided' | 'tool-output-taken'>,
  ): boolean {
    const { refusals } = entry
    const isAway = answer.type === 'decided' && !answer.ok && answer.code === 'unavailable'
    if (!isAway || refusals >= this.#backoff.attempts) return false
    entry.refusals += 1
    entry.isRefused = true
    // Unless another socket is open before.
    const onDue = (): void => {
      if (entry.isRefused && this.#all.has(idOf(entry.frame))) this.#transmit(entry)
    }
    setTimeout(onDue, delayBefore(refusals, this.#backoff))
    return true
  }

  #transmit(entry: OutboxEntry): void {
    const { frame } = entry
    if (!this.#socket().send(frame)) return
    entry.isSent = true
    entry.isRefused = false
    if (frame.type === 'text') this.#socket().send({ type: 'ping', nonce: frame.messageId })
  }

  #remove(id: string): OutboxEntry | undefined {
    const found = this.#all.get(id)
    this.#all.delete(id)
    return found
  }
}

function idOf(frame: OutgoingFrame): string {
  if (frame.type === 'text') return frame.messageId
  return frame.type === 'decide' ? frame.decisionId : frame.outputId
}
