import { useSyncExternalStore } from 'react'

import { useLabels } from '../i18n/language.tsx'
import { lastInstance } from '../wire/instance.ts'

/** Shows which of several server instances responded last. Shows nothing if the server has no name. */
export function InstanceMark() {
  const { instance } = useLabels().shell
  const name = useSyncExternalStore(lastInstance.subscribe, lastInstance.read)
  return name === undefined ? null : (
    <p className="instance" title={instance.explanation}>
      {instance.name(name)}
    </p>
  )
}
