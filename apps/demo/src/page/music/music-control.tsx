import { Music, VolumeX } from 'lucide-react'
import { useSyncExternalStore } from 'react'

import { useLabels } from '../i18n/language.tsx'
import { music } from '../music/music.ts'

/** A mute button. Shown while music plays. */
export function MusicControl() {
  const labels = useLabels()
  const playing = useSyncExternalStore(music.subscribe, music.read)
  if (playing.state === 'silent') return null
  const { track, muted } = playing
  return (
    <button
      type="button"
      className="icon-button"
      aria-pressed={muted}
      aria-label={labels.music.mute(track)}
      title={labels.music.mute(track)}
      onClick={() => music.setMuted(!muted)}
    >
      {muted ? <VolumeX aria-hidden="true" /> : <Music aria-hidden="true" />}
    </button>
  )
}
