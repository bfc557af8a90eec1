/** The time in which further signals count as the first one, in ms: the terminal sends Ctrl+C to npm and to the demo, and npm passes it on. */
const SAME_SIGNAL_MS = 1_000

/** How often the parent process is looked for, in ms. */
const PARENT_CHECK_MS = 500

/**
 * Closes the demo on SIGTERM, on SIGINT, and when npm or the parent process of a cluster has ended, and then ends the process. A later
 * signal ends it immediately.
 */
export function stopOnSignals(close: () => Promise<void>): void {
  let stoppingSince: number | undefined
  const stop = (): void => {
    if (stoppingSince === undefined) {
      stoppingSince = performance.now()
      void close()
        .catch((cause: unknown) => console.error(cause))
        .then(() => process.exit(0))
    } else if (performance.now() - stoppingSince >= SAME_SIGNAL_MS) process.exit(1)
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  process.on('disconnect', stop)
  // npm runs a script in a shell. A shell that does not replace itself by the command ends on a signal and does not pass it on.
  if (process.env['npm_lifecycle_event'] !== undefined) onParentExit(stop)
}

function onParentExit(stop: () => void): void {
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent && isAlive(parent)) return
    clearInterval(timer)
    stop()
  }, PARENT_CHECK_MS)
  timer.unref()
}

/** Windows keeps the id of a parent process that has ended. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === 'EPERM'
  }
}
