import type { Context } from '@google/adk'

import type { Approval } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { Refusal } from '../approvals/refusal.ts'
import { isRefusal } from '../approvals/refusal.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { mergeContext } from './merge-context.ts'
import { describeEnding, toResponse, UNASKABLE } from '../agent/call-responses.ts'
import { confirmCall, editOf, recordOutcome, resultOf, toApprovedNote } from './approved-call.ts'
import type { DecidedNote } from '../agent/history/event-notes.ts'
import { chatOf } from './session-chat.ts'
import type { RunState } from './run-state.ts'
import { runCall } from './run-call.ts'
import { toError } from '../agent/adk-workarounds/to-error.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import type { ToolErrors } from './tool-errors.ts'

/** A call that was started at its decision. */
interface BegunCall {
  readonly toolContext: Context
  readonly note: DecidedNote
  /** What came of it; rejects when a callback of the host threw, which ends a run. */
  readonly outcome: Promise<DecidedOutcome>
}

interface DecidedOutcome {
  /** What ADK is to take for its result. */
  readonly response: Record<string, unknown>
  readonly failed: boolean
}

/** Runs what was decided, each call by one claim in the ledger: at its decision, or when ADK comes by with it. */
export class CallRunner {
  readonly #ledger: Ledger
  readonly #errors: ToolErrors
  /** By approval, until ADK comes by for the result. */
  readonly #begun = new Map<string, BegunCall>()
  readonly #claimed = new WeakSet<Context>()
  /** Calls that were claimed here and that ADK runs, with their approvals. */
  readonly #left = new WeakMap<Context, string>()

  constructor(ledger: Ledger, errors: ToolErrors) {
    this.#ledger = ledger
    this.#errors = errors
  }

  /** Whether the call of a context was claimed here, and its outcome is recorded here. */
  owns(toolContext: Context): boolean {
    return this.#claimed.has(toolContext)
  }

  /** The approval of a call that ADK ran and that has ended, once: its outcome is to be recorded, also when its run is over. */
  takeLeft(toolContext: Context): string | undefined {
    const approvalId = this.#left.get(toolContext)
    this.#left.delete(toolContext)
    return approvalId
  }

  /** Whether this process has started a call whose result ADK has not asked for. */
  hasBegun(approvalId: string): boolean {
    return this.#begun.has(approvalId)
  }

  /** Resolves when such a call has ended. */
  async ended(approvalId: string): Promise<void> {
    await this.#begun.get(approvalId)?.outcome.catch(ignore)
  }

  /** Claims a call and starts it, without waiting for its end; false when the ledger does not let it. */
  async begin(call: ToolCall): Promise<boolean> {
    const approval = await this.#find(call)
    if (approval?.state.name !== 'approved') return false
    const approvalId = approval.id
    const claimed = await this.#claim(approvalId, call)
    if (isRefusal(claimed)) return false
    const outcome = this.#run(claimed, call)
    // Whoever adopts the call hears of it.
    outcome.catch(ignore)
    this.#begun.set(approvalId, {
      toolContext: call.toolContext,
      note: toApprovedNote(claimed),
      outcome,
    })
    this.#forgetOldest()
    return true
  }

  /**
   * Gives ADK the result of a call that has begun; else claims it, and lets ADK run it as it is, or runs it as it was edited. What
   * the ledger does not let start has the ending that is on record.
   */
  async start(call: ToolCall, run: RunState): Promise<Record<string, unknown> | undefined> {
    const { toolContext } = call
    const toolCallId = toolContext.functionCallId ?? ''
    const approval = await this.#find(call)
    if (!approval) return UNASKABLE
    const begun = this.#begun.get(approval.id)
    if (begun) {
      this.#begun.delete(approval.id)
      run.decided.set(toolCallId, begun.note)
      const outcome = await orLose(begun.outcome, run)
      mergeContext(toolContext, begun.toolContext)
      return takeResponse(run, toolCallId, outcome)
    }
    const claimed = await this.#claim(approval.id, call)
    if (isRefusal(claimed)) return this.#refuse(run, approval.id)
    run.decided.set(toolCallId, toApprovedNote(claimed))
    if (editOf(claimed))
      return takeResponse(run, toolCallId, await orLose(this.#run(claimed, call), run))
    this.#left.set(toolContext, approval.id)
    // In parallel branches, a call may go on when the run has ended by another one.
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
  async #run(claimed: Approval, call: ToolCall): Promise<DecidedOutcome> {
    this.#claimed.add(call.toolContext)
    const edited = editOf(claimed)
    const toRun = { ...call, ...(edited && { toolArgs: { ...edited } }) }
    const outcome = await runCall(toRun, this.#errors).catch(async (thrown: unknown) => {
      // A callback of the host threw. ADK ends its run then; the call has not had its say, or has failed already.
      await this.#ledger.fail(claimed.id, String(toError(thrown)))
      throw thrown
    })
    const result = resultOf(outcome, edited)
    if (!(await recordOutcome(this.#ledger, claimed.id, { ...outcome, result })))
      throw new ProtocolError('turn-lost')
    // As ADK has it, for a tool that returned nothing.
    const response = result === undefined ? { result } : toResponse(result)
    return { response, failed: outcome.by === 'failure' && outcome.hidden }
  }

  async #refuse(run: RunState, approvalId: string): Promise<Record<string, unknown>> {
    const approval = await this.#ledger.get(approvalId)
    if (!approval) return UNASKABLE
    const ending = describeEnding(approval)
    // It is open again, or runs elsewhere: this run has nothing to tell of it.
    if (!ending) throw run.lose()
    run.decided.set(ending.note.toolCallId, ending.note)
    return ending.response
  }

  /** What nobody comes by for, as in a chat that was deleted, is on record and need not be kept. */
  #forgetOldest(): void {
    const [oldest] = this.#begun.keys()
    if (this.#begun.size > MAX_BEGUN && oldest !== undefined) this.#begun.delete(oldest)
  }
}

function takeResponse(
  run: RunState,
  toolCallId: string,
  { response, failed }: DecidedOutcome,
): Record<string, unknown> {
  if (failed) run.failed.add(toolCallId)
  return response
}

const MAX_BEGUN = 1_000

/** Ends the run of a call that was lost to another process. */
async function orLose<Outcome>(outcome: Promise<Outcome>, run: RunState): Promise<Outcome> {
  try {
    return await outcome
  } catch (thrown) {
    throw thrown instanceof ProtocolError && thrown.code === 'turn-lost' ? run.lose() : thrown
  }
}

function ignore(): void {}
