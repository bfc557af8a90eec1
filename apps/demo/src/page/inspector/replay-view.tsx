import type { AdkUIMessage, Pace } from 'adk-stream-protocol/client'
import { StepForward, X } from 'lucide-react'
import { type ReactNode, useId, useState } from 'react'

import { useInspectorTexts } from './texts.ts'
import { useReplay } from './use-replay.ts'

interface ReplayViewProps {
  readonly recording: string
  /** Shows messages as the conversation does. */
  readonly renderMessages: (messages: readonly AdkUIMessage[]) => ReactNode
  readonly onClose: () => void
}

const PACES: readonly Pace[] = ['real-time', 'fast', 'step']

/** A recorded conversation, played through the components that showed it. */
export function ReplayView({ recording, renderMessages, onClose }: ReplayViewProps) {
  const texts = useInspectorTexts()
  const [pace, setPace] = useState<Pace>('real-time')
  const paceId = useId()
  return (
    <section className="replay" aria-label={texts.replay}>
      <header className="replay-bar">
        <strong>{texts.replay}</strong>
        <label htmlFor={paceId}>{texts.pace}</label>
        <select
          id={paceId}
          value={pace}
          onChange={({ target }) => setPace(PACES.find((each) => each === target.value) ?? pace)}
        >
          {PACES.map((each) => (
            <option key={each} value={each}>
              {texts.paces[each]}
            </option>
          ))}
        </select>
        <button type="button" onClick={onClose}>
          <X size={16} aria-hidden="true" />
          {texts.endReplay}
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
  const texts = useInspectorTexts()
  const { messages, isOver, step } = useReplay(recording, pace)
  return (
    <>
      <p className="replay-state">
        <span role="status">{isOver ? texts.over : texts.playing}</span>
        {pace === 'step' && (
          <button type="button" onClick={step} disabled={isOver}>
            <StepForward size={16} aria-hidden="true" />
            {texts.step}
          </button>
        )}
      </p>
      {renderMessages(messages)}
    </>
  )
}
