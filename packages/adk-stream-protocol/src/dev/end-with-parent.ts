/** How often the parent process is looked for, in ms. */
const PARENT_CHECK_MS = 500

/**
 * Calls `end` when npm ends, if npm has started this process. npm runs a script in a shell, and a shell that does not replace itself by
 * the command ends on a signal without passing it on.
 */
export function endWithNpm(end: () => void): void {
  if (process.env['npm_lifecycle_event'] === undefined) return
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent && isAlive(parent)) return
    clearInterval(timer)
    end()
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
