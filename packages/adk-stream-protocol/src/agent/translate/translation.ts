import type { FinishReason, TextKind } from '../../protocol/chunk.ts'
import type { AudioCount, Citation, DataParts, TurnError } from '../../protocol/message.ts'
import type { UsageCount } from './count-usage.ts'
import { NO_USAGE } from './count-usage.ts'

/** How far a turn has been told to the client. Advanced by `translateEvent`, one ADK event at a time. */
export interface Translation {
  readonly step: 'closed' | 'open'
  /** How many steps were begun. */
  readonly stepCount: number
  /**
   * A tool's result was told in the last step. What the model does next belongs to a new step, or clients that send automatically
   * after tool calls would send the turn again and again (CH4).
   */
  readonly hasResults: boolean
  /** Text and reasoning parts are numbered through the turn, so that their ids are stable and short. */
  readonly textCount: number
  readonly openText: { readonly kind: TextKind; readonly id: string } | undefined
  /** Who speaks now, and what they streamed since their last whole event. */
  readonly speaker: Speaker
  /** Speakers of parallel branches, whose streams are still under way. */
  readonly parked: readonly Speaker[]
  readonly calls: ReadonlyMap<string, Call>
  /** Sources already shown: address or title → source id. */
  readonly sources: ReadonlyMap<string, string>
  readonly citations: readonly Citation[]
  readonly usage: UsageCount
  readonly modelVersion: string | undefined
  readonly audio: AudioCount | undefined
  /** Why the model ended, as far as it has said so. */
  readonly finishReason: FinishReason | undefined
  /** The first failure; nothing is told after it. */
  readonly error: TurnError | undefined
}

/** A tool call that the client was told of. */
export interface Call {
  readonly toolName: string
  readonly input: unknown
  /** The number of the step that shows it. */
  readonly stepCount: number
  readonly state: CallState
  /** What was last told about its approval, if a person was asked. */
  readonly approval?: DataParts['approval']
  /** Whether the application gave the final result of a long-running call. */
  readonly completed?: true
}

/**
 * - `running`: the run gives the result.
 * - `waiting`: somebody outside the run gives the result, in a later one.
 * - `asked`: a person decides whether it runs.
 */
export type CallState = 'running' | 'waiting' | 'asked' | 'settled'

export interface Speaker {
  readonly branch: string
  readonly author: string
  readonly text: Streamed
  readonly reasoning: Streamed
}

/**
 * What was streamed of a text that the whole event will repeat. Length and tail tell a repetition from another text, and cost
 * the same for the first token and the ten-thousandth.
 */
export interface Streamed {
  readonly length: number
  readonly tail: string
}

export const NOTHING_STREAMED: Streamed = { length: 0, tail: '' }

/** The state before the first event of a turn. */
export function beginTranslation(): Translation {
  return {
    step: 'closed',
    stepCount: 0,
    hasResults: false,
    textCount: 0,
    openText: undefined,
    speaker: { branch: '', author: '', text: NOTHING_STREAMED, reasoning: NOTHING_STREAMED },
    parked: [],
    calls: new Map(),
    sources: new Map(),
    citations: [],
    usage: NO_USAGE,
    modelVersion: undefined,
    audio: undefined,
    finishReason: undefined,
    error: undefined,
  }
}

/** Whether the turn stands still until a person decides, or somebody outside gives a result. */
export function isWaiting({ calls }: Translation): boolean {
  return [...calls.values()].some(({ state }) => state === 'waiting' || state === 'asked')
}
