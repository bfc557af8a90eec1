import type { VoiceProblem } from './audio-devices.ts'

/**
 * `hands-free`: the microphone is always on. `push-to-talk`: it is on while the user holds the button.
 *
 * @inline
 */
export type VoiceMode = 'hands-free' | 'push-to-talk'

/** The state of a voice, for display. A snapshot: the object stays the same until something changes. */
export type VoiceState = InactiveVoice | AskingVoice | ActiveVoice

/** A voice that is off. */
interface InactiveVoice extends VoiceSettings {
  readonly state: 'off'
  /** Why the voice could not start, or was ended. */
  readonly problem?: VoiceProblem
}

/** A voice that starts: the browser asks the user for access to the microphone. */
interface AskingVoice extends VoiceSettings {
  readonly state: 'asking'
}

/** A voice that is on. */
interface ActiveVoice extends VoiceSettings {
  /** Who is speaking. */
  readonly state: 'listening' | 'person-speaking' | 'model-speaking'
  /** Whether the user holds the push-to-talk button. */
  readonly held: boolean
  /** False while there is no connection. The last seconds of speech are sent when it is back. */
  readonly connected: boolean
  /** Whether the model works on a reply, also while it is silent. */
  readonly replying: boolean
  /** The transcript of the current words. */
  readonly transcript: VoiceTranscript
  /** A problem that does not end the conversation, such as another microphone that could not be opened. */
  readonly problem?: VoiceProblem
}

/** What the user has set, in every state of a voice. */
export interface VoiceSettings {
  readonly mode: VoiceMode
  readonly muted: boolean
}

/**
 * The current words of both sides.
 *
 * @inline
 */
interface VoiceTranscript {
  readonly person: string
  /** Whether the messages of the chat contain the person's words. Until then, a page shows them itself. */
  readonly isInChat: boolean
  readonly model: string
}

export type VoiceEvent =
  | { readonly type: 'start' }
  | { readonly type: 'opened' }
  | { readonly type: 'stop'; readonly problem?: VoiceProblem }
  | { readonly type: 'trouble'; readonly problem: VoiceProblem | undefined }
  | { readonly type: 'mode'; readonly mode: VoiceMode }
  | { readonly type: 'muted'; readonly muted: boolean }
  | { readonly type: 'held'; readonly held: boolean }
  | { readonly type: 'connected'; readonly connected: boolean }
  | { readonly type: 'speaking'; readonly who: 'person' | 'model'; readonly speaking: boolean }
  | { readonly type: 'person-said'; readonly text: string; readonly final: boolean }
  /** A message contains what the person has said so far. */
  | { readonly type: 'person-in-chat' }
  | { readonly type: 'model-said'; readonly text: string }
  | { readonly type: 'answer-start' }
  /** A reply continues after a tool, or has ended. */
  | { readonly type: 'replying'; readonly replying: boolean }

type Phase =
  | { readonly name: 'off'; readonly problem?: VoiceProblem }
  | { readonly name: 'asking' }
  | OnPhase

interface OnPhase {
  readonly name: 'on'
  readonly held: boolean
  readonly connected: boolean
  readonly replying: boolean
  readonly personSpeaks: boolean
  readonly modelSpeaks: boolean
  readonly transcript: VoiceTranscript
  /** Whether the person's transcript is final. The next words start a new one. */
  readonly whole: boolean
  readonly problem?: VoiceProblem
}

/** The full state of a voice. `toVoiceState` returns the part that a page needs. */
export interface VoiceModel extends VoiceSettings {
  readonly phase: Phase
}

export const startModel = (settings: VoiceSettings): VoiceModel => ({
  ...settings,
  phase: { name: 'off' },
})

const FRESH: OnPhase = {
  name: 'on',
  held: false,
  connected: true,
  replying: false,
  personSpeaks: false,
  modelSpeaks: false,
  transcript: { person: '', isInChat: true, model: '' },
  whole: false,
}

/** Returns the next state. Returns the same object if nothing changes. */
export function nextVoice(model: VoiceModel, event: VoiceEvent): VoiceModel {
  const settings = nextSettings(model, event)
  const phase = nextPhase(model.phase, event)
  const same = settings === model && phase === model.phase
  return same ? model : { mode: settings.mode, muted: settings.muted, phase }
}

export function toVoiceState({ mode, muted, phase }: VoiceModel): VoiceState {
  switch (phase.name) {
    case 'off':
      return { state: 'off', mode, muted, ...(phase.problem && { problem: phase.problem }) }
    case 'asking':
      return { state: 'asking', mode, muted }
    case 'on': {
      const { held, connected, replying, transcript, problem } = phase
      return {
        state: whoSpeaks(phase, { mode, muted }),
        mode,
        muted,
        held,
        connected,
        replying,
        transcript,
        ...(problem && { problem }),
      }
    }
  }
}

/** While the model speaks, noise is not taken for the person: the server reports interruptions. */
function whoSpeaks(phase: OnPhase, { mode, muted }: VoiceSettings): ActiveVoice['state'] {
  if (phase.held) return 'person-speaking'
  if (phase.modelSpeaks) return 'model-speaking'
  const isHeard = mode === 'hands-free' && !muted
  return isHeard && phase.personSpeaks ? 'person-speaking' : 'listening'
}

function nextSettings(settings: VoiceSettings, event: VoiceEvent): VoiceSettings {
  if (event.type === 'mode') return changed(settings, { mode: event.mode })
  if (event.type === 'muted') return changed(settings, { muted: event.muted })
  return settings
}

function nextPhase(phase: Phase, event: VoiceEvent): Phase {
  switch (event.type) {
    case 'start':
      return phase.name === 'off' ? { name: 'asking' } : phase
    case 'opened':
      return phase.name === 'asking' ? FRESH : phase
    case 'stop':
      if (phase.name === 'off') return phase
      return { name: 'off', ...(event.problem && { problem: event.problem }) }
    case 'mode':
    case 'muted':
      return phase.name === 'on' ? changed(phase, { held: false }) : phase
    case 'trouble':
    case 'held':
    case 'connected':
    case 'speaking':
    case 'person-said':
    case 'person-in-chat':
    case 'model-said':
    case 'answer-start':
    case 'replying':
      return phase.name === 'on' ? nextTalk(phase, event) : phase
  }
}

type TalkEvent = Exclude<VoiceEvent, { type: 'start' | 'opened' | 'stop' | 'mode' | 'muted' }>

function nextTalk(phase: OnPhase, event: TalkEvent): OnPhase {
  switch (event.type) {
    case 'trouble': {
      const { problem: _solved, ...rest } = phase
      if (!event.problem) return phase.problem ? rest : phase
      return { ...phase, problem: event.problem }
    }
    case 'held':
      return changed(phase, { held: event.held })
    case 'connected':
      // The rest of the reply is reported again over the next connection.
      return changed(phase, event.connected ? { connected: true } : LOST)
    case 'speaking':
      return changed(
        phase,
        event.who === 'person' ? { personSpeaks: event.speaking } : { modelSpeaks: event.speaking },
      )
    case 'person-said':
      return hear(phase, event)
    case 'person-in-chat':
      return phase.transcript.isInChat
        ? phase
        : { ...phase, transcript: { ...phase.transcript, isInChat: true } }
    case 'model-said':
      return say(phase, phase.transcript.model + event.text)
    case 'answer-start':
      return changed(say(phase, ''), { replying: true })
    case 'replying':
      return changed(phase, { replying: event.replying })
  }
}

const LOST = { connected: false, replying: false } as const

/** Words arrive in pieces. The final piece repeats all of them. */
function hear(phase: OnPhase, { text, final }: { text: string; final: boolean }): OnPhase {
  const { person, isInChat, model } = phase.transcript
  if (final && text === '') return changed(phase, { whole: true })
  const said = final || phase.whole ? text : person + text
  const isNew = !final && (phase.whole || person === '')
  return {
    ...phase,
    transcript: { person: said, isInChat: !isNew && isInChat, model },
    whole: final,
  }
}

function say(phase: OnPhase, model: string): OnPhase {
  if (model === phase.transcript.model) return phase
  return { ...phase, transcript: { ...phase.transcript, model } }
}

/** Returns the same object if nothing changes. */
function changed<Value extends object>(value: Value, change: Partial<Value>): Value {
  const isSame = Object.entries(change).every(([key, next]) => value[key as keyof Value] === next)
  return isSame ? value : { ...value, ...change }
}
