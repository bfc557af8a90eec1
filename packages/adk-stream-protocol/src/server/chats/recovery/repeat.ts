/**
 * Repeats work that never rejects, one run at a time. While a run takes longer than the interval, repeats `meanwhile`. Returns a function
 * that stops, and waits for what is running.
 */
export function repeat(
  intervalMs: number,
  work: () => Promise<void>,
  meanwhile?: () => Promise<void>,
): () => Promise<void> {
  let running: Promise<void> | undefined
  let other: Promise<void> | undefined
  const timer = setInterval(() => {
    if (running) other = meanwhile?.()
    running ??= work().finally(() => {
      running = undefined
    })
  }, intervalMs)
  timer.unref()
  return async () => {
    clearInterval(timer)
    await running
    await other
  }
}
