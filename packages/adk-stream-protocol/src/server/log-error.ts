import { ProtocolError } from '../protocol/errors.ts'
import { StoreError } from '../store/store-error.ts'

/** Writes an error to the terminal: the default of `onError`, so that a missing API key does not go unnoticed. */
export function logError(error: unknown): void {
  // oxlint-disable-next-line no-console -- a host that wants its errors elsewhere passes `onError`
  console.error(`[adk-stream-protocol] ${describe(error)}`)
}

/** How many causes of causes, and how many lines of a stack, are printed. */
const MAX_CAUSES = 4
const MAX_STACK_LINES = 6

/** What really happened, before the sentence that a client was told; where it comes from, unless it says what to do by itself. */
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
