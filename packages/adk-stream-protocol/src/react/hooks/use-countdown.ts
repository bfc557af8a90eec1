import { useEffect, useState } from 'react'

/** Returns the whole seconds until `deadline` (ms since 1970), updated every second: 0 after it, `undefined` without a deadline. */
export function useCountdown(deadline: number | undefined): number | undefined {
  const [now, setNow] = useState(Date.now)
  const seconds = deadline === undefined ? undefined : secondsUntil(deadline, now)
  const isRunning = seconds !== undefined && seconds > 0
  useEffect(() => {
    if (!isRunning) return
    const update = (): void => setNow(Date.now())
    // `now` may be older than the deadline itself.
    update()
    const timer = setInterval(update, 1000)
    return () => clearInterval(timer)
  }, [isRunning])
  return seconds
}

function secondsUntil(deadline: number, now: number): number {
  return Math.max(0, Math.ceil((deadline - now) / 1000))
}
