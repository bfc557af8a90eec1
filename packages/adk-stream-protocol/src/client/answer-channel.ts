import type { Chunk } from '../protocol/chunk.ts'
import type { Answers } from './answers.ts'
import type { ChatKeeper, ServerTurn } from './chat-keeper.ts'

export interface DecisionSent {
  readonly chatId: string
  readonly approvalId: string
  readonly approved: boolean
  readonly reason?: string
  /** Arguments in place of those shown. */
  readonly args?: Record<string, unknown>
}

export type OutputSent = { readonly chatId: string; readonly toolCallId: string } & (
  | { readonly output: unknown }
  | { readonly errorText: string }
)

/** What a transport offers to the keeper of a chat, besides what every transport has. */
export interface AnswerChannel {
  readonly answers: Answers
  /** Whether answers of a chat travel beside the stream that it reads now. */
  isReading(chatId: string): boolean
  decide(decision: DecisionSent): Promise<string>
  toolOutput(output: OutputSent): Promise<void>
  divert(chatId: string): ServerTurn | undefined
  inject(chatId: string, chunk: Chunk): void
  keep(chatId: string, keeper: ChatKeeper): () => void
}
