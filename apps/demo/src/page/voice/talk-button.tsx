import { Mic } from 'lucide-react'

import { useLabels } from '../i18n/language.tsx'
import { useMode } from '../settings/mode.ts'

/** Switches to the mode with voice. */
export function TalkButton() {
  const { voice: labels } = useLabels().shell
  const [, choose] = useMode()
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
