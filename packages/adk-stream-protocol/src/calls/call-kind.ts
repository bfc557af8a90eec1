import type { Context } from '@google/adk'

import type { ToolCall } from '../agent/tool-call.ts'
import type { AnswerSchema } from '../approvals/answer-schema.ts'
import type { Approval, ApprovalTerms } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { ApprovalPolicy, ResolvedTerms } from '../approvals/policy.ts'
import type { PriorDecisions } from './prior-decisions.ts'
import type { CallOutcome } from './run-call.ts'
import type { RunState } from './run-state.ts'

/** A kind of call: what an entry of the ledger asks a person for, and what that means for its call. */
export interface CallKind {
  /** The `kind` in the terms of its entries. Undefined for an approval. */
  readonly name: ApprovalTerms['kind']
  /**
   * When the person is asked. `before-call`: the call starts with the decision, in any process. `during-call`: another call asks while it
   * runs. It waits in its process, and reads the decision from the ledger.
   */
  readonly asks: 'before-call' | 'during-call'
  /** Whether calls of this bridge can be of this kind. The ledger may have entries from a time when they could. */
  readonly isEnabled: boolean
  /** Whether the policy of the application sets its hint and its preview. */
  readonly hasPolicy: boolean
  /** Set if a person answers with a value, which a client may send as the output of the call. */
  readonly answer?: {
    /** Whether the value is the result of the call, so that no tool runs. */
    readonly isResult: boolean
    /** Returns the schema of the value. Returns undefined if these terms ask for none. */
    readonly toSchema: (terms: ApprovalTerms) => AnswerSchema | undefined
  }
  /** Returns the address of a page where a person can answer. Default: there is none. */
  toAnswerUrl?(approval: Approval): string | undefined
  /**
   * Set if a call that was approved may ask this while it runs. `answered` is the result of the question when it was answered: the result of
   * the tool is that of the approved call.
   */
  readonly followUp?: { readonly answered: Readonly<Record<string, unknown>> }
  /** Checks a call, if it is of this kind. Returns undefined for any other call, and for one that is an approval like any other. */
  check?(call: ToolCall, options: TermsOptions): Promise<CallCheck | undefined> | undefined
  /** Called before a tool runs. May replace the run of the tool, or what the tool calls. */
  prepare?(call: ToolCall, place: CallPlace): void
  /** Returns the terms of a question that a tool has asked, if the question is of this kind. `terms` are those of an approval. */
  toTerms?(toolContext: Context, terms: ResolvedTerms): ResolvedTerms | undefined
  /** Called before a claimed call of any kind runs. `approved`: the call's approval, if it was approved before it asked this. */
  onClaimed?(toolContext: Context, claimed: Approval, approved: Approval | undefined): void
}

export interface TermsOptions {
  /** Which calls need approval, and on which terms, in addition to what the tools require. */
  readonly policy: ApprovalPolicy
  readonly kinds: CallKinds
  /** Decisions that people made before for calls like another one. Default: there are none. */
  readonly prior?: PriorDecisions | undefined
  /** How long people may take if the policy does not say, in ms. */
  readonly deadlineMs: number | undefined
  /** Receives the error of a policy that throws or returns an invalid verdict. */
  readonly onError: (error: unknown) => void
}

/** The verdict on a call before it runs. */
export type CallCheck =
  | { readonly verdict: 'run' }
  | { readonly verdict: 'ask'; readonly terms: ResolvedTerms }
  /** The call gets this response and does not run: its need for approval is unknown, or the person denied it before. */
  | { readonly verdict: 'refuse'; readonly response: { readonly error: string } }

/** Where a call runs. */
export interface CallPlace {
  /** The run that can show questions. Undefined in a run of another program, and for a call that was started at its decision. */
  readonly run: RunState | undefined
  readonly host: CallHost
}

/** What runs calls: ADK, or a live session. */
export interface CallHost extends TermsOptions {
  readonly ledger: Ledger
  /** Asks a person for something that an approved call needs while it runs. Returns the result of the call until they have answered. */
  readonly askFollowUp: AskFollowUp
}

export type AskFollowUp = (call: ToolCall, approval: Approval) => Promise<Record<string, unknown>>

/** An approval: a person decides whether a call runs. */
const APPROVAL: CallKind = {
  name: undefined,
  asks: 'before-call',
  isEnabled: true,
  hasPolicy: true,
}

/** The kinds of calls of a bridge. */
export class CallKinds {
  readonly #all: readonly CallKind[]
  /** The kinds of questions that calls of this bridge can ask while they run. */
  readonly askedDuringCalls: readonly CallKind[]
  /** Whether approved calls of this bridge can ask for more while they run. */
  readonly hasFollowUps: boolean

  constructor(kinds: readonly CallKind[]) {
    this.#all = [APPROVAL, ...kinds]
    this.hasFollowUps = kinds.some(({ followUp, isEnabled }) => followUp && isEnabled)
    this.askedDuringCalls = kinds.filter(
      ({ asks, isEnabled }) => asks === 'during-call' && isEnabled,
    )
  }

  /** Returns the kind of an entry of the ledger. */
  of({ terms }: Pick<Approval, 'terms'>): CallKind {
    return this.#all.find(({ name }) => name === terms.kind) ?? APPROVAL
  }

  /** Returns the ids under which the ledger may have the question of an approved call. */
  toFollowUpIds(toolCallId: string): string[] {
    return this.#all.flatMap(({ name, followUp }) =>
      followUp ? [toFollowUpId(toolCallId, name)] : [],
    )
  }

  /** Whether the answer to an entry of the ledger is the result of its call, so that no tool runs. */
  isAnswerResult(approval: Pick<Approval, 'terms'>): boolean {
    return this.of(approval).answer?.isResult === true
  }

  /** Returns the outcome of an answered question whose answer is the result of its call. Returns undefined for any other call. */
  toAnswerOutcome(approval: Approval): CallOutcome | undefined {
    if (!this.isAnswerResult(approval)) return undefined
    const { state } = approval
    return { by: 'tool', result: 'payload' in state ? state.payload : null }
  }

  /** Returns the verdict on a call of a kind of its own. Returns undefined for a call that may need an approval. */
  async check(call: ToolCall, options: TermsOptions): Promise<CallCheck | undefined> {
    for (const kind of this.#all) {
      const check = await kind.check?.(call, options)
      if (check) return check
    }
    return undefined
  }

  /** Call this before a tool runs. */
  prepare(call: ToolCall, place: CallPlace): void {
    for (const kind of this.#all) kind.prepare?.(call, place)
  }

  /** Returns the terms of a question that a tool has asked. `terms` are those of an approval. */
  toTerms(toolContext: Context, terms: ResolvedTerms): ResolvedTerms {
    for (const kind of this.#all) {
      const own = kind.toTerms?.(toolContext, terms)
      if (own) return own
    }
    return terms
  }

  /** Call this before a claimed call runs. `approved`: the call's approval, if it was approved before it asked what was claimed. */
  noteClaimed(toolContext: Context, claimed: Approval, approved?: Approval): void {
    for (const kind of this.#all) kind.onClaimed?.(toolContext, claimed, approved)
  }

  /** Whether a call asks this while it runs. */
  isAskedDuringCall(approval: Pick<Approval, 'terms'>): boolean {
    return this.of(approval).asks === 'during-call'
  }
}

/** Returns the id of a question that an approved call asks. The ledger has one entry for each call. */
export function toFollowUpId(toolCallId: string, kind: CallKind['name']): string {
  return `${toolCallId}.${kind}`
}
