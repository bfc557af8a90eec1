import type { Prompt } from '../responders/responder.ts'
import type {
  Blob,
  Content,
  FunctionCall,
  FunctionDeclaration,
  FunctionResponse,
  Part,
} from '../wire/content.ts'
import type { LiveUsage, ModalityTokens, ServerMessage, Setup } from '../wire/live-messages.ts'
import { partTokens, promptTokens, textTokens } from '../wire/text.ts'
import { OUTPUT_RATE } from './audio.ts'
import type { LiveSettings } from './live-options.ts'
import { isNonBlockingByDefault, isThirdGeneration } from './live-options.ts'
import type { TurnStep } from './plan-turn.ts'

/** The configuration of a session, from its setup and the emulator's options. */
interface SessionConfig {
  /** Without the `models/` prefix. */
  readonly model: string
  readonly modality: 'TEXT' | 'AUDIO'
  readonly systemInstruction: string
  readonly functions: readonly FunctionDeclaration[]
  readonly includeThoughts: boolean
  readonly inputTranscription: boolean
  readonly outputTranscription: boolean
  readonly bargeIn: boolean
  readonly cancelOnBargeIn: boolean
  /** Whether a response with INTERRUPT waits until the person has finished. */
  readonly interruptWaits: boolean
  /** Whether a turn that ends with blocking calls completes immediately. */
  readonly completeToolTurns: boolean
}

/** A call without a complete response. A blocking call keeps its response until the other calls of the turn have theirs. */
export interface PendingCall {
  readonly call: FunctionCall
  readonly id: string
  readonly blocking: boolean
  readonly response?: FunctionResponse
  /** A partial response (`willContinue`) was received. */
  readonly hasPartialResponse?: true
}

/** Input that the model processes when it is idle. */
export interface QueuedInput {
  readonly contents: readonly Content[]
  readonly needsReply: boolean
}

/** The output of a turn so far, for the token count. */
interface TurnUsage {
  readonly tokens: number
  readonly thoughtTokens: number
  readonly samples: number
}

export type Turn =
  | { readonly state: 'idle' }
  | {
      readonly state: 'speaking'
      readonly id: number
      /** Parts that were sent but are not in the history yet. */
      readonly parts: readonly Part[]
      readonly usage: TurnUsage
    }
  /** Silent until every blocking call has its response. */
  | {
      readonly state: 'blocked'
      readonly id: number
      /** Whether `turnComplete` was not sent yet. */
      readonly open: boolean
      readonly moreCalls: boolean
      readonly usage: TurnUsage
    }

/** The state that a resumption handle restores. */
export interface ResumableState {
  readonly history: readonly Content[]
  readonly calls: readonly PendingCall[]
  readonly queue: readonly QueuedInput[]
  /** The duration of the user's speech, for the token count. */
  readonly inputAudioMs: number
  readonly turn: Exclude<Turn, { state: 'speaking' }>
}

export interface LiveState extends Omit<ResumableState, 'turn'> {
  readonly config: SessionConfig
  readonly turn: Turn
  readonly turnCount: number
  /** Whether the person speaks at the moment. */
  readonly isPersonSpeaking: boolean
  /** The latest video frame since the last input. */
  readonly videoFrame: Blob | undefined
  /** Whether client content is initial history without a reply (`historyConfig.initialHistoryInClientContent`). */
  readonly isInitialHistory: boolean
}

export type LiveEvent =
  | {
      readonly type: 'content'
      readonly turns: readonly Content[]
      readonly turnComplete: boolean
    }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'video'; readonly frame: Blob }
  | { readonly type: 'speech-start' }
  | { readonly type: 'transcript'; readonly text: string; readonly ms: number }
  | { readonly type: 'tool-responses'; readonly responses: readonly FunctionResponse[] }
  /** The running turn reached its next step. */
  | { readonly type: 'turn-step'; readonly turn: number; readonly step: StateStep }

/** The steps of a turn that change the state. */
export type StateStep = Extract<TurnStep, { type: 'content' | 'call' | 'complete' | 'cancel' }>

export type Effect =
  | { readonly type: 'send'; readonly message: ServerMessage }
  /** Starts a turn with a reply of the responder. Aborts the running turn. */
  | { readonly type: 'start-turn'; readonly turn: number }
  | { readonly type: 'abort-turn' }
  /** Records a response to a call that is not pending. */
  | { readonly type: 'ignore-response'; readonly response: FunctionResponse }
  /** Sends a resumption handle for the current state, if the client asked for handles. */
  | { readonly type: 'send-handle' }

export type Transition = readonly [LiveState, readonly Effect[]]

export function readConfig(setup: Setup, settings: LiveSettings): SessionConfig {
  const model = setup.model.replace(/^models\//, '')
  const { toolTurnComplete } = settings
  return {
    model,
    modality: setup.generationConfig?.responseModalities?.[0] === 'TEXT' ? 'TEXT' : 'AUDIO',
    systemInstruction: readText(setup.systemInstruction),
    functions: readFunctions(setup.tools),
    includeThoughts: setup.generationConfig?.thinkingConfig?.includeThoughts ?? false,
    inputTranscription: setup.inputAudioTranscription !== undefined,
    outputTranscription: setup.outputAudioTranscription !== undefined,
    bargeIn: setup.realtimeInputConfig?.activityHandling !== 'NO_INTERRUPTION',
    cancelOnBargeIn: settings.cancelOnBargeIn,
    interruptWaits: isNonBlockingByDefault(model),
    completeToolTurns:
      toolTurnComplete === 'by-model' ? !isThirdGeneration(model) : toolTurnComplete,
  }
}

export function readText(content: Content | undefined): string {
  return (content?.parts ?? []).map((part) => part.text ?? '').join('\n')
}

export function readFunctions(tools: Setup['tools']): readonly FunctionDeclaration[] {
  return (tools ?? []).flatMap((tool) => tool.functionDeclarations ?? [])
}

/** Creates the state of a new session, or of one that resumes. */
export function createState(
  setup: Setup,
  config: SessionConfig,
  resumed?: ResumableState,
): LiveState {
  return {
    history: [],
    calls: [],
    queue: [],
    inputAudioMs: 0,
    turn: { state: 'idle' },
    ...resumed,
    config,
    turnCount: 0,
    isPersonSpeaking: false,
    videoFrame: undefined,
    isInitialHistory:
      resumed === undefined && setup.historyConfig?.initialHistoryInClientContent === true,
  }
}

/** Returns the state for a resumption handle, or `undefined` during a turn. */
export function toResumable(state: LiveState): ResumableState | undefined {
  const { history, calls, queue, inputAudioMs, turn } = state
  if (turn.state === 'speaking' || (turn.state === 'blocked' && turn.moreCalls)) return undefined
  return { history, calls, queue, inputAudioMs, turn }
}

export function toPrompt({ config, history }: LiveState): Prompt {
  const { model, systemInstruction, functions, includeThoughts } = config
  return {
    mode: 'live',
    model,
    systemInstruction,
    contents: history,
    functions,
    includeThoughts,
  }
}

export function isBlocking({ functions, model }: SessionConfig, name: string): boolean {
  const behavior = functions.find((known) => known.name === name)?.behavior
  return isNonBlockingByDefault(model) ? behavior === 'BLOCKING' : behavior !== 'NON_BLOCKING'
}

export const NO_USAGE: TurnUsage = { tokens: 0, thoughtTokens: 0, samples: 0 }

/** Counts the tokens of the running turn. */
export function countUsage(state: LiveState): LiveUsage {
  const usage = state.turn.state === 'idle' ? NO_USAGE : state.turn.usage
  const prompt = countPrompt(state)
  const promptTokenCount = prompt.reduce((sum, { tokenCount }) => sum + tokenCount, 0)
  const spoken = audioTokens(usage.samples / OUTPUT_RATE)
  const responseTokenCount = spoken > 0 ? spoken : usage.tokens
  const modality = spoken > 0 ? 'AUDIO' : 'TEXT'
  return {
    promptTokenCount,
    responseTokenCount,
    ...(usage.thoughtTokens > 0 && { thoughtsTokenCount: usage.thoughtTokens }),
    totalTokenCount: promptTokenCount + responseTokenCount + usage.thoughtTokens,
    promptTokensDetails: prompt,
    responseTokensDetails: [{ modality, tokenCount: responseTokenCount }],
  }
}

/** Adds a part or audio samples to the usage of a turn. */
export function addUsage(usage: TurnUsage, part: Part | undefined, samples = 0): TurnUsage {
  const tokens = part ? partTokens(part) : 0
  return {
    tokens: usage.tokens + (part?.thought ? 0 : tokens),
    thoughtTokens: usage.thoughtTokens + (part?.thought ? tokens : 0),
    samples: usage.samples + samples,
  }
}

function countPrompt({ config, history, inputAudioMs }: LiveState): readonly ModalityTokens[] {
  const { details } = promptTokens(history, config.functions)
  const audio = audioTokens(inputAudioMs / 1000)
  return [
    { modality: 'TEXT', tokenCount: textTokens(config.systemInstruction) },
    ...details,
    ...(audio > 0 ? [{ modality: 'AUDIO', tokenCount: audio }] : []),
  ].reduce<ModalityTokens[]>(addTokens, [])
}

/** Keeps one entry for each modality. */
function addTokens(
  sums: ModalityTokens[],
  { modality, tokenCount }: ModalityTokens,
): ModalityTokens[] {
  const others = sums.filter((sum) => sum.modality !== modality)
  const known = sums.find((sum) => sum.modality === modality)?.tokenCount ?? 0
  return [...others, { modality, tokenCount: known + tokenCount }]
}

// Gemini counts 25 tokens for a second of audio.
const audioTokens = (seconds: number) => Math.ceil(seconds * 25)
