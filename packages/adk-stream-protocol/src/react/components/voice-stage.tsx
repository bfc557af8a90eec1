import { type ReactNode, useCallback, useRef, type RefObject, useEffect } from 'react'

import type { AdkChat } from '../hooks/use-adk-chat.ts'
import { usePushToTalk, useVoice, type VoiceSource } from '../hooks/use-voice.ts'
import type { VoiceLabels } from '../labels/labels.ts'
import { useAdkLabels, useDescribeCall } from '../provider.tsx'
import { getArguments, getToolName } from '../reading/call.ts'
import { raiseShownSeverity } from '../reading/risk.ts'
import { LiteralText } from './call-details.tsx'
import { findUndecided, type UndecidedCall } from '../reading/approval.ts'
import { type DecidableChat, PinnedApproval } from './pinned-approval.tsx'
import { OutlinedButton } from './buttons.tsx'
import { returnFocus } from './focus.ts'

/** The part of a `Voice` state that the stage shows. */
export interface StageView {
  readonly state: keyof VoiceLabels['states']
  readonly mode: 'hands-free' | 'push-to-talk'
  readonly problem?: VoiceProblemView
  readonly muted?: boolean
  readonly connected?: boolean
  readonly replying?: boolean
  readonly transcript?: { readonly person: string; readonly model: string }
}

/** The part of a `Voice` that the stage uses. */
export interface StageVoice extends VoiceSource<StageView>, LevelSource {
  start(): Promise<void>
  stop(): void
  press(): void
  release(): void
  setMode(mode: 'hands-free' | 'push-to-talk'): void
  setMuted(muted: boolean): void
  interrupt(): void
}

/**
 * Props of `VoiceStage`.
 *
 * @inline
 */
export interface VoiceStageProps {
  readonly voice: StageVoice
  /** The result of `useAdkChat`. Without it, approvals are not shown. */
  readonly chat?: (DecidableChat & Pick<AdkChat, 'messages'>) | undefined
  /** Whether the words of both sides are shown as captions. Default true. */
  readonly captions?: boolean | undefined
  /** More controls, for example the choice of the microphone. */
  readonly children?: ReactNode
}

/**
 * The controls of a spoken conversation: a round button with a ring for the audio level, the state in words, captions, and the pending
 * approval if its card is out of view.
 */
export function VoiceStage({ voice, chat, captions = true, children }: VoiceStageProps) {
  const { voice: labels } = useAdkLabels()
  const view = useVoice(voice)
  const rootRef = useRef<HTMLElement>(null)
  const mainRef = useRef<HTMLButtonElement>(null)
  const focusMain = useCallback(() => mainRef.current?.focus(), [])
  const isOn = view.state !== 'off' && view.state !== 'asking'
  const undecided = isOn && chat ? findUndecided(chat) : []
  const [first] = undecided
  const phase = readStagePhase(view, first)
  return (
    <section className="adk-stage" data-state={phase} aria-label={labels.stage} ref={rootRef}>
      {first && chat && (
        <PinnedApproval
          key={first.approval.approvalId}
          {...{ undecided: first, count: undecided.length, chat }}
          onGone={focusMain}
        />
      )}
      {isOn && captions && <Captions {...view.transcript} />}
      <div className="adk-stage-controls">
        <div className="adk-stage-side">{children}</div>
        <MainButton voice={voice} view={view} phase={phase} ref={mainRef} />
        <StageState view={view} phase={phase} undecided={first} />
        <div className="adk-stage-side">
          <StageActions voice={voice} view={view} />
        </div>
      </div>
      {view.state !== 'off' && <LevelMeter source={voice} rootRef={rootRef} />}
    </section>
  )
}

type StagePhase = StageView['state'] | keyof VoiceLabels['stageStates']

/** Returns what the stage shows: who speaks, or else what is waited for. */
function readStagePhase(view: StageView, undecided: UndecidedCall | undefined): StagePhase {
  const { state, connected, replying, muted } = view
  if (connected === false) return 'connecting'
  if (state !== 'listening') return state
  if (undecided) return undecided.approval.kind === undefined ? 'approval' : 'answer'
  if (replying) return 'thinking'
  return muted ? 'muted' : state
}

interface PartProps {
  readonly voice: StageVoice
  readonly view: StageView
}

interface MainButtonProps extends PartProps {
  readonly phase: StagePhase
  readonly ref: React.Ref<HTMLButtonElement>
}

/** Starts hands-free voice. While it is on, mutes the microphone. */
function MainButton({ voice, view, phase, ref }: MainButtonProps) {
  const { voice: labels } = useAdkLabels()
  const isHandsFree = view.state !== 'off' && view.mode === 'hands-free'
  const isMuted = view.muted === true
  const muteLabel = isMuted ? labels.unmute : labels.mute
  const label = isHandsFree ? muteLabel : labels.handsFree
  const press = (): void => {
    if (isHandsFree) return voice.setMuted(!isMuted)
    voice.setMode('hands-free')
    // The state of the voice reports the result.
    void voice.start()
  }
  return (
    <button
      type="button"
      className="adk-stage-main"
      ref={ref}
      aria-label={label}
      title={label}
      onClick={press}
    >
      <VoiceIcon name={isHandsFree && isMuted ? 'muted' : (PHASE_ICONS[phase] ?? 'microphone')} />
    </button>
  )
}

const PHASE_ICONS: Partial<Record<StagePhase, 'speaker' | 'dots'>> = {
  'model-speaking': 'speaker',
  thinking: 'dots',
  connecting: 'dots',
}

interface StageStateProps {
  readonly view: StageView
  readonly phase: StagePhase
  readonly undecided: UndecidedCall | undefined
}

/** The state in words. It repeats what is to be approved, so that a person who listens hears it from a screen reader. */
function StageState({ view, phase, undecided }: StageStateProps) {
  const { voice: labels, approval } = useAdkLabels()
  const describe = useDescribeCall()
  const { problem } = view
  const asked = undecided && describeAsked(undecided, describe)
  const text =
    phase in labels.stageStates
      ? labels.stageStates[phase as keyof VoiceLabels['stageStates']]
      : labels.states[phase as StageView['state']]
  return (
    <p className={problem ? 'adk-failure' : 'adk-stage-state'} role="status">
      {problem ? describeVoiceProblem(problem, labels) : text}
      {!problem && phase === 'approval' && asked && (
        <span className="adk-stage-asked">
          {asked.action}
          {asked.severity === 'high' && ` · ${approval.severity.high}`}
        </span>
      )}
    </p>
  )
}

/** Returns what an undecided call would do, and its severity. */
function describeAsked(
  { call, approval }: UndecidedCall,
  describe: ReturnType<typeof useDescribeCall>,
) {
  const args = getArguments(call)
  const action = describe(getToolName(call), args, approval.preview?.headline)
  return { action, severity: raiseShownSeverity(approval, args, action).severity }
}

/** Push-to-talk, and the buttons that interrupt the model and end the conversation. */
function StageActions({ voice, view }: PartProps) {
  const { voice: labels } = useAdkLabels()
  const { held, handlers } = usePushToTalk(voice)
  const isOn = view.state !== 'off'
  const end = (): void => {
    voice.stop()
    // The next conversation starts with the microphone on.
    if (view.muted) voice.setMuted(false)
  }
  return (
    <>
      {!(isOn && view.mode === 'hands-free') && (
        <OutlinedButton
          className="adk-voice-button"
          aria-pressed={held}
          ref={returnFocus}
          {...handlers}
        >
          {labels.hold}
        </OutlinedButton>
      )}
      {view.state === 'model-speaking' && (
        <button
          type="button"
          className="adk-stage-icon"
          ref={returnFocus}
          aria-label={labels.interrupt}
          title={labels.interrupt}
          onClick={() => voice.interrupt()}
        >
          <VoiceIcon name="stop" />
        </button>
      )}
      {isOn && (
        <button
          type="button"
          className="adk-button adk-voice-end"
          ref={returnFocus}
          aria-label={labels.end}
          onClick={end}
        >
          {labels.endShort}
        </button>
      )}
    </>
  )
}

const CAPTION_LENGTH = 160

/** The end of what both sides say. Hidden from screen readers, because the conversation contains it too. */
function Captions({ person = '', model = '' }: Partial<NonNullable<StageView['transcript']>>) {
  const { message } = useAdkLabels()
  if (person === '' && model === '') return null
  return (
    <dl className="adk-captions" aria-hidden="true">
      {person !== '' && <Caption by="person" name={message.you} text={person} />}
      {model !== '' && <Caption by="model" name={message.assistant} text={model} />}
    </dl>
  )
}

interface CaptionProps {
  readonly by: 'person' | 'model'
  readonly name: string
  readonly text: string
}

function Caption({ by, name, text }: CaptionProps) {
  return (
    <div data-by={by}>
      <dt>{name}</dt>
      <LiteralText in="dd" text={shortenCaption(text)} />
    </div>
  )
}

/** Returns the end of a text that is being spoken. */
function shortenCaption(text: string): string {
  const words = text.trim()
  return words.length > CAPTION_LENGTH ? `…${words.slice(-CAPTION_LENGTH).trimStart()}` : words
}

/** Why a voice does not work. */
type VoiceProblemView =
  | { readonly code: Exclude<keyof VoiceLabels['problems'], `lost-${string}`> }
  | { readonly code: 'lost'; readonly what: 'microphone' | 'connection' }

interface LevelSource {
  /** Subscribes to audio levels from 0 to 1. Returns a function that unsubscribes. */
  onLevel(
    listener: (level: { readonly input: number; readonly output: number }) => void,
  ): () => void
}

/** Returns what to do about a problem of a voice. */
function describeVoiceProblem(problem: VoiceProblemView, labels: VoiceLabels): string {
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

const ICONS = {
  microphone: 'M9 6a3 3 0 0 1 6 0v5a3 3 0 0 1-6 0zM5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3',
  muted:
    'M9 8.5V11a3 3 0 0 0 4.8 2.4M15 11V6a3 3 0 0 0-5.6-1.5M5.5 11.5a6.5 6.5 0 0 0 10 5.5M18.5 11.5a6.5 6.5 0 0 1-.9 3.3M12 18v3M4 3l16 18',
  speaker: 'M4 10v4M8 7v10M12 4v16M16 7v10M20 10v4',
  dots: 'M6 12h.01M12 12h.01M18 12h.01',
  stop: 'M7 7h10v10H7z',
} as const

/** A line drawing for a control of the voice. The label of the control names it. */
function VoiceIcon({ name }: { readonly name: keyof typeof ICONS }) {
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true" data-icon={name}>
      <path d={ICONS[name]} />
    </svg>
  )
}
