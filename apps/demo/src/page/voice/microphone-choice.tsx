import {
  listMicrophones,
  type MicrophoneChoice as Choice,
  type Voice,
} from 'adk-stream-protocol/voice'
import { useEffect, useState } from 'react'

import { useLabels } from '../i18n/language.tsx'

/** Which microphone is heard; nothing where there is but one. The browser names them once one is allowed. */
export function MicrophoneChoice({ voice }: { readonly voice: Voice }) {
  const { voice: labels } = useLabels().shell
  const [choices, setChoices] = useState<readonly Choice[]>([])
  useEffect(() => {
    let isLeft = false
    const look = () =>
      void listMicrophones().then(
        (found) => isLeft || setChoices(found),
        // The microphone that is on stays on; there is only no other to choose.
        () => undefined,
      )
    look()
    navigator.mediaDevices.addEventListener('devicechange', look)
    return () => {
      isLeft = true
      navigator.mediaDevices.removeEventListener('devicechange', look)
    }
  }, [])
  if (choices.length < 2) return null
  return (
    <select
      className="microphone"
      aria-label={labels.microphone}
      onChange={({ target }) => void voice.setDevice(target.value)}
    >
      {choices.map(({ deviceId, label }, index) => (
        <option key={deviceId} value={deviceId}>
          {label || `${labels.microphone} ${index + 1}`}
        </option>
      ))}
    </select>
  )
}
