import { useEffect, useState } from 'react'

import { formatMs } from './format-ms.ts'
import { type InspectorLabels, useInspectorLabels } from './labels.ts'
import type { Blocker } from './find-blocker.ts'

/** Shows what the conversation is waiting for. */
export function WaitingNote({ waiting }: { readonly waiting: Blocker | undefined }) {
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
  waiting: Blocker | undefined,
  now: number,
  { waitsFor }: InspectorLabels,
): string {
  if (!waiting) return waitsFor.you
  const due = dueAt(waiting)
  // Whole seconds, because it updates once a second.
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

function dueAt(waiting: Blocker): number | undefined {
  if (waiting.for === 'connection') return waiting.retryAt
  return waiting.for === 'decision' ? waiting.deadline : undefined
}

/** Returns the current time, updated every second while it is needed. */
function useNow(isNeeded: boolean): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (!isNeeded) return undefined
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [isNeeded])
  return now
}
