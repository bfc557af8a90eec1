import { useSyncExternalStore } from 'react'

import { useTexts } from '../i18n/language.tsx'
import { music } from '../music/music.ts'

/** What plays, and a way to silence it; nothing until something plays. */
export function MusicControl() {
  const texts = useTexts()
  const playing = useSyncExternalStore(music.subscribe, music.read)
  if (playing.state === 'silent') return null
  const { track, muted } = playing
  return (
    <button
      type="button"
      className="quiet icon-button"
      aria-pressed={muted}
      aria-label={texts.music.mute(track)}
      onClick={() => music.setMuted(!muted)}
    >
      <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden="true">
        <path d="M6 12.5V3.5l7-1.5v9M6 12.5a2 1.6 0 1 1-4 0 2 1.6 0 0 1 4 0Zm7-1.5a2 1.6 0 1 1-4 0 2 1.6 0 0 1 4 0Z" />
        {muted && <path d="m2 2 12 12" />}
      </svg>
      <span className="music-track" aria-hidden="true">
        {texts.music.track(track)}
      </span>
    </button>
  )
}
