import { useAdkTexts } from '../provider.tsx'
import { useHoldToTalk } from '../hooks/use-hold-to-talk.ts'
import { useVoice, type VoiceSource } from '../hooks/use-voice.ts'
import type { VoiceTexts } from '../texts/texts.ts'
import { LevelMeter, type LevelSource } from './level-meter.tsx'

/** As far as the button shows it, the state of a `Voice`. */
export interface VoiceView {
  readonly state: keyof VoiceTexts['states']
  readonly mode: 'hands-free' | 'push-to-talk'
  readonly problem?: ProblemView
}

type ProblemView =
  | { readonly code: Exclude<keyof VoiceTexts['problems'], `lost-${string}`> }
  | { readonly code: 'lost'; readonly what: 'microphone' | 'connection' }

/** A `Voice`, or whatever does as it does. */
export interface VoiceControls extends VoiceSource<VoiceView>, LevelSource {
  start(): Promise<void>
  stop(): void
  press(): void
  release(): void
  setMode(mode: 'hands-free' | 'push-to-talk'): void
}

/** Talks while it is held, by pointer or by key, or hands-free until it is ended; says what is wrong and what to do. */
export function VoiceButton({ voice }: { readonly voice: VoiceControls }) {
  const { voice: texts } = useAdkTexts()
  const view = useVoice(voice)
  const { held, handlers } = useHoldToTalk(voice)
  const isOn = view.state !== 'off'
  const isHandsFree = isOn && view.mode === 'hands-free'
  const toggle = (): void => {
    if (isHandsFree) return voice.stop()
    voice.setMode('hands-free')
    // What comes of it is told by the state.
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
        {texts.hold}
      </button>
      <button
        type="button"
        className="adk-button adk-outlined adk-voice-button"
        aria-pressed={isHandsFree}
        onClick={toggle}
      >
        {texts.handsFree}
      </button>
      {isOn && (
        <button type="button" className="adk-button adk-quiet" onClick={() => voice.stop()}>
          {texts.end}
        </button>
      )}
      {isOn && <LevelMeter source={voice} />}
      <span className={view.problem ? 'adk-failure' : 'adk-voice-state'} role="status">
        {describe(view, texts)}
      </span>
    </div>
  )
}

function describe({ state, problem }: VoiceView, texts: VoiceTexts): string {
  if (!problem) return texts.states[state]
  if (problem.code !== 'lost') return texts.problems[problem.code]
  return texts.problems[problem.what === 'microphone' ? 'lost-microphone' : 'lost-connection']
}
