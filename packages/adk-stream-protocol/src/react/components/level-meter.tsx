import { useEffect, useRef } from 'react'

import { useAdkTexts } from '../provider.tsx'

export interface LevelSource {
  /** Levels go from 0 to 1. */
  onLevel(
    listener: (level: { readonly input: number; readonly output: number }) => void,
  ): () => void
}

/** How loud it is. Fifty times a second it moves, and renders nothing. */
export function LevelMeter({ source }: { readonly source: LevelSource }) {
  const { voice } = useAdkTexts()
  const ref = useRef<HTMLMeterElement>(null)
  useEffect(
    () =>
      source.onLevel(({ input, output }) => {
        if (ref.current) ref.current.value = Math.max(input, output)
      }),
    [source],
  )
  return <meter className="adk-level" ref={ref} min={0} max={1} aria-label={voice.level} />
}
