import { Mic } from 'lucide-react'

import { useLabels } from '../i18n/language.tsx'
import { type Mode, useMode } from '../settings/mode.ts'
import { VoiceBar } from './voice-bar.tsx'

interface VoiceSlotProps {
  readonly mode: Mode
  readonly chatId: string
}

/** Where one speaks, in the mode that can be spoken with; in the others, the way to it. */
export function VoiceSlot({ mode, chatId }: VoiceSlotProps) {
  const { voice } = useLabels().shell
  const [, choose] = useMode()
  // Another chat is another talk.
  if (mode === 'live') return <VoiceBar key={chatId} chatId={chatId} />
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={voice.needsLive}
      title={voice.needsLive}
      onClick={() => choose('live')}
    >
      <Mic aria-hidden="true" />
    </button>
  )
}
