import type { Chunk } from '../../protocol/chunk.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { StoreError } from '../../store/store-error.ts'

/**
 * The turn that a chunk belongs to.
 *
 * @inline
 */
export interface TurnInfo {
  readonly chatId: string
  readonly principalId: string
  readonly messageId: string
}

/** The application's observers. An observer that throws is reported and does not affect the turn (OB1). */
export interface Observers {
  readonly onError: (error: unknown) => void
  readonly onChunk: ((chunk: Chunk, turn: TurnInfo) => void) | undefined
}

/** Returns observers that never throw. An asynchronous observer that rejects would end the process otherwise. */
export function toObservers({ onError = logError, onChunk }: Partial<Observers>): Observers {
  const report = (error: unknown): void => {
    try {
      catchRejection(onError(error), ignore)
    } catch {
      // An error of the error handler cannot be reported anywhere.
    }
  }
  const observeChunk = (chunk: Chunk, turn: TurnInfo): void => {
    try {
      catchRejection(onChunk?.(chunk, turn), report)
    } catch (error) {
      report(error)
    }
  }
  return { onError: report, onChunk: onChunk && observeChunk }
}

/** Handles the rejection of what an observer returned. TypeScript accepts asynchronous functions as observers. */
export function catchRejection(returned: unknown, onRejected: (error: unknown) => void): void {
  if (returned instanceof Promise) returned.catch(onRejected)
}

function ignore(): void {}

/** The default of `onError`: writes the error to the terminal, so that a missing API key is noticed. */
function logError(error: unknown): void {
  // oxlint-disable-next-line no-console -- an application that wants its errors elsewhere passes `onError`
  console.error(`[adk-stream-protocol] ${describe(error)}`)
}

/** How many nested causes, and how many lines of a stack, are printed. */
const MAX_CAUSES = 4
const MAX_STACK_LINES = 6

/** Describes the cause of an error rather than the message for clients. Prints a stack unless the message says what to do. */
function describe(error: unknown, causes = MAX_CAUSES): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  const hasCause = cause !== undefined && causes > 0
  if (error instanceof ProtocolError)
    return hasCause ? `${error.code}: ${describe(cause, causes - 1)}` : error.message
  const isSentence = error instanceof StoreError
  const text = isSentence ? error.message : shorten(error.stack ?? error.message)
  return hasCause ? `${text}\n  cause: ${describe(cause, causes - 1)}` : text
}

function shorten(stack: string): string {
  return stack.split('\n').slice(0, MAX_STACK_LINES).join('\n')
}
