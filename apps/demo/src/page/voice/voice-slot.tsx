import { Mic } from 'lucide-react'

import { useLabels } from '../i18n/language.tsx'
import { type Mode, useMode } from '../settings/mode.ts'
import { VoiceBar } from './voice-bar.tsx'

interface VoiceSlotProps {
  readonly mode: Mode
  readonly chatId: string
}

/** The voice controls in the live mode. In other modes, a button that switches to it. */
export function VoiceSlot({ mode, chatId }: VoiceSlotProps) {
  const { voice } = useLabels().shell
  const [, choose] = useMode()
  // Each chat has its own voice.
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
