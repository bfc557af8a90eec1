/** A part of a server process: a bridge, a store, an HTTP server. */
export interface Closable {
  /** Of an HTTP server, calls `onClosed` when the last response is sent. */
  readonly close: (onClosed?: () => void) => unknown
  /** Of an HTTP server. */
  readonly closeIdleConnections?: () => void
}

/**
 * The time in which further signals count as the first one, in ms. Ctrl+C reaches every process of a terminal, and npm passes on
 * the one that it receives as well.
 */
const SAME_SIGNAL_MS = 1_000

/** How long the last responses of an HTTP server may take, in ms. */
const LAST_RESPONSES_MS = 2_000

/** Closes the parts in order on SIGTERM or SIGINT, then ends the process. A later signal ends it at once. */
export function closeOnSignals(parts: readonly Closable[]): void {
  let closingSince: number | undefined
  const close = (): void => {
    if (closingSince === undefined) {
      closingSince = performance.now()
      // A part that cannot be closed ends the process as an unhandled rejection, which Node.js prints.
      void closeAll(parts).then(() => process.exit(0))
    } else if (performance.now() - closingSince >= SAME_SIGNAL_MS) process.exit(1)
  }
  process.on('SIGTERM', close)
  process.on('SIGINT', close)
}

async function closeAll(parts: readonly Closable[]): Promise<void> {
  for (const part of parts) await ('listening' in part ? closeServer(part) : part.close())
}

/** Waits until the last responses are sent. Node.js then keeps their connections, unless they are closed. */
async function closeServer(server: Closable): Promise<void> {
  const timers: NodeJS.Timeout[] = []
  await new Promise<void>((resolve) => {
    timers.push(
      setTimeout(resolve, LAST_RESPONSES_MS),
      setInterval(() => server.closeIdleConnections?.(), 50),
    )
    server.close(resolve)
  })
  for (const timer of timers) clearTimeout(timer)
}
