import { useEffect, useState } from 'react'

import { formatMs } from './format-ms.ts'
import { type InspectorLabels, useInspectorLabels } from './labels.ts'
import type { Waiting } from './find-blocker.ts'

/** Says in a sentence what the conversation waits for. */
export function WaitingNote({ waiting }: { readonly waiting: Waiting | undefined }) {
  const labels = useInspectorLabels()
  const now = useNow(waiting !== undefined && dueAt(waiting) !== undefined)
  return (
    <p className="waiting-note" data-for={waiting?.for ?? 'you'}>
      <span className="waiting-dot" aria-hidden="true" />
      {describe(waiting, now, labels)}
    </p>
  )
}

function describe(
  waiting: Waiting | undefined,
  now: number,
  { waitsFor }: InspectorLabels,
): string {
  if (!waiting) return waitsFor.you
  const due = dueAt(waiting)
  // Whole seconds: it ticks once a second.
  const left =
    due === undefined ? undefined : formatMs(Math.max(0, Math.ceil((due - now) / 1000)) * 1000)
  switch (waiting.for) {
    case 'connection':
      return waitsFor.connection(left)
    case 'decision':
      return waitsFor.decision(waiting.toolName, left)
    case 'tool':
      return waitsFor.tool(waiting.toolName)
    case 'model':
      return waitsFor.model
  }
}

function dueAt(waiting: Waiting): number | undefined {
  if (waiting.for === 'connection') return waiting.retryAt
  return waiting.for === 'decision' ? waiting.deadline : undefined
}

/** The time, once a second while somebody needs it. */
function useNow(isNeeded: boolean): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (!isNeeded) return undefined
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [isNeeded])
  return now
}
