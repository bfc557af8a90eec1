import type { AdkApi } from 'adk-stream-protocol/client'
import { useEffect, useState } from 'react'

import { ScrolledText } from './scrolled-text.tsx'
import { useInspectorLabels } from './use-inspector-labels.ts'

/** Where recorded model calls are read. */
export interface ModelCallSource {
  readonly api: Pick<AdkApi, 'readModelCall'>
  readonly chatId: string
}

interface ModelCallViewProps {
  readonly source: ModelCallSource
  readonly callId: string
}

type Loaded = Awaited<ReturnType<AdkApi['readModelCall']>> | 'failed'

/** What the model was asked and replied. It is read when it is opened. */
export function ModelCallView({ source, callId }: ModelCallViewProps) {
  const { modelCall: labels } = useInspectorLabels()
  const { api, chatId } = source
  const [isOpen, setOpen] = useState(false)
  const [loaded, setLoaded] = useState<Loaded>()
  useEffect(() => {
    if (!isOpen) return undefined
    let isCurrent = true
    const load = async (): Promise<void> => {
      const call = await api.readModelCall(chatId, callId).catch(() => 'failed' as const)
      if (isCurrent) setLoaded(call)
    }
    void load()
    return () => {
      isCurrent = false
    }
  }, [api, chatId, callId, isOpen])
  return (
    <details className="model-call" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{labels.title}</summary>
      {loaded === undefined && <p role="status">{labels.loading}</p>}
      {loaded === 'failed' && <p role="alert">{labels.failed}</p>}
      {typeof loaded === 'object' && (
        <>
          <h4>{labels.request}</h4>
          <ScrolledText>{JSON.stringify(loaded.request, undefined, 2)}</ScrolledText>
          <h4>{labels.reply}</h4>
          <ScrolledText>{JSON.stringify(loaded.replies, undefined, 2)}</ScrolledText>
          <p className="model-call-note">{labels.note}</p>
        </>
      )}
    </details>
  )
}
