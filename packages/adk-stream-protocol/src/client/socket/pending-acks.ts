import type { ClientFrameOf } from '../../protocol/client-frame.ts'
import type { Deferred } from '../../shared/async.ts'
import { defer } from '../../shared/async.ts'
import { newId } from '../../shared/new-id.ts'
import { AdkError, disconnected } from '../adk-error.ts'
import { DECISION_CANCELLED } from '../transports/response-channel.ts'
import type { IncomingFrameOf } from './socket-request.ts'
import type { ReconnectingSocket } from './reconnecting-socket.ts'

type ResponseFrame = ClientFrameOf<'decide'> | ClientFrameOf<'tool-output'>

interface PendingAck extends Deferred<string> {
  readonly frame: ResponseFrame
  isSent: boolean
  /** Whether the frame was sent over a connection that was lost. */
  isRepeated: boolean
}

/** Decisions and outputs that the server has not acknowledged. Each is sent again over the next socket and counts once (WS8, WS9). */
export class PendingAcks {
  readonly #socket: () => ReconnectingSocket
  readonly #pending = new Map<string, PendingAck>()

  constructor(socket: () => ReconnectingSocket) {
    this.#socket = socket
  }

  get size(): number {
    return this.#pending.size
  }

  /** Resolves with the state that the server reports. Rejects if the server rejects the frame. */
  async send(frame: ResponseFrame): Promise<string> {
    // Throws here if JSON cannot represent the frame. Otherwise it would be tried again with every socket.
    JSON.stringify(frame)
    const pending = { ...defer<string>(), frame, isSent: false, isRepeated: false }
    this.#pending.set(idOf(frame), pending)
    this.#socket().open()
    pending.isSent = this.#socket().send(frame)
    return pending.promise
  }

  onFrame(frame: IncomingFrameOf<'decided' | 'tool-output-taken'>): void {
    const id = frame.type === 'decided' ? frame.decisionId : frame.outputId
    const pending = this.#pending.get(id)
    if (!pending) return
    this.#pending.delete(id)
    // The server accepted the output before the connection was lost.
    const isAccepted = !frame.ok && pending.isRepeated && frame.code === 'nothing-new'
    if (isAccepted) pending.resolve('taken')
    else if (!frame.ok)
      pending.reject(new AdkError(frame.code, frame.message, undefined, frame.preview))
    else pending.resolve(frame.type === 'decided' ? frame.state : 'taken')
  }

  onOpen(): void {
    for (const pending of this.#pending.values())
      if (this.#socket().send(pending.frame)) pending.isSent = true
  }

  onLost(): void {
    for (const pending of this.#pending.values()) pending.isRepeated = pending.isSent
  }

  /** Takes back a decision that was not sent. Returns false if there is none, or if it may have arrived. */
  cancelDecision(approvalId: string): boolean {
    const found = [...this.#pending.values()].find(
      ({ frame, isSent }) => !isSent && frame.type === 'decide' && frame.approvalId === approvalId,
    )
    if (!found) return false
    this.#pending.delete(idOf(found.frame))
    found.reject(DECISION_CANCELLED)
    return true
  }

  failAll(error: unknown): void {
    for (const { reject } of this.#pending.values()) reject(error)
    this.#pending.clear()
  }
}

function idOf(frame: ResponseFrame): string {
  return frame.type === 'decide' ? frame.decisionId : frame.outputId
}

interface Ping extends Deferred<number> {
  readonly sentAt: number
  readonly timer: ReturnType<typeof setTimeout>
}

const PING_TIMEOUT_MS = 10_000

/** Pings that the server has not answered. Each is answered, or fails after 10 seconds. */
export interface PendingPings {
  readonly size: number
  /** The nonces to send again over another socket. */
  readonly nonces: readonly string[]
  /** Resolves with the round-trip time in ms. */
  send(transmit: (nonce: string) => void): Promise<number>
  onPong(nonce: string): void
  failAll(error: unknown): void
}

export function createPendingPings(): PendingPings {
  const pings = new Map<string, Ping>()
  return {
    get size() {
      return pings.size
    },
    get nonces() {
      return [...pings.keys()]
    },
    send: (transmit) => {
      const nonce = newId()
      const deferred = defer<number>()
      const timer = setTimeout(() => {
        pings.delete(nonce)
        deferred.reject(disconnected('a ping was not answered'))
      }, PING_TIMEOUT_MS)
      pings.set(nonce, { ...deferred, sentAt: performance.now(), timer })
      transmit(nonce)
      return deferred.promise
    },
    onPong: (nonce) => {
      const ping = pings.get(nonce)
      if (!ping) return
      pings.delete(nonce)
      clearTimeout(ping.timer)
      ping.resolve(performance.now() - ping.sentAt)
    },
    failAll: (error) => {
      for (const { reject, timer } of pings.values()) {
        clearTimeout(timer)
        reject(error)
      }
      pings.clear()
    },
  }
}
