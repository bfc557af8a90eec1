import type { Act } from '../mind.ts'
import type { FunctionCall, Part } from '../wire/content.ts'
import type { ServerContent } from '../wire/live-messages.ts'
import { playedFailure } from '../wire/google-error.ts'
import { splitPieces } from '../wire/pieces.ts'
import { CloseCode } from './close-code.ts'
import { concatPcm, encodePcm } from './pcm.ts'

/** One thing to do on the way through a turn; a turn is a sequence of these. */
export type Step =
  /** Sends content. `said` is what the conversation will remember of it, `samples` how much of it was sound. */
  | {
      readonly type: 'show'
      readonly content: ServerContent
      readonly said?: Part
      readonly samples?: number
    }
  /** Sends one `toolCall` for each group. `last`: the turn makes no further calls. */
  | {
      readonly type: 'call'
      readonly groups: readonly (readonly FunctionCall[])[]
      readonly last: boolean
    }
  | { readonly type: 'complete'; readonly reason?: string }
  | Control

/** Acts that need no rendering. */
type Control = Extract<
  Act,
  { type: 'pause' | 'wait' | 'cancel' | 'close' | 'drop' | 'go-away' | 'raw' }
>

/** How the session wants to be answered. */
export interface Delivery {
  readonly model: string
  readonly modality: 'TEXT' | 'AUDIO'
  readonly transcribe: boolean
  readonly includeThoughts: boolean
  readonly paceMs: number
  readonly realTime: boolean
  readonly isBlocking: (functionName: string) => boolean
  readonly newId: () => string
  /** The sound of each piece of a text. */
  readonly speak: (pieces: readonly string[]) => readonly Int16Array[]
}

export const OUTPUT_RATE = 24_000

// Gemini sends audio in small frames; 80 ms keeps barge-in crisp and the overhead of base64 and JSON low.
const FRAME_SAMPLES = (OUTPUT_RATE * 80) / 1000

/** Renders the acts of a mind for one session, piece by piece, as they are asked for. */
export function* planTurn(acts: readonly Act[], delivery: Delivery): Generator<Step> {
  const timing = { paceMs: delivery.paceMs, spokenMs: 0, pausedMs: 0 }
  const ordered = putSpeechFirst(acts, delivery)
  let reason: string | undefined
  for (const [index, act] of ordered.entries()) {
    if (isSpeech(act)) {
      yield* renderSpeech(act, delivery, timing)
    } else if (act.type === 'call') {
      const opensGroup = ordered[index - 1]?.type !== 'call'
      if (opensGroup) yield renderCalls(ordered, index, delivery)
    } else if (act.type === 'finish' || act.type === 'block') {
      reason = act.reason
    } else {
      yield act.type === 'fail' ? renderFailure(act, delivery) : act
    }
  }
  // A turn that ends in blocking calls is completed by the conversation, not by the plan.
  if (ordered.some((act) => isBlockingCall(act, delivery))) return
  yield* renderEnd(reason, delivery, timing)
}

function* renderEnd(
  reason: string | undefined,
  delivery: Delivery,
  timing: Timing,
): Generator<Step> {
  yield { type: 'show', content: { generationComplete: true } }
  const playbackMs = timing.spokenMs - timing.pausedMs
  if (delivery.realTime && playbackMs > 0) yield { type: 'pause', ms: playbackMs }
  yield reason === undefined ? { type: 'complete' } : { type: 'complete', reason }
}

type SpeechAct = Extract<Act, { type: 'say' | 'think' | 'image' | 'code' | 'ground' | 'pace' }>

const SPEECH: ReadonlySet<Act['type']> = new Set([
  'say',
  'think',
  'image',
  'code',
  'ground',
  'pace',
] satisfies SpeechAct['type'][])

function isSpeech(act: Act): act is SpeechAct {
  return SPEECH.has(act.type)
}

function isBlockingCall(act: Act, delivery: Delivery): boolean {
  return act.type === 'call' && delivery.isBlocking(act.name)
}

/** A blocking call silences the model, so whatever the same answer says beside it is said before it. */
function putSpeechFirst(acts: readonly Act[], delivery: Delivery): readonly Act[] {
  const first = acts.findIndex((act) => isBlockingCall(act, delivery))
  if (first === -1) return acts
  const rest = acts.slice(first)
  return [
    ...acts.slice(0, first),
    ...rest.filter(isSpeech),
    ...rest.filter((act) => !isSpeech(act)),
  ]
}

interface Timing {
  paceMs: number
  spokenMs: number
  pausedMs: number
}

function* renderSpeech(act: SpeechAct, delivery: Delivery, timing: Timing): Generator<Step> {
  if (act.type === 'pace') {
    timing.paceMs = act.ms
    return
  }
  for (const step of showSpeech(act, delivery)) {
    yield step
    timing.spokenMs += ((step.samples ?? 0) / OUTPUT_RATE) * 1000
    // Words of a transcript come with their sound, not after it.
    if (timing.paceMs === 0 || !step.content.modelTurn) continue
    timing.pausedMs += timing.paceMs
    yield { type: 'pause', ms: timing.paceMs }
  }
}

type Show = Extract<Step, { type: 'show' }>

function* showSpeech(
  act: Exclude<SpeechAct, { type: 'pace' }>,
  delivery: Delivery,
): Generator<Show> {
  switch (act.type) {
    case 'say':
      if (delivery.modality === 'AUDIO') yield* showVoice(act, delivery)
      else for (const text of pieces(act)) yield showPart({ text })
      return
    case 'think':
      if (!delivery.includeThoughts) return
      for (const text of pieces(act)) yield showPart({ text, thought: true })
      return
    case 'image':
      yield showPart({ inlineData: { mimeType: act.mimeType, data: act.data } })
      return
    case 'code':
      yield showPart({ executableCode: { language: act.language, code: act.code } })
      yield showPart({ codeExecutionResult: { outcome: act.outcome, output: act.output } })
      return
    case 'ground': {
      const groundingChunks = act.sources.map(({ uri, title }) => ({ web: { uri, title } }))
      yield { type: 'show', content: { groundingMetadata: { groundingChunks } } }
    }
  }
}

const pieces = (act: { readonly text: string; readonly pieces?: readonly string[] }) =>
  act.pieces ?? splitPieces(act.text)

function showPart(part: Part): Show {
  return { type: 'show', content: { modelTurn: { role: 'model', parts: [part] } }, said: part }
}

/** Sound frame by frame; each word is transcribed, and remembered, right after the frame in which it begins. */
function* showVoice(act: Extract<Act, { type: 'say' }>, delivery: Delivery): Generator<Show> {
  const waiting: { readonly text: string; readonly beginsAt: number }[] = []
  const sounds = delivery.speak(pieces(act))
  let length = 0
  for (const [index, text] of pieces(act).entries()) {
    waiting.push({ text, beginsAt: length })
    length += sounds[index]?.length ?? 0
  }
  const samples = concatPcm(sounds)
  for (let at = 0; at < length; at += FRAME_SAMPLES) {
    const frame = samples.subarray(at, at + FRAME_SAMPLES)
    yield showSound(frame)
    const sent = at + frame.length
    const begun = waiting.findIndex((word) => word.beginsAt >= sent)
    for (const { text } of waiting.splice(0, begun === -1 ? waiting.length : begun)) {
      yield showWord(text, delivery)
    }
  }
  // What has no sound is not spoken, but it belongs to the text.
  for (const { text } of waiting) yield showWord(text, delivery)
}

function showWord(text: string, delivery: Delivery): Show {
  const content = delivery.transcribe ? { outputTranscription: { text } } : {}
  return { type: 'show', content, said: { text } }
}

function showSound(frame: Int16Array): Show {
  const inlineData = { mimeType: `audio/pcm;rate=${OUTPUT_RATE}`, data: encodePcm(frame) }
  const content = { modelTurn: { role: 'model' as const, parts: [{ inlineData }] } }
  return { type: 'show', content, samples: frame.length }
}

/** The call at `index` and its neighbours, in as many messages as they want. */
function renderCalls(acts: readonly Act[], index: number, delivery: Delivery): Step {
  const groups: FunctionCall[][] = []
  let open: FunctionCall[] | undefined
  let end = index
  for (let act = acts[end]; act?.type === 'call'; act = acts[++end]) {
    const call = {
      id: act.id ?? `function-call-${delivery.newId()}`,
      name: act.name,
      args: act.args,
    }
    if (act.separate || !open) groups.push((open = [call]))
    else open.push(call)
    if (act.separate) open = undefined
  }
  return { type: 'call', groups, last: !acts.slice(end).some((act) => act.type === 'call') }
}

function renderFailure(act: Extract<Act, { type: 'fail' }>, delivery: Delivery): Step {
  const { message } = playedFailure(act, delivery.model)
  return { type: 'close', code: FAILURE_CODES[act.status] ?? CloseCode.Internal, reason: message }
}

const FAILURE_CODES: Readonly<Record<number, number>> = {
  400: CloseCode.InvalidArgument,
  401: CloseCode.NotFound,
  403: CloseCode.NotFound,
  404: CloseCode.NotFound,
}
