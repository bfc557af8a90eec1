import type { Chunk } from '../../protocol/chunk.ts'
import type { Message } from '../../protocol/message.ts'

/** A decision as a chat keeps it. */
export interface Decision {
  readonly id: string
  readonly approved: boolean
  readonly reason?: string
}

/** A turn that a chat did not ask for. */
export interface ServerTurn {
  readonly messageId: string
  readonly userMessage?: Message
  /** Whether its chunks go on where the chat's message ends, in place of telling it from its start. */
  readonly continues: boolean
  readonly chunks: AsyncIterable<Chunk>
}

/** Who looks after a chat while its transport works for it, see `attachChat`. */
export interface ChatObserver {
  /** The chat itself: another one of the same id is another. */
  readonly chat: object
  /** The chat is about to get a chunk. */
  readonly onChunk: (chunk: Chunk) => void
  /** A request of the chat itself began, or went on with, the turn of this message. */
  readonly onOwnTurn: (messageId: string) => void
  /** A question was decided, here or elsewhere; what came of it follows when this is done. */
  readonly onDecided: (decision: Decision) => Promise<void>
  /** The answer goes on in a stream that `reconnectToStream` gives: the connection was lost, and is back. */
  readonly onRevived: () => void
  /** Takes over what the server has. The ids of its messages, or nothing when it cannot be asked. */
  readonly reload: () => Promise<readonly string[] | undefined>
  readonly onTurn: (turn: ServerTurn) => void
  /** The person said something besides the chat's own messages; `heard` when it was spoken. */
  readonly onUserMessage: (message: Message, how: 'written' | 'heard') => void
  /** An answer to the chat is over. */
  readonly onRest: () => void
  /** ResponseStates that were sent within a request were not taken. */
  readonly onRefused: (ids: readonly string[], error: unknown) => void
}

/**
 * Tells a chat's keeper of a chunk, and of a decision before the chat reads what came of it: it would have an outcome without a
 * decision else.
 */
export async function tellKeeper(chunk: Chunk, keeper: ChatObserver | undefined): Promise<void> {
  keeper?.onChunk(chunk)
  if (chunk.type !== 'data-approval' || !keeper) return
  const { approvalId: id, state, reason } = chunk.data
  const said = reason === undefined ? {} : { reason }
  if (state === 'approved') await keeper.onDecided({ id, approved: true, ...said })
  if (state === 'denied') await keeper.onDecided({ id, approved: false, ...said })
}
