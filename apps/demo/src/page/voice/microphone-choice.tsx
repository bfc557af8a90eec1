import {
  listMicrophones,
  type MicrophoneChoice as Choice,
  type Voice,
} from 'adk-stream-protocol/voice'
import { ChevronDown, Mic } from 'lucide-react'
import { useEffect, useState } from 'react'

import { useLabels } from '../i18n/language.tsx'

/** Selects the microphone. Shows nothing if there is only one. Browsers name microphones after access is granted. */
export function MicrophoneChoice({ voice }: { readonly voice: Voice }) {
  const { voice: labels } = useLabels().shell
  const [choices, setChoices] = useState<readonly Choice[]>([])
  useEffect(() => {
    let isCancelled = false
    const update = () =>
      void listMicrophones().then(
        (found) => isCancelled || setChoices(found),
        // The current microphone stays on. There is no other one to choose.
        () => undefined,
      )
    update()
    navigator.mediaDevices.addEventListener('devicechange', update)
    return () => {
      isCancelled = true
      navigator.mediaDevices.removeEventListener('devicechange', update)
    }
  }, [])
  if (choices.length < 2) return null
  return (
    <span className="microphone">
      {/* Where there is no room for the name, the icon lies below the transparent selection. */}
      <Mic aria-hidden="true" />
      <ChevronDown aria-hidden="true" />
      <select
        aria-label={labels.microphone}
        title={labels.microphone}
        onChange={({ target }) => void voice.setDevice(target.value)}
      >
        {choices.map(({ deviceId, label }, index) => (
          <option key={deviceId} value={deviceId}>
            {label || `${labels.microphone} ${index + 1}`}
          </option>
        ))}
      </select>
    </span>
  )
}
