import type { Chunk } from '../../protocol/chunk.ts'
import { AsyncQueue } from '../../shared/async.ts'
import { newId } from '../../shared/new-id.ts'
import type { FindObserver } from '../transports/response-channel.ts'
import type { WireObserver, WireTap } from '../transports/wire-events.ts'
import { createTap } from '../transports/wire-events.ts'
import type { IncomingFrameOf } from './socket-request.ts'

interface StreamedTurn {
  readonly chatId: string
  readonly messageId: string
  readonly chunks: AsyncQueue<Chunk>
  readonly tap: WireTap | undefined
  /** Whether the turn was interrupted, and its replay has not started. */
  readonly isResumed: boolean
}

interface Dependencies {
  readonly findObserver: FindObserver
  readonly observe: WireObserver | undefined
  readonly onChunk: (chatId: string, chunk: Chunk) => void
}

/** The turns in watched chats that the client did not request. */
export class ServerTurns {
  readonly #dependencies: Dependencies
  readonly #turns = new Map<string, StreamedTurn>()
  /** The turns that a lost socket interrupted, by chat. */
  readonly #interrupted = new Map<string, StreamedTurn>()

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  start({ id, messageId, userMessage, requestId }: IncomingFrameOf<'turn'>): void {
    const { observe, findObserver } = this.#dependencies
    const request = { chatId: id, trigger: 'turn', messageId, message: userMessage } as const
    const tap = observe && createTap(observe, request)
    const chunks = new AsyncQueue<Chunk>()
    this.#turns.set(requestId, { chatId: id, messageId, chunks, tap, isResumed: false })
    const said = userMessage ? { userMessage } : {}
    findObserver(id)?.onTurn({ messageId, ...said, chunks, continues: false })
  }

  /** Returns false if the frame belongs to a request of the client. */
  onFrame(frame: IncomingFrameOf<'start' | 'chunk' | 'end' | 'error' | 'no-active'>): boolean {
    const turn = this.#turns.get(frame.requestId)
    if (!turn) return false
    const { chatId, messageId, chunks, tap, isResumed } = turn
    if (frame.type === 'start') {
      if (isResumed) this.#observerOf(turn)?.onTurn({ messageId, chunks, continues: false })
    } else if (frame.type === 'chunk') {
      tap?.chunk(frame.chunk)
      this.#dependencies.onChunk(chatId, frame.chunk)
      chunks.push(frame.chunk)
    } else {
      tap?.end(frame.type === 'error' ? frame.errorText : undefined)
      chunks.close()
      this.#turns.delete(frame.requestId)
      // The turn ended while there was no connection. If loading fails, the messages stay as they are.
      if (frame.type === 'no-active')
        void this.#observerOf(turn)
          ?.reload()
          .catch(() => undefined)
    }
    return true
  }

  onLost(): void {
    for (const turn of this.#turns.values()) {
      turn.tap?.end('the connection was lost')
      turn.chunks.close()
      this.#interrupted.set(turn.chatId, turn)
    }
    this.#turns.clear()
  }

  /** Resumes the interrupted turns. Returns the requests to send. */
  resume(isWanted: (chatId: string) => boolean): { requestId: string; id: string }[] {
    const { observe } = this.#dependencies
    const turns = [...this.#interrupted.values()].filter(({ chatId }) => isWanted(chatId))
    this.#interrupted.clear()
    return turns.map(({ chatId, messageId }) => {
      const requestId = newId()
      const request = { chatId, trigger: 'resume', messageId } as const
      const tap = observe && createTap(observe, request)
      const chunks = new AsyncQueue<Chunk>()
      this.#turns.set(requestId, { chatId, messageId, chunks, tap, isResumed: true })
      return { requestId, id: chatId }
    })
  }

  #observerOf({ chatId }: StreamedTurn) {
    return this.#dependencies.findObserver(chatId)
  }
}
