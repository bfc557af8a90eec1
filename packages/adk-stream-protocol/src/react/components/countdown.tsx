import { useEffect } from 'react'

import { useCountdown } from '../hooks/use-countdown.ts'
import { useAdkTexts } from '../provider.tsx'

interface CountdownProps {
  /** In ms since 1970. */
  readonly deadline: number
  /** Told when the time is over by this clock, and when there is time again. */
  readonly onOver: (over: boolean) => void
}

/** The time that is left. It renders itself every second and nothing around it. */
export function Countdown({ deadline, onOver }: CountdownProps) {
  const { approval } = useAdkTexts()
  const seconds = useCountdown(deadline) ?? 0
  const isOver = seconds === 0
  useEffect(() => {
    onOver(isOver)
    // When it changes; not whenever the parent makes another function.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [isOver])
  const spoken = SPOKEN_AT.findLast((moment) => seconds <= moment)
  return (
    <>
      {/* A timer is not a live region by itself: who listens would hear nothing else. */}
      <span
        className="adk-countdown"
        role="timer"
        aria-label={approval.timeLeft}
        data-urgent={seconds <= 60}
      >
        {format(seconds)}
      </span>
      <span className="adk-hidden" role="status">
        {spoken !== undefined && !isOver && approval.secondsLeft(spoken)}
      </span>
    </>
  )
}

const SPOKEN_AT = [60, 10]

function format(seconds: number): string {
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor(seconds / 60) % 60
  const rest = pad(seconds % 60)
  return hours > 0 ? `${hours}:${pad(minutes)}:${rest}` : `${minutes}:${rest}`
}

function pad(value: number): string {
  return String(value).padStart(2, '0')
}
