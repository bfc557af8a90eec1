import type { Synthesize } from '../emulator-core.ts'
import type { Action } from '../responders/responder.ts'
import type { FunctionCall, Part } from '../wire/content.ts'
import { scriptedError } from '../wire/google-error.ts'
import type { ServerContent } from '../wire/live-messages.ts'
import { splitPieces } from '../wire/text.ts'
import { concatPcm, encodePcm, OUTPUT_RATE } from './audio.ts'
import { CloseCode } from './connection.ts'

/** One step of a turn. */
export type TurnStep =
  /** Sends content. `part` is its entry in the history, `samples` the length of its audio. `follows`: it belongs to the content before. */
  | {
      readonly type: 'content'
      readonly content: ServerContent
      readonly part?: Part
      readonly samples?: number
      readonly follows?: boolean
    }
  /** Sends one `toolCall` for each group. `last`: the turn has no further calls. */
  | {
      readonly type: 'call'
      readonly groups: readonly (readonly FunctionCall[])[]
      readonly last: boolean
    }
  | { readonly type: 'complete'; readonly reason?: string }
  /** Actions that are steps without any conversion. */
  | Extract<Action, { type: 'pause' | 'wait' | 'cancel' | 'close' | 'drop' | 'go-away' | 'raw' }>

/** The settings of a session that affect its turns. */
export interface TurnSettings {
  readonly model: string
  readonly modality: 'TEXT' | 'AUDIO'
  readonly transcribe: boolean
  readonly includeThoughts: boolean
  readonly paceMs: number
  readonly realTime: boolean
  readonly isBlocking: (functionName: string) => boolean
  readonly newId: () => string
  readonly synthesize: Synthesize
}

// Gemini sends audio in small frames. 80 ms allow a quick barge-in with little base64 and JSON overhead.
const FRAME_SAMPLES = (OUTPUT_RATE * 80) / 1000

/** Converts actions to the steps of a turn, lazily. */
export function* planTurn(actions: readonly Action[], settings: TurnSettings): Generator<TurnStep> {
  const timing = { paceMs: settings.paceMs, spokenMs: 0, pausedMs: 0 }
  const ordered = putContentFirst(actions, settings)
  let reason: string | undefined
  for (const [index, action] of ordered.entries()) {
    if (isContent(action)) {
      yield* planContent(action, settings, timing)
    } else if (action.type === 'call') {
      const isFirstOfGroup = ordered[index - 1]?.type !== 'call'
      if (isFirstOfGroup) yield planCalls(ordered, index, settings)
    } else if (action.type === 'finish' || action.type === 'block') {
      reason = action.reason
    } else {
      yield action.type === 'fail' ? planFailure(action, settings) : action
    }
  }
  // nextLive completes a turn that ends with blocking calls.
  if (ordered.some((action) => isBlockingCall(action, settings))) return
  yield* planEnd(reason, settings, timing)
}

function* planEnd(
  reason: string | undefined,
  settings: TurnSettings,
  timing: Timing,
): Generator<TurnStep> {
  yield { type: 'content', content: { generationComplete: true } }
  const playbackMs = timing.spokenMs - timing.pausedMs
  if (settings.realTime && playbackMs > 0) yield { type: 'pause', ms: playbackMs }
  yield reason === undefined ? { type: 'complete' } : { type: 'complete', reason }
}

type ContentAction = Extract<
  Action,
  { type: 'say' | 'think' | 'image' | 'code' | 'ground' | 'pace' }
>

const CONTENT_ACTIONS: ReadonlySet<Action['type']> = new Set([
  'say',
  'think',
  'image',
  'code',
  'ground',
  'pace',
] satisfies ContentAction['type'][])

function isContent(action: Action): action is ContentAction {
  return CONTENT_ACTIONS.has(action.type)
}

function isBlockingCall(action: Action, settings: TurnSettings): boolean {
  return action.type === 'call' && settings.isBlocking(action.name)
}

/** Moves content before the first blocking call, because the model is silent after it. */
function putContentFirst(actions: readonly Action[], settings: TurnSettings): readonly Action[] {
  const first = actions.findIndex((action) => isBlockingCall(action, settings))
  if (first === -1) return actions
  const rest = actions.slice(first)
  return [
    ...actions.slice(0, first),
    ...rest.filter(isContent),
    ...rest.filter((action) => !isContent(action)),
  ]
}

interface Timing {
  paceMs: number
  spokenMs: number
  pausedMs: number
}

function* planContent(
  action: ContentAction,
  settings: TurnSettings,
  timing: Timing,
): Generator<TurnStep> {
  if (action.type === 'pace') {
    timing.paceMs = action.ms
    return
  }
  for (const step of renderContent(action, settings)) {
    yield step
    timing.spokenMs += ((step.samples ?? 0) / OUTPUT_RATE) * 1000
    // The transcript of a word follows its audio without a pause.
    if (timing.paceMs === 0 || step.follows) continue
    timing.pausedMs += timing.paceMs
    yield { type: 'pause', ms: timing.paceMs }
  }
}

type ContentStep = Extract<TurnStep, { type: 'content' }>

function* renderContent(
  action: Exclude<ContentAction, { type: 'pace' }>,
  settings: TurnSettings,
): Generator<ContentStep> {
  switch (action.type) {
    case 'say':
      if (settings.modality === 'AUDIO') yield* renderSpeech(action, settings)
      else for (const text of toPieces(action)) yield renderPart({ text })
      return
    case 'think':
      if (!settings.includeThoughts) return
      for (const text of toPieces(action)) yield renderPart({ text, thought: true })
      return
    case 'image':
      yield renderPart({ inlineData: { mimeType: action.mimeType, data: action.data } })
      return
    case 'code':
      yield renderPart({ executableCode: { language: action.language, code: action.code } })
      yield renderPart({ codeExecutionResult: { outcome: action.outcome, output: action.output } })
      return
    case 'ground': {
      const groundingChunks = action.sources.map(({ uri, title }) => ({ web: { uri, title } }))
      yield { type: 'content', content: { groundingMetadata: { groundingChunks } }, follows: true }
    }
  }
}

const toPieces = (action: { readonly text: string; readonly pieces?: readonly string[] }) =>
  action.pieces ?? splitPieces(action.text)

function renderPart(part: Part): ContentStep {
  return { type: 'content', content: { modelTurn: { role: 'model', parts: [part] } }, part }
}

/** Sends audio frame by frame. The transcript of each word follows the frame in which the word starts. */
function* renderSpeech(
  action: Extract<Action, { type: 'say' }>,
  settings: TurnSettings,
): Generator<ContentStep> {
  const words: { readonly text: string; readonly startsAt: number }[] = []
  const pieces = toPieces(action)
  const audio = settings.synthesize(pieces)
  let length = 0
  for (const [index, text] of pieces.entries()) {
    words.push({ text, startsAt: length })
    length += audio[index]?.length ?? 0
  }
  const samples = concatPcm(audio)
  for (let at = 0; at < length; at += FRAME_SAMPLES) {
    const frame = samples.subarray(at, at + FRAME_SAMPLES)
    yield renderAudio(frame)
    const end = at + frame.length
    const next = words.findIndex((word) => word.startsAt >= end)
    for (const { text } of words.splice(0, next === -1 ? words.length : next)) {
      yield { ...renderTranscript(text, settings), follows: true }
    }
  }
  // Pieces without audio are still part of the text.
  for (const { text } of words) yield renderTranscript(text, settings)
}

function renderTranscript(text: string, settings: TurnSettings): ContentStep {
  const content = settings.transcribe ? { outputTranscription: { text } } : {}
  return { type: 'content', content, part: { text } }
}

function renderAudio(frame: Int16Array): ContentStep {
  const inlineData = { mimeType: `audio/pcm;rate=${OUTPUT_RATE}`, data: encodePcm(frame) }
  const content = { modelTurn: { role: 'model' as const, parts: [{ inlineData }] } }
  return { type: 'content', content, samples: frame.length }
}

/** Groups the call at `index` and the calls that follow it by message. */
function planCalls(actions: readonly Action[], index: number, settings: TurnSettings): TurnStep {
  const groups: FunctionCall[][] = []
  let group: FunctionCall[] | undefined
  let end = index
  for (let action = actions[end]; action?.type === 'call'; action = actions[++end]) {
    const call = {
      id: action.id ?? `function-call-${settings.newId()}`,
      name: action.name,
      args: action.args,
    }
    if (action.separate || !group) groups.push((group = [call]))
    else group.push(call)
    if (action.separate) group = undefined
  }
  return { type: 'call', groups, last: !actions.slice(end).some(({ type }) => type === 'call') }
}

function planFailure(action: Extract<Action, { type: 'fail' }>, settings: TurnSettings): TurnStep {
  const { message } = scriptedError(action, settings.model)
  return {
    type: 'close',
    code: FAILURE_CODES[action.status] ?? CloseCode.Internal,
    reason: message,
  }
}

const FAILURE_CODES: Readonly<Record<number, number>> = {
  400: CloseCode.InvalidArgument,
  401: CloseCode.NotFound,
  403: CloseCode.NotFound,
  404: CloseCode.NotFound,
}
