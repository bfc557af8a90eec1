import type { TextKind } from '../../protocol/chunk.ts'
import type {
  AudioCount,
  Citation,
  DataParts,
  StepProgress,
  TurnError,
} from '../../protocol/message.ts'
import type { ProgressNote, StepNote } from '../events/event-notes.ts'
import type { UsageCount } from './count-usage.ts'
import { NO_USAGE } from './count-usage.ts'
import type { ReplyEnd } from './model-outcome.ts'

/** The state of the translation of a turn. `translateEvent` advances it by one ADK event. */
export interface Translation {
  readonly step: 'closed' | 'open'
  /** The number of steps that were started. */
  readonly stepCount: number
  /**
   * Whether the current step contains a tool result. Further output of the model then needs a new step. Otherwise
   * clients that send automatically after tool calls would send the turn again and again (CH4).
   */
  readonly hasResults: boolean
  /** The number of text and reasoning parts so far. It makes their ids short and stable. */
  readonly textCount: number
  readonly openText: { readonly kind: TextKind; readonly id: string } | undefined
  /** The current author, and what it has streamed since its last complete event. */
  readonly speaker: Speaker
  /** Authors of parallel branches that are still streaming. */
  readonly parked: readonly Speaker[]
  readonly calls: ReadonlyMap<string, Call>
  /** The progress of agents with steps, by the id of their run. */
  readonly progress: ReadonlyMap<string, Progress>
  /** The written sources: URL or title → source id. */
  readonly sources: ReadonlyMap<string, string>
  readonly citations: readonly Citation[]
  readonly usage: UsageCount
  readonly modelVersion: string | undefined
  readonly audio: AudioCount | undefined
  /** The number of the last step in which the model has replied with something other than thoughts and calls. */
  readonly repliedStep: number | undefined
  /** How the model's last reply ended, if it has reported that. */
  readonly replyEnd: ReplyEnd | undefined
  /** Whether a reply of the model, also an earlier one, was not complete or has failed. */
  readonly wasIncomplete: boolean
  /** Whether the turn was stopped, and whether it has continued since. */
  readonly stop: 'none' | 'stopped' | 'continued'
  /** The first error. No chunks follow it. */
  readonly error: TurnError | undefined
}

/** A tool call of this message. */
export interface Call {
  readonly toolName: string
  readonly input: unknown
  /** The number of the step that contains the call. */
  readonly stepCount: number
  readonly state: CallState
  /** The last written state of its approval, if it needs one. */
  readonly approval?: DataParts['approval']
  /** The steps that contain the call. */
  readonly steps?: readonly StepNote[]
  /** Whether the application gives the final result of the call. The result of its run, such as a ticket, is preliminary. */
  readonly isLongRunning?: true
  /** Whether the application has given the final result of a long-running call. */
  readonly completed?: true
  /** The id of ADK's confirmation request that resumes a paused call. */
  readonly resumedBy?: string
  /** The call of this message that made this call, if it was made inside an agent that is used as a tool. */
  readonly madeBy?: string
}

/** The progress of an agent with steps, and the part that was written last. */
interface Progress {
  readonly note: ProgressNote
  readonly written: StepProgress | undefined
}

/**
 * - `running`: the run produces the result.
 * - `waiting`: a client or the application sends the result, which starts a later run.
 * - `asked`: a person decides whether the call runs.
 * - `paused`: the call runs an agent in which calls wait for approval.
 */
export type CallState = 'running' | 'waiting' | 'asked' | 'paused' | 'settled'

export interface Speaker {
  readonly branch: string
  readonly author: string
  readonly text: Streamed
  readonly reasoning: Streamed
}

/**
 * The streamed part of a text that the complete event will repeat. Its length and last characters identify a
 * repetition, at a cost that does not grow with the text.
 */
export interface Streamed {
  readonly length: number
  readonly tail: string
}

export const NOTHING_STREAMED: Streamed = { length: 0, tail: '' }

// Maps of a translation are replaced and never changed, so most turns need none of their own.
const NONE: ReadonlyMap<string, never> = new Map<string, never>()

/** Returns the state before the first event of a turn. */
export function beginTranslation(): Translation {
  return {
    step: 'closed',
    stepCount: 0,
    hasResults: false,
    textCount: 0,
    openText: undefined,
    speaker: { branch: '', author: '', text: NOTHING_STREAMED, reasoning: NOTHING_STREAMED },
    parked: [],
    calls: NONE,
    progress: NONE,
    sources: NONE,
    citations: [],
    usage: NO_USAGE,
    modelVersion: undefined,
    audio: undefined,
    repliedStep: undefined,
    replyEnd: undefined,
    wasIncomplete: false,
    stop: 'none',
    error: undefined,
  }
}

const WAITING: ReadonlySet<CallState> = new Set(['waiting', 'asked', 'paused'])

/** Whether the turn waits for a decision or for a result from outside. */
export function isWaiting({ calls }: Translation): boolean {
  return [...calls.values()].some(isCallWaiting)
}

/** Whether a call waits for a decision or for a result from outside. */
export function isCallWaiting({ state }: Call): boolean {
  return WAITING.has(state)
}

/** Whether a call is a question without an answer that another call asks while it runs. A call that waits for a person to start is not running. */
export function isAskingDuringCall(call: Call | undefined): boolean {
  return call?.state === 'running' && call.approval?.state === 'requested'
}
