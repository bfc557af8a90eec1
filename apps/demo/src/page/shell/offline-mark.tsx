import { WifiOff } from 'lucide-react'
import { useSyncExternalStore } from 'react'

import { useLabels } from '../i18n/language.tsx'

/** Shows that the browser is offline. */
export function OfflineMark() {
  const { offline } = useLabels().shell
  const online = useSyncExternalStore(subscribe, () => navigator.onLine)
  return (
    <p className="offline" role="status">
      {!online && (
        <>
          <WifiOff aria-hidden="true" />
          {offline}
        </>
      )}
    </p>
  )
}

function subscribe(listener: () => void): () => void {
  window.addEventListener('online', listener)
  window.addEventListener('offline', listener)
  return () => {
    window.removeEventListener('online', listener)
    window.removeEventListener('offline', listener)
  }
}
