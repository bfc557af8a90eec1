import { useEffect, useState } from 'react'

import { useTexts } from '../i18n/language.tsx'

interface CountdownProps {
  /** In ms since 1970. */
  readonly deadline: number
  readonly onOver: () => void
}

/** The time that is left. It renders itself every second and nothing around it. */
export function Countdown({ deadline, onOver }: CountdownProps) {
  const texts = useTexts()
  const [seconds, setSeconds] = useState(() => secondsUntil(deadline))
  useEffect(() => {
    const timer = setInterval(() => setSeconds(secondsUntil(deadline)), 1000)
    return () => clearInterval(timer)
  }, [deadline])
  const over = seconds === 0
  useEffect(() => {
    if (over) onOver()
    // Once, when the time is over; not whenever the parent makes another function.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [over])
  const spoken = SPOKEN_AT.findLast((moment) => seconds <= moment)
  return (
    <>
      {/* A timer is not a live region by itself: who listens would hear nothing else. */}
      <span
        className="countdown"
        role="timer"
        aria-label={texts.approval.timeLeft}
        data-urgent={seconds <= 60}
      >
        {format(seconds)}
      </span>
      <span className="visually-hidden" role="status">
        {spoken !== undefined && !over && texts.approval.secondsLeft(spoken)}
      </span>
    </>
  )
}

const SPOKEN_AT = [60, 10]

function secondsUntil(deadline: number): number {
  return Math.max(0, Math.ceil((deadline - Date.now()) / 1000))
}

function format(seconds: number): string {
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor(seconds / 60) % 60
  const rest = two(seconds % 60)
  return hours > 0 ? `${hours}:${two(minutes)}:${rest}` : `${minutes}:${rest}`
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}
