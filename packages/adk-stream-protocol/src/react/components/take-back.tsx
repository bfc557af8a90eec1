import { useState } from 'react'

import { useAdkLabels } from '../provider.tsx'

interface TakeBackProps {
  /** Returns false if the decision may have arrived. */
  readonly onTakeBack: () => boolean
}

/** Takes back a decision that waits for the connection. */
export function TakeBack({ onTakeBack }: TakeBackProps) {
  const { approval } = useAdkLabels()
  const [isRefused, setRefused] = useState(false)
  if (isRefused) return <p className="adk-status">{approval.maybeSent}</p>
  return (
    <div className="adk-actions">
      <button
        type="button"
        className="adk-button adk-outlined"
        onClick={() => setRefused(!onTakeBack())}
      >
        {approval.takeBack}
      </button>
    </div>
  )
}
