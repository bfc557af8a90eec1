import type { ClientFrameOf } from '../../protocol/client-frame.ts'
import { AdkError } from '../adk-error.ts'
import type { IncomingFrameOf } from './incoming-frame.ts'
import type { ReconnectingSocket } from './reconnecting-socket.ts'

type StreamFrame = ClientFrameOf<'decide'> | ClientFrameOf<'tool-output'>

interface Waiting {
  readonly frame: StreamFrame
  /** Whether it was sent before, over a connection that was lost. */
  again: boolean
  readonly resolve: (state: string) => void
  readonly reject: (error: unknown) => void
}

/** Decisions and outputs on their way. Each is sent until the server says what became of it; it counts once (WS8, WS9). */
export class PendingAcks {
  readonly #link: () => ReconnectingSocket
  readonly #waiting = new Map<string, Waiting>()

  constructor(link: () => ReconnectingSocket) {
    this.#link = link
  }

  get size(): number {
    return this.#waiting.size
  }

  /** Resolves with what the server makes of it, rejects when it is refused. */
  send(frame: StreamFrame): Promise<string> {
    return new Promise((resolve, reject) => {
      // What cannot be written must not be tried again with every socket: it throws here.
      JSON.stringify(frame)
      this.#waiting.set(idOf(frame), { frame, again: false, resolve, reject })
      this.#link().open()
      this.#link().send(frame)
    })
  }

  onFrame(frame: IncomingFrameOf<'decided' | 'tool-output-taken'>): void {
    const id = frame.type === 'decided' ? frame.decisionId : frame.outputId
    const waiting = this.#waiting.get(id)
    if (!waiting) return
    this.#waiting.delete(id)
    // An output that was taken before the connection was lost is not waited for any more.
    const isTaken = !frame.ok && waiting.again && frame.code === 'nothing-new'
    if (isTaken) waiting.resolve('taken')
    else if (!frame.ok) waiting.reject(new AdkError(frame.code, frame.message))
    else waiting.resolve(frame.type === 'decided' ? frame.state : 'taken')
  }

  onUp(): void {
    for (const waiting of this.#waiting.values()) this.#link().send(waiting.frame)
  }

  onDown(): void {
    for (const waiting of this.#waiting.values()) waiting.again = true
  }

  failAll(error: unknown): void {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}

function idOf(frame: StreamFrame): string {
  return frame.type === 'decide' ? frame.decisionId : frame.outputId
}
