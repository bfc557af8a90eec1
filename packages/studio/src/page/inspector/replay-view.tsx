import { type AdkUIMessage, playRecording, type Playback } from 'adk-stream-protocol/client'
import { Pause, Play, StepForward, X } from 'lucide-react'
import { type ReactNode, useId, useState, useEffect, useRef } from 'react'

import { useInspectorLabels } from './parts.tsx'

interface ReplayViewProps {
  readonly recording: string
  /** Renders messages like the conversation, at the recorded time. */
  readonly renderFrame: (frame: ReplayFrame) => ReactNode
  readonly onClose: () => void
}

const PACES = ['real-time', 'fast', 'step'] as const
type Pace = (typeof PACES)[number]

/** Replays a recorded conversation with the same components. */
export function ReplayView({ recording, renderFrame, onClose }: ReplayViewProps) {
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
      <Playing key={pace} recording={recording} pace={pace} renderFrame={renderFrame} />
    </section>
  )
}

interface PlayingProps extends Omit<ReplayViewProps, 'onClose'> {
  readonly pace: Pace
}

function Playing({ recording, pace, renderFrame }: PlayingProps) {
  const labels = useInspectorLabels()
  const { isOver, isPaused, step, seek, setPaused, ...frame } = useReplay(recording, pace)
  const { position, length } = frame
  const state = isPaused ? labels.paused : labels.playing
  return (
    <>
      <div className="replay-state">
        {pace === 'real-time' && (
          <button type="button" onClick={() => setPaused(!isPaused)} disabled={isOver}>
            {isPaused ? (
              <Play size={16} aria-hidden="true" />
            ) : (
              <Pause size={16} aria-hidden="true" />
            )}
            {isPaused ? labels.continue : labels.pause}
          </button>
        )}
        {pace === 'step' && (
          <button type="button" onClick={step} disabled={isOver}>
            <StepForward size={16} aria-hidden="true" />
            {labels.step}
          </button>
        )}
        <input
          type="range"
          min={0}
          max={length}
          value={position}
          aria-label={labels.position}
          aria-valuetext={labels.progress(position, length)}
          onChange={({ target }) => seek(Number(target.value))}
        />
        <span className="replay-progress" aria-hidden="true">
          {labels.progress(position, length)}
        </span>
        <span role="status">{isOver ? labels.over : state}</span>
      </div>
      {renderFrame(frame)}
    </>
  )
}

/** What a replay shows at its position. */
export interface ReplayFrame {
  readonly messages: readonly AdkUIMessage[]
  readonly position: number
  readonly length: number
  /** The recorded time, in ms since 1970. Undefined if the recording does not contain it. */
  readonly time: number | undefined
  readonly votes: ReadonlyMap<string, { readonly given: number; readonly voted: boolean }>
}

interface Replay extends ReplayFrame {
  readonly isOver: boolean
  readonly isPaused: boolean
  readonly step: () => void
  readonly seek: (position: number) => void
  readonly setPaused: (isPaused: boolean) => void
}

const EMPTY: ReplayFrame = {
  messages: [],
  position: 0,
  length: 0,
  time: undefined,
  votes: new Map(),
}

/** Plays a recording from the start. Use a `key` to mount the component again for another recording or speed. */
function useReplay(recording: string, pace: Pace): Replay {
  const [frame, setFrame] = useState(EMPTY)
  const [isPaused, setPaused] = useState(false)
  const playing = useRef<Playback>(undefined)
  useEffect(() => {
    const target: { messages: AdkUIMessage[] } = { messages: [] }
    let isCancelled = false
    const playback = playRecording(target, recording, {
      pace,
      onProgress: (progress) => {
        if (!isCancelled) setFrame({ ...progress, messages: target.messages })
      },
    })
    playing.current = playback
    return () => {
      isCancelled = true
      playback.stop()
    }
  }, [recording, pace])
  return {
    ...frame,
    isOver: frame.length > 0 && frame.position === frame.length,
    isPaused,
    step: () => playing.current?.step(),
    seek: (position) => playing.current?.seek(position),
    setPaused: (paused) => {
      setPaused(paused)
      if (paused) playing.current?.pause()
      else playing.current?.resume()
    },
  }
}
