import type { AdkUIMessage, Pace } from 'adk-stream-protocol/client'
import { StepForward, X } from 'lucide-react'
import { type ReactNode, useId, useState } from 'react'

import { useInspectorLabels } from './use-inspector-labels.ts'
import { useReplay } from './use-replay.ts'

interface ReplayViewProps {
  readonly recording: string
  /** Renders messages like the conversation. */
  readonly renderMessages: (messages: readonly AdkUIMessage[]) => ReactNode
  readonly onClose: () => void
}

const PACES: readonly Pace[] = ['real-time', 'fast', 'step']

/** Replays a recorded conversation with the same components. */
export function ReplayView({ recording, renderMessages, onClose }: ReplayViewProps) {
  const labels = useInspectorLabels()
  const [pace, setPace] = useState<Pace>('real-time')
  const paceId = useId()
  return (
    <section className="replay" aria-label={labels.replay}>
      <header className="replay-bar">
        <strong>{labels.replay}</strong>
        <label htmlFor={paceId}>{labels.pace}</label>
        <select
          id={paceId}
          value={pace}
          onChange={({ target }) => setPace(PACES.find((each) => each === target.value) ?? pace)}
        >
          {PACES.map((each) => (
            <option key={each} value={each}>
              {labels.paces[each]}
            </option>
          ))}
        </select>
        <button type="button" onClick={onClose}>
          <X size={16} aria-hidden="true" />
          {labels.endReplay}
        </button>
      </header>
      <Playing key={pace} recording={recording} pace={pace} renderMessages={renderMessages} />
    </section>
  )
}

interface PlayingProps extends Omit<ReplayViewProps, 'onClose'> {
  readonly pace: Pace
}

function Playing({ recording, pace, renderMessages }: PlayingProps) {
  const labels = useInspectorLabels()
  const { messages, isOver, step } = useReplay(recording, pace)
  return (
    <>
      <p className="replay-state">
        <span role="status">{isOver ? labels.over : labels.playing}</span>
        {pace === 'step' && (
          <button type="button" onClick={step} disabled={isOver}>
            <StepForward size={16} aria-hidden="true" />
            {labels.step}
          </button>
        )}
      </p>
      {renderMessages(messages)}
    </>
  )
}
