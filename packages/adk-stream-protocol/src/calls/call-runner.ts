import type { Context } from '@google/adk'

import { toError, wrapRun } from '../agent/adk-workarounds/guard-tool.ts'
import {
  describeEnding,
  toApprovedNote,
  toResponse,
  APPROVAL_UNAVAILABLE,
} from '../agent/call-responses.ts'
import type { DecidedNote } from '../agent/events/event-notes.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { Approval } from '../approvals/approval.ts'
import { isRefusal } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { keepNewest } from '../shared/collections.ts'
import type { JudgeOptions } from './approved-call.ts'
import {
  mergeContext,
  confirmCall,
  getEditedArgs,
  recordOutcome,
  toClaim,
  withEditedArgs,
  withEdits,
} from './approved-call.ts'
import { storeHandover } from './approval-events.ts'
import type { CallKinds } from './call-kind.ts'
import { offerOf } from './client-tool.ts'
import type { FollowUp } from './follow-ups.ts'
import { findFollowUp, pauseForFollowUp, storeFollowUpEnding } from './follow-ups.ts'
import type { CallEffect, CallEvent } from './next-call.ts'
import { nextCall } from './next-call.ts'
import { cancelIfOutdated } from './outdated-calls.ts'
import type { CallOutcome, ToolErrors } from './run-call.ts'
import { runCall } from './run-call.ts'
import type { RunState } from './run-state.ts'

/** A call that was started when it was approved. */
interface StartedCall {
  readonly toolContext: Context
  readonly note: DecidedNote
  /** Rejects if a callback of the host threw, which ends a run. */
  readonly outcome: Promise<CallResponse>
}

interface CallResponse {
  /** The response that ADK uses as the result. */
  readonly response: Record<string, unknown>
  readonly failed: boolean
  /** The note with the outcome. */
  readonly note: DecidedNote
}

interface CallRunnerOptions extends JudgeOptions {
  readonly kinds: CallKinds
}

/** Runs approved calls. Claims each call in the ledger, either at the decision or when ADK resumes it. */
export class CallRunner {
  readonly #ledger: Ledger
  readonly #errors: ToolErrors
  readonly #judge: JudgeOptions
  readonly #kinds: CallKinds
  /** Started calls by approval id, until ADK takes the result. */
  readonly #started = new Map<string, StartedCall>()
  readonly #ranHere = new WeakSet<Context>()
  /** Errors of outcomes that could not be stored. */
  readonly #unrecorded = new WeakSet<Error>()
  /** Claimed calls that ADK runs, with their approvals. */
  readonly #runByAdk = new WeakMap<Context, Approval>()

  constructor(ledger: Ledger, errors: ToolErrors, { kinds, ...judge }: CallRunnerOptions) {
    this.#kinds = kinds
    this.#ledger = ledger
    this.#errors = errors
    this.#judge = judge
  }

  /** Whether this class ran the call of a context and recorded its outcome. */
  ranHere(toolContext: Context): boolean {
    return this.#ranHere.has(toolContext)
  }

  /** Returns the approval of a call that ADK ran, once, so that its outcome is recorded exactly once. */
  takeApprovalRunByAdk(toolContext: Context): Approval | undefined {
    const approval = this.#runByAdk.get(toolContext)
    this.#runByAdk.delete(toolContext)
    return approval
  }

  /** Whether this process has started a call whose result ADK has not taken yet. */
  isRunning(approvalId: string): boolean {
    return this.#started.has(approvalId)
  }

  /** Resolves when a started call has ended. */
  async settled(approvalId: string): Promise<void> {
    await this.#started.get(approvalId)?.outcome.catch(ignoreError)
  }

  /** Claims an approved call and starts it without waiting for its end. Returns false if the ledger refuses the claim. */
  async startAtDecision(call: ToolCall, given: Approval): Promise<boolean> {
    const approval = await cancelIfOutdated(this.#ledger, given, call.tool)
    const claimed = await this.#ledger.claim(approval.id, toClaim(call))
    if (isRefusal(claimed)) return false
    this.start(call, claimed)
    return true
  }

  /** Starts a claimed call without waiting for its end. */
  start(call: ToolCall, claimed: Approval): void {
    this.#confirm(call.toolContext, claimed)
    const outcome = this.#run(claimed, call)
    // `runForAdk` handles the rejection.
    outcome.catch(ignoreError)
    const { toolContext } = call
    this.#started.set(claimed.id, { toolContext, note: toApprovedNote(claimed), outcome })
    // A result that ADK never takes, for example in a deleted chat, is in the ledger and need not be kept.
    keepNewest(this.#started, MAX_STARTED)
  }

  /**
   * Returns the result of a started call to ADK. Otherwise claims the call and either runs it with edited arguments
   * or returns undefined, so that ADK runs it. Returns the recorded outcome if the call does not run here.
   */
  async runForAdk(call: ToolCall, run: RunState): Promise<Record<string, unknown> | undefined> {
    const { toolContext } = call
    const toolCallId = toolContext.functionCallId ?? ''
    const chat = chatOf(toolContext.invocationContext.session)
    const found = await this.#ledger.findByCall(chat, toolCallId)
    if (!found) return APPROVAL_UNAVAILABLE
    const started = this.#started.get(found.id)
    if (started) {
      this.#started.delete(found.id)
      run.decided.set(toolCallId, started.note)
      const outcome = await this.#orMarkLost(started.outcome, run)
      mergeContext(toolContext, started.toolContext)
      return takeResponse(run, toolCallId, outcome)
    }
    const approval = await cancelIfOutdated(this.#ledger, found, call.tool)
    const asked = { name: 'asked', approvalId: approval.id } as const
    const resumed = { type: 'resumed', approval, handsOver: call.tool.isLongRunning } as const
    let [state, [effect]] = nextCall(asked, resumed)
    while (effect?.type === 'claim')
      [state, [effect]] = nextCall(state, await this.#claim(effect.approvalId, call))
    if (effect?.type === 'hand-over')
      return this.#handOver(approval, call, { run, note: effect.note })
    return this.perform(effect, call, run)
  }

  async #claim(approvalId: string, call: ToolCall): Promise<CallEvent> {
    const claimed = await this.#ledger.claim(approvalId, toClaim(call))
    if (!isRefusal(claimed)) return { type: 'claimed', approval: claimed }
    // It will never be the approved call, so the approval must not wait for it.
    if (claimed.refused === 'mismatch') await this.#ledger.cancel(approvalId, OTHER_CALL)
    const approval = await this.#ledger.get(approvalId)
    return { type: 'claim-refused', approval, handsOver: call.tool.isLongRunning }
  }

  /** Performs the next effect of a call. Returns its response, or undefined if ADK is to run it. */
  async perform(
    effect: CallEffect | undefined,
    call: ToolCall,
    run: RunState,
  ): Promise<Record<string, unknown> | undefined> {
    if (effect?.type === 'run')
      return effect.approval && this.#runClaimed(effect.approval, call, run)
    // The call is pending again or runs elsewhere, so this run must not report it.
    if (effect?.type !== 'settle') throw run.markLost()
    if (effect.note) run.decided.set(call.toolContext.functionCallId ?? '', effect.note)
    return effect.response
  }

  /** Hands a call over to the client or to the application. Returns undefined: ADK runs nothing, and waits for the result. */
  async #handOver(
    approval: Approval,
    call: ToolCall,
    { run, note }: { readonly run: RunState; readonly note: DecidedNote | undefined },
  ): Promise<undefined> {
    const toolCallId = call.toolContext.functionCallId ?? ''
    this.#confirm(call.toolContext, approval)
    if (note) run.decided.set(toolCallId, note)
    // BT1580: the tool has run.
    wrapRun(call.toolContext, this, async () => undefined)
    const offer = { toolCallId, ...offerOf(call.tool, toolCallId) }
    await storeHandover(run, call.toolContext.invocationContext, offer)
  }

  /** Runs a claimed call with edited arguments. The answer to a question is the result of its call. ADK runs any other call. */
  async #runClaimed(
    claimed: Approval,
    call: ToolCall,
    run: RunState,
  ): Promise<Record<string, unknown> | undefined> {
    const { toolContext } = call
    const toolCallId = toolContext.functionCallId ?? ''
    this.#confirm(toolContext, claimed)
    run.decided.set(toolCallId, toApprovedNote(claimed))
    const answer = this.#kinds.toAnswerOutcome(claimed)
    if (answer || getEditedArgs(claimed)) {
      const outcome = answer ? this.#finish(claimed, answer) : this.#run(claimed, call)
      return takeResponse(run, toolCallId, await this.#orMarkLost(outcome, run))
    }
    this.#runByAdk.set(toolContext, claimed)
    // In parallel branches, a call may continue after another call has ended the run.
    if (toolContext.invocationContext.branch === undefined)
      run.executing.set(toolCallId, claimed.id)
    return undefined
  }

  #confirm(toolContext: Context, claimed: Approval): void {
    confirmCall(toolContext, claimed)
    this.#kinds.noteClaimed(toolContext, claimed)
  }

  /**
   * Continues an approved call that has asked a person for something else while it ran: runs it when the person has answered. Returns
   * undefined if the call has asked nothing.
   */
  async resumeFollowUp(
    call: ToolCall,
    run: RunState,
  ): Promise<Record<string, unknown> | undefined> {
    const kinds = this.#kinds
    const asked = kinds.hasFollowUps
      ? await findFollowUp(call, { ledger: this.#ledger, kinds })
      : undefined
    // ADK takes the result of a call that was started here, and the call then pauses.
    if (!asked || this.#started.has(asked.approval.id)) return undefined
    const { approval } = asked
    let { question } = asked
    if (question.state.name === 'requested') return pauseForFollowUp(call, run, asked)
    if (question.state.name === 'approved') {
      const claimed = await this.#ledger.claim(question.id, question)
      if (!isRefusal(claimed)) return this.#runAnswered(call, run, { approval, question: claimed })
      question = (await this.#ledger.get(question.id)) ?? question
    }
    const ending = describeEnding(question)
    // Another process runs the call.
    if (!ending) throw run.markLost()
    const { note, response } = ending
    const ended = await storeFollowUpEnding(call, run, { approval, question, note, kinds })
    run.decided.set(call.toolContext.functionCallId ?? '', ended)
    return response
  }

  /** Runs an approved call whose question was claimed. */
  async #runAnswered(
    call: ToolCall,
    run: RunState,
    { approval, question }: FollowUp,
  ): Promise<Record<string, unknown>> {
    const { toolContext } = call
    confirmCall(toolContext, approval)
    this.#kinds.noteClaimed(toolContext, question, approval)
    const answered = { ...call, toolArgs: { ...question.args } }
    const outcome = await this.#orMarkLost(this.#run(question, answered), run)
    const ending = { approval, question, note: outcome.note, kinds: this.#kinds }
    const ended = await storeFollowUpEnding(call, run, ending)
    return takeResponse(run, toolContext.functionCallId ?? '', { ...outcome, note: ended })
  }

  /** Runs a claimed call and records its outcome. */
  async #run(claimed: Approval, call: ToolCall): Promise<CallResponse> {
    this.#ranHere.add(call.toolContext)
    const outcome = await runCall(withEdits(call, claimed), this.#errors).catch(
      async (thrown: unknown) => {
        // A callback of the host threw, which ends the run in ADK. The tool did not run, or has already failed.
        await this.#recorded(claimed, this.#ledger.fail(claimed.id, String(toError(thrown))))
        throw thrown
      },
    )
    return this.#finish(claimed, outcome)
  }

  /** Records the outcome of a claimed call. */
  async #finish(claimed: Approval, outcome: CallOutcome): Promise<CallResponse> {
    const recording = recordOutcome(this.#ledger, claimed, { outcome, judge: this.#judge })
    const ended = await this.#recorded(claimed, recording)
    if (!ended) throw new ProtocolError('turn-lost')
    const result = withEditedArgs(outcome, claimed)
    // ADK does the same for a tool that returns nothing.
    const response = result === undefined ? { result } : toResponse(result)
    const failed = outcome.by === 'failure' && outcome.hidden
    return { response, failed, note: toApprovedNote(ended) }
  }

  /** AP825: if the outcome of a call cannot be stored, ADK takes it from the ledger, which stores it later. */
  async #recorded<Result>(claimed: Approval, recording: Promise<Result>): Promise<Result> {
    try {
      return await recording
    } catch (error) {
      this.#started.delete(claimed.id)
      this.#unrecorded.add(toError(error))
      throw error
    }
  }

  /** Ends the run if another process has taken over the call, or if an agent that is used as a tool could not store its outcome. */
  async #orMarkLost<Outcome>(outcome: Promise<Outcome>, run: RunState): Promise<Outcome> {
    try {
      return await outcome
    } catch (thrown) {
      if (thrown instanceof ProtocolError && thrown.code === 'turn-lost') throw run.markLost()
      if (thrown instanceof Error && this.#unrecorded.has(thrown)) run.markUnstored(thrown)
      throw thrown
    }
  }
}

const OTHER_CALL = 'the call in the conversation is not the one that was approved'

function takeResponse(
  run: RunState,
  toolCallId: string,
  { response, failed, note }: CallResponse,
): Record<string, unknown> {
  if (failed) run.failed.add(toolCallId)
  run.decided.set(toolCallId, note)
  return response
}

const MAX_STARTED = 1_000

function ignoreError(): void {}
