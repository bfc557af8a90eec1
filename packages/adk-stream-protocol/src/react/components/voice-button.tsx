import { useEffect, useRef } from 'react'

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

/** Buttons for push-to-talk (pointer, Space or Enter) and hands-free voice, with the state, the audio level and any problem. */
export function VoiceButton({ voice }: { readonly voice: VoiceControls }) {
  const { voice: labels } = useAdkLabels()
  const view = useVoice(voice)
  const { held, handlers } = usePushToTalk(voice)
  const isOn = view.state !== 'off'
  const isHandsFree = isOn && view.mode === 'hands-free'
  const toggle = (): void => {
    if (isHandsFree) return voice.stop()
    voice.setMode('hands-free')
    // The state of the voice reports the result.
    void voice.start()
  }
  return (
    <div className="adk-voice" data-state={view.state}>
      <button
        type="button"
        className="adk-button adk-outlined adk-voice-button"
        aria-pressed={held}
        disabled={isHandsFree}
        {...handlers}
      >
        {labels.hold}
      </button>
      <button
        type="button"
        className="adk-button adk-outlined adk-voice-button"
        aria-pressed={isHandsFree}
        onClick={toggle}
      >
        {labels.handsFree}
      </button>
      {isOn && (
        <button type="button" className="adk-button adk-quiet" onClick={() => voice.stop()}>
          {labels.end}
        </button>
      )}
      {isOn && <LevelMeter source={voice} />}
      <span className={view.problem ? 'adk-failure' : 'adk-voice-state'} role="status">
        {describe(view, labels)}
      </span>
    </div>
  )
}

function describe({ state, problem }: VoiceView, labels: VoiceLabels): string {
  if (!problem) return labels.states[state]
  if (problem.code !== 'lost') return labels.problems[problem.code]
  return labels.problems[problem.what === 'microphone' ? 'lost-microphone' : 'lost-connection']
}

/** Shows the audio level. Updates the element directly, 50 times a second, without a render. */
function LevelMeter({ source }: { readonly source: LevelSource }) {
  const { voice } = useAdkLabels()
  const ref = useRef<HTMLMeterElement>(null)
  useEffect(
    () =>
      source.onLevel(({ input, output }) => {
        if (ref.current) ref.current.value = Math.max(input, output)
      }),
    [source],
  )
  return <meter className="adk-level" ref={ref} min={0} max={1} aria-label={voice.level} />
}
