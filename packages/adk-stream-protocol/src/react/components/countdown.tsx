import { useEffect, useState } from 'react'

import { getServerTime } from '../../client/api/server-clock.ts'
import { useAdkLabels, useAdkSettings } from '../provider.tsx'

interface CountdownProps {
  /** In ms since 1970, by the clock of the server. */
  readonly deadline: number
  /** Called when the deadline passes by that clock, as far as it is known, and when a later deadline replaces it. */
  readonly onOverdue: (isOverdue: boolean) => void
}

/** Shows the time left to decide. Only this component renders every second. */
export function Countdown({ deadline, onOverdue }: CountdownProps) {
  const { approval } = useAdkLabels()
  const seconds = useCountdown(deadline, getServerTime) ?? 0
  const isOverdue = seconds === 0
  useEffect(() => {
    onOverdue(isOverdue)
    // Runs when `isOverdue` changes, not when the parent passes a new function.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [isOverdue])
  const announced = ANNOUNCED_AT.findLast((moment) => seconds <= moment)
  return (
    <>
      {/* A timer is not a live region: a screen reader would announce every second. */}
      <span
        className="adk-countdown"
        role="timer"
        aria-label={approval.timeLeft}
        data-urgent={seconds <= 60}
      >
        {format(seconds)}
      </span>
      <span className="adk-hidden" role="status">
        {announced !== undefined && !isOverdue && approval.secondsLeft(announced)}
      </span>
    </>
  )
}

const ANNOUNCED_AT = [60, 10]

function format(seconds: number): string {
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor(seconds / 60) % 60
  const rest = pad(seconds % 60)
  return hours > 0 ? `${hours}:${pad(minutes)}:${rest}` : `${minutes}:${rest}`
}

function pad(value: number): string {
  return String(value).padStart(2, '0')
}

/**
 * Returns the whole seconds until `deadline` (ms since 1970), updated every second: 0 after it, `undefined` without a deadline. `clock`
 * returns the current time; pass the same function at each render.
 */
export function useCountdown(
  deadline: number | undefined,
  clock: () => number = Date.now,
): number | undefined {
  const { time: fixed } = useAdkSettings()
  const [time, setNow] = useState(clock)
  const now = fixed ?? time
  const seconds = deadline === undefined ? undefined : secondsUntil(deadline, now)
  const isRunning = fixed === undefined && seconds !== undefined && seconds > 0
  useEffect(() => {
    if (!isRunning) return
    const update = (): void => setNow(clock())
    // `now` may be older than the deadline itself.
    update()
    const timer = setInterval(update, 1000)
    return () => clearInterval(timer)
  }, [isRunning, clock])
  return seconds
}

function secondsUntil(deadline: number, now: number): number {
  return Math.max(0, Math.ceil((deadline - now) / 1000))
}
