import { useEffect, useState } from 'react'

/** Whole seconds until a time in ms since 1970; 0 when it is over, nothing where there is none. */
export function useCountdown(deadline: number | undefined): number | undefined {
  const [now, setNow] = useState(Date.now)
  const seconds = deadline === undefined ? undefined : secondsUntil(deadline, now)
  const isRunning = seconds !== undefined && seconds > 0
  useEffect(() => {
    if (!isRunning) return
    const look = (): void => setNow(Date.now())
    // The time that was known may be from before there was a deadline.
    look()
    const timer = setInterval(look, 1000)
    return () => clearInterval(timer)
  }, [isRunning])
  return seconds
}

function secondsUntil(deadline: number, now: number): number {
  return Math.max(0, Math.ceil((deadline - now) / 1000))
}
