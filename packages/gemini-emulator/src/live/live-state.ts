import type { Prompt } from '../mind.ts'
import type {
  Blob,
  Content,
  FunctionCall,
  FunctionDeclaration,
  FunctionResponse,
  Part,
} from '../wire/content.ts'
import type { ServerMessage, Setup } from '../wire/live-messages.ts'
import { isThirdGeneration, type LiveSettings } from './live-options.ts'
import type { Step } from './plan-turn.ts'

/** What the setup of a session decided. */
export interface SessionConfig {
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
  /** Whether a turn that ends in blocking calls is completed at once. */
  readonly completeToolTurns: boolean
}

/** A call that waits for its answer; a blocking one keeps the answer until the others of its turn have theirs. */
export interface OpenCall {
  readonly call: FunctionCall
  readonly id: string
  readonly blocking: boolean
  readonly answer?: FunctionResponse
  /** A first part of the answer has come (`willContinue`). */
  readonly begun?: true
}

/** Something for the model to take in when it is free; `speak`: and to answer. */
export interface Item {
  readonly contents: readonly Content[]
  readonly speak: boolean
}

/** What a turn has given so far, for the token count. */
export interface Spent {
  readonly tokens: number
  readonly thoughtTokens: number
  readonly samples: number
}

export type Turn =
  | { readonly state: 'idle' }
  | {
      readonly state: 'speaking'
      readonly id: number
      /** Said since the last thing the history remembers. */
      readonly said: readonly Part[]
      readonly spent: Spent
    }
  /** Silent until every blocking call is answered. `open`: the turn has not been completed on the wire. */
  | {
      readonly state: 'blocked'
      readonly id: number
      readonly open: boolean
      readonly moreCalls: boolean
      readonly spent: Spent
    }

/** What survives a connection: a resumption handle stands for this. */
export interface LiveMemory {
  readonly history: readonly Content[]
  readonly calls: readonly OpenCall[]
  readonly agenda: readonly Item[]
  /** Audio the person has spoken, for the token count. */
  readonly heardMs: number
  readonly turn: Exclude<Turn, { state: 'speaking' }>
}

export interface LiveState extends Omit<LiveMemory, 'turn'> {
  readonly config: SessionConfig
  readonly turn: Turn
  readonly turnCount: number
  /** The newest video frame since the last input. */
  readonly seen: Blob | undefined
  /** Whether client content still only seeds the history (`historyConfig.initialHistoryInClientContent`). */
  readonly seeding: boolean
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
  | { readonly type: 'heard'; readonly text: string; readonly ms: number }
  | { readonly type: 'answers'; readonly responses: readonly FunctionResponse[] }
  | { readonly type: 'performed'; readonly turn: number; readonly step: Performed }

/** The steps of a turn that concern the conversation. */
export type Performed = Extract<Step, { type: 'show' | 'call' | 'complete' | 'cancel' }>

export type Effect =
  | { readonly type: 'send'; readonly message: ServerMessage }
  /** Ask the mind and go through its turn; whatever turn is under way ends. */
  | { readonly type: 'perform'; readonly turn: number }
  | { readonly type: 'abandon' }
  /** The answer to a call that is not open. */
  | { readonly type: 'ignore'; readonly response: FunctionResponse }
  /** The conversation has come to a point where a new connection could take it up. */
  | { readonly type: 'checkpoint' }

export type Stepped = readonly [LiveState, readonly Effect[]]

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

/** A session at its beginning, or where the memory left it. */
export function createState(setup: Setup, config: SessionConfig, memory?: LiveMemory): LiveState {
  return {
    history: [],
    calls: [],
    agenda: [],
    heardMs: 0,
    turn: { state: 'idle' },
    ...memory,
    config,
    turnCount: 0,
    seen: undefined,
    seeding: memory === undefined && setup.historyConfig?.initialHistoryInClientContent === true,
  }
}

/** What a handle would restore; nothing in the middle of a turn. */
export function toMemory(state: LiveState): LiveMemory | undefined {
  const { history, calls, agenda, heardMs, turn } = state
  if (turn.state === 'speaking' || (turn.state === 'blocked' && turn.moreCalls)) return undefined
  return { history, calls, agenda, heardMs, turn }
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

export function isBlocking({ functions }: SessionConfig, name: string): boolean {
  return functions.find((known) => known.name === name)?.behavior !== 'NON_BLOCKING'
}
