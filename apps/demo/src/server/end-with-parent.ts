/** How often the parent process is looked for, in ms. */
const PARENT_CHECK_MS = 500

/** Handles the end of npm, or of the parent process of a cluster, as SIGTERM. */
export function endWithParent(): void {
  process.on('disconnect', end)
  // npm runs a script in a shell. A shell that does not replace itself by the command ends on a signal and does not pass it on.
  if (process.env['npm_lifecycle_event'] !== undefined) onParentExit()
}

function end(): void {
  process.emit('SIGTERM')
}

function onParentExit(): void {
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
