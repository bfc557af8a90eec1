import type { Context } from '@google/adk'

import type { Approval } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { Refusal } from '../approvals/refusal.ts'
import { isRefusal } from '../approvals/refusal.ts'
import { ProtocolError } from '../protocol/errors.ts'
import {
  mergeContext,
  confirmCall,
  getEditedArgs,
  recordOutcome,
  withEditedArgs,
  toApprovedNote,
} from './approved-call.ts'
import { describeEnding, toResponse, APPROVAL_UNAVAILABLE } from '../agent/call-responses.ts'
import type { DecidedNote } from '../agent/history/event-notes.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { RunState } from './run-state.ts'
import { runCall } from './run-call.ts'
import { toError } from '../agent/adk-workarounds/guard-tool.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import type { ToolErrors } from './tool-errors.ts'

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
}

/** Runs approved calls. Claims each call in the ledger, either at the decision or when ADK resumes it. */
export class CallRunner {
  readonly #ledger: Ledger
  readonly #errors: ToolErrors
  /** Started calls by approval id, until ADK takes the result. */
  readonly #started = new Map<string, StartedCall>()
  readonly #ranHere = new WeakSet<Context>()
  /** Claimed calls that ADK runs, with their approval ids. */
  readonly #runByAdk = new WeakMap<Context, string>()

  constructor(ledger: Ledger, errors: ToolErrors) {
    this.#ledger = ledger
    this.#errors = errors
  }

  /** Whether this class ran the call of a context and recorded its outcome. */
  ranHere(toolContext: Context): boolean {
    return this.#ranHere.has(toolContext)
  }

  /** Returns the approval id of a call that ADK ran, once, so that its outcome is recorded exactly once. */
  takeApprovalRunByAdk(toolContext: Context): string | undefined {
    const approvalId = this.#runByAdk.get(toolContext)
    this.#runByAdk.delete(toolContext)
    return approvalId
  }

  /** Whether this process has started a call whose result ADK has not taken yet. */
  isRunning(approvalId: string): boolean {
    return this.#started.has(approvalId)
  }

  /** Resolves when a started call has ended. */
  async settled(approvalId: string): Promise<void> {
    await this.#started.get(approvalId)?.outcome.catch(ignoreError)
  }

  /** Claims a call and starts it without waiting for its end. Returns false if the ledger refuses the claim. */
  async startAtDecision(call: ToolCall): Promise<boolean> {
    const approval = await this.#find(call)
    if (approval?.state.name !== 'approved') return false
    const approvalId = approval.id
    const claimed = await this.#claim(approvalId, call)
    if (isRefusal(claimed)) return false
    const outcome = this.#run(claimed, call)
    // `runForAdk` handles the rejection.
    outcome.catch(ignoreError)
    this.#started.set(approvalId, {
      toolContext: call.toolContext,
      note: toApprovedNote(claimed),
      outcome,
    })
    this.#forgetOldest()
    return true
  }

  /**
   * Returns the result of a started call to ADK. Otherwise claims the call and either runs it with edited arguments
   * or returns undefined, so that ADK runs it. Returns the recorded outcome if the ledger refuses the claim.
   */
  async runForAdk(call: ToolCall, run: RunState): Promise<Record<string, unknown> | undefined> {
    const { toolContext } = call
    const toolCallId = toolContext.functionCallId ?? ''
    const approval = await this.#find(call)
    if (!approval) return APPROVAL_UNAVAILABLE
    const started = this.#started.get(approval.id)
    if (started) {
      this.#started.delete(approval.id)
      run.decided.set(toolCallId, started.note)
      const outcome = await orMarkLost(started.outcome, run)
      mergeContext(toolContext, started.toolContext)
      return takeResponse(run, toolCallId, outcome)
    }
    const claimed = await this.#claim(approval.id, call)
    if (isRefusal(claimed)) return this.#describeRefusal(run, approval.id)
    run.decided.set(toolCallId, toApprovedNote(claimed))
    if (getEditedArgs(claimed))
      return takeResponse(run, toolCallId, await orMarkLost(this.#run(claimed, call), run))
    this.#runByAdk.set(toolContext, approval.id)
    // In parallel branches, a call may continue after another call has ended the run.
    if (toolContext.invocationContext.branch === undefined)
      run.executing.set(toolCallId, approval.id)
    return undefined
  }

  async #find({ toolContext }: ToolCall): Promise<Approval | undefined> {
    const chat = chatOf(toolContext.invocationContext.session)
    return this.#ledger.findByCall(chat, toolContext.functionCallId ?? '')
  }

  async #claim(approvalId: string, call: ToolCall): Promise<Approval | Refusal> {
    const { tool, toolArgs: args, toolContext } = call
    const chat = chatOf(toolContext.invocationContext.session)
    const toolCallId = toolContext.functionCallId ?? ''
    const claimed = await this.#ledger.claim(approvalId, {
      chat,
      toolCallId,
      toolName: tool.name,
      args,
    })
    if (!isRefusal(claimed)) confirmCall(toolContext, claimed)
    return claimed
  }

  /** Runs a claimed call and records its outcome. */
  async #run(claimed: Approval, call: ToolCall): Promise<CallResponse> {
    this.#ranHere.add(call.toolContext)
    const editedArgs = getEditedArgs(claimed)
    const toRun = { ...call, ...(editedArgs && { toolArgs: { ...editedArgs } }) }
    const outcome = await runCall(toRun, this.#errors).catch(async (thrown: unknown) => {
      // A callback of the host threw, which ends the run in ADK. The tool did not run, or has already failed.
      await this.#ledger.fail(claimed.id, String(toError(thrown)))
      throw thrown
    })
    const result = withEditedArgs(outcome, editedArgs)
    if (!(await recordOutcome(this.#ledger, claimed.id, { ...outcome, result })))
      throw new ProtocolError('turn-lost')
    // ADK does the same for a tool that returns nothing.
    const response = result === undefined ? { result } : toResponse(result)
    return { response, failed: outcome.by === 'failure' && outcome.hidden }
  }

  async #describeRefusal(run: RunState, approvalId: string): Promise<Record<string, unknown>> {
    const approval = await this.#ledger.get(approvalId)
    if (!approval) return APPROVAL_UNAVAILABLE
    const ending = describeEnding(approval)
    // The call is pending again or runs elsewhere, so this run must not report it.
    if (!ending) throw run.markLost()
    run.decided.set(ending.note.toolCallId, ending.note)
    return ending.response
  }

  /** A result that ADK never takes, for example in a deleted chat, is in the ledger and need not be kept. */
  #forgetOldest(): void {
    const [oldest] = this.#started.keys()
    if (this.#started.size > MAX_STARTED && oldest !== undefined) this.#started.delete(oldest)
  }
}

function takeResponse(
  run: RunState,
  toolCallId: string,
  { response, failed }: CallResponse,
): Record<string, unknown> {
  if (failed) run.failed.add(toolCallId)
  return response
}

const MAX_STARTED = 1_000

/** Ends the run if another process has taken over the call. */
async function orMarkLost<Outcome>(outcome: Promise<Outcome>, run: RunState): Promise<Outcome> {
  try {
    return await outcome
  } catch (thrown) {
    throw thrown instanceof ProtocolError && thrown.code === 'turn-lost' ? run.markLost() : thrown
  }
}

function ignoreError(): void {}
