import { useState } from 'react'

import { useAdkLabels } from '../provider.tsx'

interface CancelDecisionProps {
  /** Returns false if the decision may have arrived. */
  readonly onCancelDecision?: (() => boolean) | undefined
  /** Whether a decision waits that was not sent. */
  readonly isWaiting: boolean
}

/** Takes back a decision that waits for the connection. */
export function CancelDecision({ onCancelDecision, isWaiting }: CancelDecisionProps) {
  const { approval } = useAdkLabels()
  const [isRefused, setRefused] = useState(false)
  if (!isWaiting || !onCancelDecision) return null
  if (isRefused) return <p className="adk-status">{approval.maybeSent}</p>
  return (
    <div className="adk-actions">
      <button
        type="button"
        className="adk-button adk-outlined"
        onClick={() => setRefused(!onCancelDecision())}
      >
        {approval.cancelDecision}
      </button>
    </div>
  )
}
