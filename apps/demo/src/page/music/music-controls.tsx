import { IconButton, Segmented, Setting, useValue } from 'adk-stream-protocol-studio/page'
import { Music, VolumeX } from 'lucide-react'

import { useDemoLabels } from '../i18n/use-demo-labels.ts'
import { music } from './music.ts'

/** A mute button. Shown while music plays. */
export function MusicControl() {
  const labels = useDemoLabels().music
  const playing = useValue(music)
  if (playing.state === 'silent') return null
  const { track, muted } = playing
  return (
    <IconButton
      icon={muted ? VolumeX : Music}
      label={labels.mute(track)}
      aria-pressed={muted}
      onClick={() => music.setMuted(!muted)}
    />
  )
}

/** Selects the music. */
export function MusicChoice() {
  const labels = useDemoLabels().music
  const playing = useValue(music)
  return (
    <Setting name={labels.label}>
      <Segmented
        label={labels.label}
        options={[
          { value: 'off', name: labels.off },
          { value: '1', name: labels.track(1) },
          { value: '2', name: labels.track(2) },
        ]}
        value={playing.state === 'silent' ? 'off' : `${playing.track}`}
        onChoose={chooseMusic}
      />
    </Setting>
  )
}

function chooseMusic(value: 'off' | '1' | '2'): void {
  if (value === 'off') music.stop()
  else void music.play(value === '1' ? 1 : 2)
}
