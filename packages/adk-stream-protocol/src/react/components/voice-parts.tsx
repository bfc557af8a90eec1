import { type RefObject, useEffect, useRef } from 'react'

import { useAdkLabels } from '../provider.tsx'
import type { VoiceLabels } from '../labels/labels.ts'

/** Why a voice does not work. */
export type VoiceProblemView =
  | { readonly code: Exclude<keyof VoiceLabels['problems'], `lost-${string}`> }
  | { readonly code: 'lost'; readonly what: 'microphone' | 'connection' }

export interface LevelSource {
  /** Subscribes to audio levels from 0 to 1. Returns a function that unsubscribes. */
  onLevel(
    listener: (level: { readonly input: number; readonly output: number }) => void,
  ): () => void
}

/** Returns what to do about a problem of a voice. */
export function describeVoiceProblem(problem: VoiceProblemView, labels: VoiceLabels): string {
  if (problem.code !== 'lost') return labels.problems[problem.code]
  return labels.problems[problem.what === 'microphone' ? 'lost-microphone' : 'lost-connection']
}

interface LevelMeterProps {
  readonly source: LevelSource
  /** Gets the level as `--adk-level`, for the ring. */
  readonly rootRef: RefObject<HTMLElement | null>
}

/** Shows the audio level. Updates the elements directly, 50 times a second, without a render. */
export function LevelMeter({ source, rootRef }: LevelMeterProps) {
  const { voice } = useAdkLabels()
  const ref = useRef<HTMLMeterElement>(null)
  useEffect(() => {
    const show = (level: number): void => {
      if (ref.current) ref.current.value = level
      rootRef.current?.style.setProperty('--adk-level', level.toFixed(2))
    }
    const leave = source.onLevel(({ input, output }) => show(Math.max(input, output)))
    const root = rootRef.current
    return () => {
      leave()
      root?.style.removeProperty('--adk-level')
    }
  }, [source, rootRef])
  return <meter className="adk-hidden" ref={ref} min={0} max={1} aria-label={voice.level} />
}

const ICONS = {
  microphone: 'M9 6a3 3 0 0 1 6 0v5a3 3 0 0 1-6 0zM5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3',
  muted:
    'M9 8.5V11a3 3 0 0 0 4.8 2.4M15 11V6a3 3 0 0 0-5.6-1.5M5.5 11.5a6.5 6.5 0 0 0 10 5.5M18.5 11.5a6.5 6.5 0 0 1-.9 3.3M12 18v3M4 3l16 18',
  speaker: 'M4 10v4M8 7v10M12 4v16M16 7v10M20 10v4',
  dots: 'M6 12h.01M12 12h.01M18 12h.01',
  stop: 'M7 7h10v10H7z',
} as const

/** A line drawing for a control of the voice. The label of the control names it. */
export function VoiceIcon({ name }: { readonly name: keyof typeof ICONS }) {
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true" data-icon={name}>
      <path d={ICONS[name]} />
    </svg>
  )
}
