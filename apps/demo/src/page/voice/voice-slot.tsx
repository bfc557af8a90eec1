import type { Voice } from 'adk-stream-protocol/voice'
import { Mic } from 'lucide-react'

import { useLabels } from '../i18n/language.tsx'
import { useMode } from '../settings/mode.ts'
import { VoiceBar } from './voice-bar.tsx'

interface VoiceSlotProps {
  /** The voice of the chat. Undefined in modes without voice. */
  readonly voice: Voice | undefined
  /** How many approvals of the chat are pending. */
  readonly pending: number
}

/** The voice controls in the live mode. In other modes, a button that switches to it. */
export function VoiceSlot({ voice, pending }: VoiceSlotProps) {
  const { voice: labels } = useLabels().shell
  const [, choose] = useMode()
  if (voice) return <VoiceBar voice={voice} pending={pending} />
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={labels.needsLive}
      title={labels.needsLive}
      onClick={() => choose('live')}
    >
      <Mic aria-hidden="true" />
    </button>
  )
}
