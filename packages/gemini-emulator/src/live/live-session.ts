import type { Content, FunctionCall, FunctionResponse } from '../wire/content.ts'
import type { Setup } from '../wire/live-messages.ts'
import type { CloseInfo } from './connection.ts'
import type { Frame } from './frame-log.ts'

/** A Live connection that a test can inspect and control. */
export interface LiveSession {
  readonly id: string
  /** The path and query of the connection, without the key. */
  readonly path: string
  /** The setup of the client. `undefined` until it arrives. */
  readonly setup: Setup | undefined
  /** The latest frames of the client, oldest first. Media are replaced by their size. */
  readonly received: readonly Frame[]
  /** The latest frames of the server, oldest first. Media are replaced by their size. */
  readonly sent: readonly Frame[]
  /** The conversation so far. */
  readonly history: readonly Content[]
  /** Calls without a response. */
  readonly pendingCalls: readonly FunctionCall[]
  /** Responses to calls that were unknown, cancelled or completed. */
  readonly ignoredResponses: readonly FunctionResponse[]
  /** Whether a turn is running. */
  readonly speaking: boolean
  readonly closed: CloseInfo | undefined
  /** Resolves when the connection has ended. */
  readonly ended: Promise<CloseInfo>
  /** Sends a server message unchanged. */
  send(message: Frame): void
  /** Sends any text, which need not be JSON. It is not added to `sent`. */
  sendText(text: string): void
  /** Has the effect of a barge-in: interrupts the model and cancels pending blocking calls. */
  interrupt(): void
  close(code: number, reason: string): void
  /** Resets the TCP connection. */
  drop(): void
  /** Sends `goAway` and closes the connection after that time. */
  goAway(timeLeftMs: number): void
  /** Returns the first matching frame of the client, recorded or future. Rejects when the session ends or the signal aborts. */
  waitFor(predicate: (frame: Frame) => boolean, signal?: AbortSignal): Promise<Frame>
  /** Like `waitFor`, for frames of the server. */
  waitForSent(predicate: (frame: Frame) => boolean, signal?: AbortSignal): Promise<Frame>
}
