import type { Chunk } from '../../protocol/chunk.ts'
import { AsyncQueue } from '../../shared/async-queue.ts'
import type { ChatObserver } from '../transports/chat-observer.ts'
import { newId } from '../../shared/new-id.ts'
import type { IncomingFrameOf } from './incoming-frame.ts'
import type { WireObserver } from '../transports/wire-events.ts'
import { WireTap } from '../transports/wire-events.ts'

interface UnaskedTurn {
  readonly chatId: string
  readonly messageId: string
  readonly chunks: AsyncQueue<Chunk>
  readonly tap: WireTap
  /** For one that was cut off: the server goes on with it. */
  readonly onResumed?: () => void
}

interface Parts {
  readonly keeperOf: (chatId: string) => ChatObserver | undefined
  readonly observe: WireObserver | undefined
  readonly onChunk: (chatId: string, chunk: Chunk) => void
}

/** The turns in watched chats that the client did not ask for. */
export class ServerTurns {
  readonly #parts: Parts
  readonly #turns = new Map<string, UnaskedTurn>()
  /** Those that a lost socket cut off, by their chat. */
  readonly #cut = new Map<string, UnaskedTurn>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  begin({ id, messageId, userMessage, requestId }: IncomingFrameOf<'turn'>): void {
    const said = userMessage ? { userMessage } : {}
    const { chunks } = this.#add(requestId, { chatId: id, messageId, message: userMessage })
    this.#parts.keeperOf(id)?.onTurn({ messageId, ...said, chunks, continues: false })
  }

  /** False for a frame of a turn that was asked for. */
  onFrame(frame: IncomingFrameOf<'start' | 'chunk' | 'end' | 'error' | 'no-active'>): boolean {
    const turn = this.#turns.get(frame.requestId)
    if (!turn) return false
    if (frame.type === 'start') turn.onResumed?.()
    else if (frame.type === 'chunk') this.#grow(turn, frame.chunk)
    else {
      turn.tap.end(frame.type === 'error' ? frame.errorText : undefined)
      turn.chunks.close()
      this.#turns.delete(frame.requestId)
      // It ended while there was no connection. Whoever wants to know of failures loads for itself.
      if (frame.type === 'no-active')
        void this.#parts
          .keeperOf(turn.chatId)
          ?.reload()
          .catch(() => undefined)
    }
    return true
  }

  onDown(): void {
    for (const turn of this.#turns.values()) {
      turn.tap.end('the connection was lost')
      turn.chunks.close()
      this.#cut.set(turn.chatId, turn)
    }
    this.#turns.clear()
  }

  /** Goes on with the turns that were cut off; gives what to ask the server for. */
  resume(isWanted: (chatId: string) => boolean): { requestId: string; id: string }[] {
    const cut = [...this.#cut.values()].filter(({ chatId }) => isWanted(chatId))
    this.#cut.clear()
    return cut.map(({ chatId, messageId }) => {
      const requestId = newId()
      this.#add(requestId, { chatId, messageId, isResumed: true })
      return { requestId, id: chatId }
    })
  }

  #add(requestId: string, { chatId, messageId, message, isResumed = false }: Begun): UnaskedTurn {
    const chunks = new AsyncQueue<Chunk>()
    const trigger = isResumed ? 'resume' : 'turn'
    const tap = new WireTap(this.#parts.observe, { chatId, trigger, messageId, message })
    const onResumed = (): void =>
      this.#parts.keeperOf(chatId)?.onTurn({ messageId, chunks, continues: false })
    const turn = { chatId, messageId, chunks, tap, ...(isResumed && { onResumed }) }
    this.#turns.set(requestId, turn)
    return turn
  }

  #grow({ chatId, chunks, tap }: UnaskedTurn, chunk: Chunk): void {
    tap.chunk(chunk)
    this.#parts.onChunk(chatId, chunk)
    chunks.push(chunk)
  }
}

interface Begun {
  readonly chatId: string
  readonly messageId: string
  readonly message?: IncomingFrameOf<'turn'>['userMessage']
  readonly isResumed?: boolean
}
