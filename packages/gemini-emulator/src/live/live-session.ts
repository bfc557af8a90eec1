import type { Content, FunctionCall, FunctionResponse } from '../wire/content.ts'
import type { Setup } from '../wire/live-messages.ts'
import type { Frame } from './frame-log.ts'
import type { Closing } from './connection.ts'

/** One Live connection, for a test to look at and to meddle with. */
export interface LiveSession {
  readonly id: string
  /** The path and query of the connection, without the key. */
  readonly path: string
  /** As the client sent it; nothing until it came. */
  readonly setup: Setup | undefined
  /** The last frames of the client, oldest first; media are replaced by their size. */
  readonly received: readonly Frame[]
  /** The last frames of the server, oldest first; media are replaced by their size. */
  readonly sent: readonly Frame[]
  /** What the model remembers of the conversation. */
  readonly history: readonly Content[]
  /** Calls that wait for an answer. */
  readonly pendingCalls: readonly FunctionCall[]
  /** Answers to calls that were not open: unknown, cancelled, or answered before. */
  readonly ignoredResponses: readonly FunctionResponse[]
  /** Whether the model is in the middle of a turn. */
  readonly speaking: boolean
  readonly closed: Closing | undefined
  /** Resolves when the connection has ended. */
  readonly ended: Promise<Closing>
  /** Sends a server message as it stands. */
  send(message: Frame): void
  /** Sends a frame that need not be a message, nor JSON; it is not among those `sent`. */
  sendText(text: string): void
  /** What a barge-in does: the model falls silent, unanswered blocking calls are taken back. */
  interrupt(): void
  close(code: number, reason: string): void
  /** Cuts the TCP connection with a reset. */
  drop(): void
  /** Announces the end of the connection and closes it after that time. */
  goAway(timeLeftMs: number): void
  /** The first matching frame of the client, past or future; rejects when the session ends or the signal aborts. */
  waitFor(predicate: (frame: Frame) => boolean, signal?: AbortSignal): Promise<Frame>
  /** The same for frames of the server. */
  waitForSent(predicate: (frame: Frame) => boolean, signal?: AbortSignal): Promise<Frame>
}
