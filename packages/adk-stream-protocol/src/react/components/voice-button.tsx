import { type RefObject, useEffect, useRef } from 'react'

import { useAdkLabels } from '../provider.tsx'
import type { VoiceSource } from '../hooks/use-voice.ts'
import { usePushToTalk, useVoice } from '../hooks/use-voice.ts'
import type { VoiceLabels } from '../labels/labels.ts'

/** The part of a `Voice` state that the button shows. */
export interface VoiceView {
  readonly state: keyof VoiceLabels['states']
  readonly mode: 'hands-free' | 'push-to-talk'
  readonly problem?: ProblemView
}

type ProblemView =
  | { readonly code: Exclude<keyof VoiceLabels['problems'], `lost-${string}`> }
  | { readonly code: 'lost'; readonly what: 'microphone' | 'connection' }

interface LevelSource {
  /** Subscribes to audio levels from 0 to 1. Returns a function that unsubscribes. */
  onLevel(
    listener: (level: { readonly input: number; readonly output: number }) => void,
  ): () => void
}

/** The part of a `Voice` that the button uses. */
export interface VoiceControls extends VoiceSource<VoiceView>, LevelSource {
  start(): Promise<void>
  stop(): void
  press(): void
  release(): void
  setMode(mode: 'hands-free' | 'push-to-talk'): void
}

/**
 * A round button for hands-free voice, with a ring for the audio level, and a button for push-to-talk (pointer, Space or Enter).
 * Shows the state and any problem.
 */
export function VoiceButton({ voice }: { readonly voice: VoiceControls }) {
  const { voice: labels } = useAdkLabels()
  const view = useVoice(voice)
  const { held, handlers } = usePushToTalk(voice)
  const rootRef = useRef<HTMLDivElement>(null)
  const isOn = view.state !== 'off'
  const isHandsFree = isOn && view.mode === 'hands-free'
  const toggle = (): void => {
    if (isHandsFree) return voice.stop()
    voice.setMode('hands-free')
    // The state of the voice reports the result.
    void voice.start()
  }
  return (
    <div className="adk-voice" data-state={view.state} ref={rootRef}>
      <button
        type="button"
        className="adk-voice-main"
        aria-pressed={isHandsFree}
        aria-label={labels.handsFree}
        title={labels.handsFree}
        onClick={toggle}
      >
        {view.state === 'model-speaking' ? <SpeakerIcon /> : <MicrophoneIcon />}
      </button>
      <span className={view.problem ? 'adk-failure' : 'adk-voice-state'} role="status">
        {describe(view, labels)}
      </span>
      {/* Hands-free voice is on already. */}
      {!isHandsFree && (
        <button
          type="button"
          className="adk-button adk-outlined adk-voice-button"
          aria-pressed={held}
          {...handlers}
        >
          {labels.hold}
        </button>
      )}
      {isOn && (
        <button
          type="button"
          className="adk-button adk-voice-end"
          aria-label={labels.end}
          onClick={() => voice.stop()}
        >
          {labels.endShort}
        </button>
      )}
      {isOn && <LevelMeter source={voice} rootRef={rootRef} />}
    </div>
  )
}

function describe({ state, problem }: VoiceView, labels: VoiceLabels): string {
  if (!problem) return labels.states[state]
  if (problem.code !== 'lost') return labels.problems[problem.code]
  return labels.problems[problem.what === 'microphone' ? 'lost-microphone' : 'lost-connection']
}

interface LevelMeterProps {
  readonly source: LevelSource
  /** Gets the level as `--adk-level`, for the ring. */
  readonly rootRef: RefObject<HTMLElement | null>
}

/** Shows the audio level. Updates the elements directly, 50 times a second, without a render. */
function LevelMeter({ source, rootRef }: LevelMeterProps) {
  const { voice } = useAdkLabels()
  const ref = useRef<HTMLMeterElement>(null)
  useEffect(() => {
    const show = (level: number): void => {
      if (ref.current) ref.current.value = level
      rootRef.current?.style.setProperty('--adk-level', level.toFixed(2))
    }
    const leave = source.onLevel(({ input, output }) => show(Math.max(input, output)))
    const root = rootRef.current
    return () => {
      leave()
      root?.style.removeProperty('--adk-level')
    }
  }, [source, rootRef])
  return <meter className="adk-hidden" ref={ref} min={0} max={1} aria-label={voice.level} />
}

function MicrophoneIcon() {
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true">
      <rect x="9" y="3" width="6" height="11" rx="3" />
      <path d="M5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3" />
    </svg>
  )
}

function SpeakerIcon() {
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true">
      <path d="M4 10v4M8 7v10M12 4v16M16 7v10M20 10v4" />
    </svg>
  )
}
