import type { Chunk } from '../../protocol/chunk.ts'
import type { TurnError } from '../../protocol/message.ts'
import { AdkError } from '../adk-error.ts'
import type { AdkChunkStream } from '../adk-ui-message.ts'
import type { ChatObserver } from './chat-observer.ts'
import { tellKeeper } from './chat-observer.ts'

interface StreamOptions {
  /** Who looks after the chat that reads it, now. */
  readonly keeper: () => ChatObserver | undefined
  readonly onCancel: () => void | Promise<void>
  /** Whether the chat asked for a turn, and does not read one that was there. */
  readonly isOwn: boolean
}

/**
 * The chunks of one answer as a chat reads them. A chunk is handed over when the one before it has been worked in: that is when a
 * stream without room of its own is asked for more.
 */
export function toChunkStream(
  chunks: AsyncIterator<Chunk, void>,
  { keeper, onCancel, isOwn }: StreamOptions,
): AdkChunkStream {
  let told: TurnError | undefined
  const pull = async (controller: ReadableStreamDefaultController<Chunk>): Promise<void> => {
    const next = await read(chunks, keeper)
    if (next.done === true) {
      controller.close()
      keeper()?.onRest()
      return
    }
    const chunk = next.value
    if (chunk.type === 'error') {
      controller.error(
        new AdkError(told?.code ?? 'internal', chunk.errorText, told?.retryAfterSeconds),
      )
      keeper()?.onRest()
      return
    }
    // An error is told in the metadata with its code, and then in the AI SDK's words without.
    if (chunk.type === 'message-metadata') told = chunk.messageMetadata.error
    if (isOwn && chunk.type === 'start') keeper()?.onOwnTurn(chunk.messageId)
    await tellKeeper(chunk, keeper())
    controller.enqueue(chunk)
  }
  return new ReadableStream<Chunk>({ pull, cancel: onCancel }, { highWaterMark: 0 })
}

async function read(
  chunks: AsyncIterator<Chunk, void>,
  keeper: StreamOptions['keeper'],
): Promise<IteratorResult<Chunk, void>> {
  try {
    return await chunks.next()
  } catch (error) {
    keeper()?.onRest()
    throw error
  }
}
