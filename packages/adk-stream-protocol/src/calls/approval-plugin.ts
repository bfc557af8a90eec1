import type {
  BaseTool,
  Context,
  Event,
  InvocationContext,
  LlmRequest,
  LlmResponse,
  PluginManager,
} from '@google/adk'
import { isBaseTool } from '@google/adk'

import { findEnding, hasOpenCall, hasTransferred } from '../agent/adk-workarounds/agent-flow.ts'
import { QuietPlugin } from '../agent/adk-workarounds/plugin-callbacks.ts'
import {
  APPROVAL_UNAVAILABLE,
  ApprovalUnavailableError,
  makeStorable,
  PENDING,
  toApprovedNote,
  toResponse,
  toStoredResponse,
} from '../agent/call-responses.ts'
import { isAgentWaiting } from '../agent/tree/find-steps.ts'
import { restoreCallNames } from '../agent/events/input-calls.ts'
import { asksForApproval } from '../agent/history/open-questions.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { isModelOutput } from '../agent/tool-call.ts'
import { explainModelError } from '../agent/translate/model-outcome.ts'
import type { Approval } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { ProtocolError } from '../protocol/errors.ts'
import {
  annotateEndings,
  noteModelTimes,
  noteUnchecked,
  storeHandover,
  storeSilence,
} from './approval-events.ts'
import { AgentCalls } from './agents/agent-calls.ts'
import { storeRequests } from './approval-requests.ts'
import { recordOutcome } from './approved-call.ts'
import type { CallHost, TermsOptions } from './call-kind.ts'
import { CallRunner } from './call-runner.ts'
import { checkCall, confirmUnasked, resolveQuestionTerms } from './call-terms.ts'
import { offerOf } from './client-tool.ts'
import { decideUnasked } from './decide-unasked.ts'
import { readFollowUp } from './follow-up-results.ts'
import { pauseForFollowUp, requestFollowUp } from './follow-ups.ts'
import { nextCall } from './next-call.ts'
import type { CallOutcome } from './run-call.ts'
import { RunRegistry, storeNote } from './run-state.ts'
import type { RunState } from './run-state.ts'
import { ToolErrors } from './run-call.ts'

interface ApprovalPluginOptions extends TermsOptions {
  readonly ledger: Ledger
  /** Whether the model may read the message of an error that a tool threw. */
  readonly exposeErrors: boolean
  /** The agent that the runner runs. A call under any other root is part of a workflow. */
  readonly root: unknown
  /** Receives errors that ADK turns into events or tool results, and errors of policies. */
  readonly onError: (error: unknown) => void
}

/**
 * Intercepts all tool calls and model calls of a run. A call that needs approval becomes ADK's confirmation request,
 * and runs only after it was claimed in the ledger. This must be the first plugin, because a plugin that returns a
 * value hides the call from later ones.
 */
export class ApprovalPlugin extends QuietPlugin {
  readonly runner: CallRunner
  /** The plugin that responds for tools that threw. It must be the last one. */
  readonly errors: ToolErrors
  /** Runs the agents that the agent of the chat uses. */
  readonly agents: AgentCalls
  readonly runs = new RunRegistry()
  readonly #options: ApprovalPluginOptions
  readonly #host: CallHost

  constructor(options: ApprovalPluginOptions) {
    super('adk-stream-protocol:approval-gate')
    this.#options = options
    const { ledger, exposeErrors, onError } = options
    this.#host = {
      ...options,
      askFollowUp: (call, approval) => this.#askFollowUp(call, approval),
    }
    const onFailure = (call: ToolCall): void => this.#recordFailure(call)
    this.errors = new ToolErrors({ exposeErrors, onFailure, onError, onNestedError: onError })
    this.runner = new CallRunner(ledger, this.errors, options)
    this.agents = new AgentCalls({
      ...options,
      claim: async (call, run) => this.runner.runForAdk(call, run),
      runs: this.runs,
      termsOf: (run) => this.#termsOf(run),
      record: async ({ toolContext }, run, outcome) => {
        const approval = this.runner.takeApprovalRunByAdk(toolContext)
        return this.#record(run, toolContext, { approval, ...outcome })
      },
    })
  }

  override async beforeRunCallback({
    invocationContext,
  }: {
    invocationContext: InvocationContext
  }): Promise<undefined> {
    this.agents.prepareRun(invocationContext)
    this.runs.find(invocationContext)?.onStored?.()
  }

  override async beforeToolCallback(call: ToolCall): Promise<Record<string, unknown> | undefined> {
    const { tool, toolContext } = call
    await this.agents.prepareCall(call)
    // ADK 2.0.0 also finds inherited properties such as `constructor` among the tools.
    if (!isBaseTool(tool)) throw new ProtocolError('unknown-tool')
    this.errors.guard(call)
    const ranHere = this.runner.ranHere(toolContext)
    const run = ranHere ? undefined : this.runs.find(toolContext.invocationContext)
    this.#options.kinds.prepare(call, { run, host: this.#host })
    if (ranHere) return undefined
    const hasId = toolContext.functionCallId !== undefined
    if (run && hasId && (await this.agents.runInPlace(call, run))) return undefined
    if (toolContext.toolConfirmation) {
      if (!run) return APPROVAL_UNAVAILABLE
      return (await this.runner.resumeFollowUp(call, run)) ?? this.runner.runForAdk(call, run)
    }
    return this.#gate(call, run)
  }

  /** Lets a call run, requests approval for it, or refuses it. Returns undefined if it runs. */
  async #gate(
    call: ToolCall,
    run: RunState | undefined,
  ): Promise<Record<string, unknown> | undefined> {
    const { tool, toolContext } = call
    const toolCallId = toolContext.functionCallId
    // A runner of another program has a session in which no client can respond.
    const canAsk = run !== undefined && toolCallId !== undefined && this.agents.canWait(call, run)
    const chatSession = run?.rootOf(toolContext.invocationContext).session
    const check = await checkCall(call, this.#termsOf(run), chatSession)
    const [, [effect]] = nextCall({ name: 'new' }, { type: 'checked', check, canWait: canAsk })
    if (effect?.type === 'run') {
      await confirmUnasked(call)
      if (run?.isOfChat) await storeChecked(call, run)
      return undefined
    }
    if (effect?.type === 'request' && run) return this.#request(call, run, effect.terms)
    const response = effect?.type === 'settle' ? effect.response : APPROVAL_UNAVAILABLE
    if (response === APPROVAL_UNAVAILABLE) this.#reportUnavailable(tool)
    return response
  }

  /** Requests approval for a call, unless an earlier decision decides it. Returns undefined if it runs. */
  async #request(
    call: ToolCall,
    run: RunState,
    terms: ResolvedTerms,
  ): Promise<Record<string, unknown> | undefined> {
    const { tool, toolContext } = call
    // The model of the chat does not see the calls of an agent that is used as a tool.
    const unasked = run.isOfChat ? await this.#decideUnasked(call, run, terms) : undefined
    if (unasked) return unasked.response
    // ADK ends the run with a confirmation request, and `storeRequests` stores the approval.
    run.asking.set(toolContext.functionCallId ?? '', terms)
    toolContext.requestConfirmation({ hint: terms.hint ?? `Approve ${tool.name}?` })
    toolContext.actions.skipSummarization = true
    return PENDING
  }

  /**
   * Lets an earlier decision of a person decide a call. `response` is undefined if ADK runs it. Returns undefined if somebody has to be
   * asked.
   */
  async #decideUnasked(
    call: ToolCall,
    run: RunState,
    terms: ResolvedTerms,
  ): Promise<{ readonly response: Record<string, unknown> | undefined } | undefined> {
    const { messageId } = run
    const { session } = call.toolContext.invocationContext
    const unasked = await decideUnasked(call, { messageId, terms, session }, this.#options)
    if (!unasked) return undefined
    const { approval, note } = unasked
    try {
      await storeNote(run.rootOf(call.toolContext.invocationContext), { unasked: [note] })
    } catch (error) {
      this.#options.ledger.abandon(approval.id)
      throw error
    }
    const [, [effect]] = nextCall({ name: 'requested' }, { type: 'request-stored', approval })
    return { response: await this.runner.perform(effect, call, run) }
  }

  /** Prepares a call that ADK does not run. If it calls an `AgentTool`, its agent runs in place of the tool. */
  prepareOutsideAdk(call: ToolCall, outer: RunState, plugins: PluginManager): void {
    const { canWait = false, askFollowUp = this.#host.askFollowUp } = outer.outside ?? {}
    this.#options.kinds.prepare(call, { run: outer, host: { ...this.#host, askFollowUp } })
    this.agents.runOutsideAdk(call, { outer, canWait, plugins })
  }

  /** Returns the terms of the calls of a run. Calls that ADK does not run have a deadline of their own. */
  #termsOf(run: RunState | undefined): TermsOptions {
    const { outside } = run?.chatRun ?? {}
    return outside ? { ...this.#options, deadlineMs: outside.deadlineMs } : this.#options
  }

  override async afterToolCallback(
    call: ToolCall & { readonly result: Record<string, unknown> | null | undefined },
  ): Promise<Record<string, unknown> | undefined> {
    const { tool, toolContext, result } = call
    const run = this.runs.find(toolContext.invocationContext)
    const toolCallId = toolContext.functionCallId ?? ''
    const approval = this.runner.takeApprovalRunByAdk(toolContext)
    const isRecorded = await this.#record(run, toolContext, { approval, by: 'tool', result })
    const question = await this.#findQuestion(call, run)
    const [, [effect]] = nextCall(
      { name: 'running', ...(approval && { approval }) },
      {
        type: 'ran',
        response: toResponse(result),
        isRecorded,
        question,
        // A call without a result was handed over to a client or to the application. The approval itself is complete.
        isOpen: !result,
      },
    )
    if (effect?.type === 'lose') throw toLoss(run)
    if (question === 'unavailable') {
      // ADK would show a request that cannot be decided.
      toolContext.actions.requestedToolConfirmations = {}
      this.#reportUnavailable(tool)
      return APPROVAL_UNAVAILABLE
    }
    if (!run || toolContext.functionCallId === undefined) return undefined
    if (approval && !result)
      await storeHandover(run, toolContext.invocationContext, {
        toolCallId,
        ...offerOf(tool, toolCallId),
      })
    if (effect?.type === 'request') run.asking.set(toolCallId, effect.terms)
    if (result) run.results.set(toolCallId, { name: tool.name, response: toStoredResponse(result) })
    await this.#pauseIfAsking(call, run)
    return undefined
  }

  /** Pauses an approved call that has asked a person for something else. */
  async #pauseIfAsking(
    call: ToolCall & { readonly result: unknown },
    run: RunState,
  ): Promise<void> {
    const question = readFollowUp(call.result)
    if (!question) return
    const toolCallId = call.toolContext.functionCallId ?? ''
    const approval = await this.#options.ledger.findByCall(question.chat, toolCallId)
    if (approval) pauseForFollowUp(call, run, { approval, question })
  }

  /** Asks what a call that was approved needs besides. */
  async #askFollowUp(call: ToolCall, approval: Approval): Promise<Record<string, unknown>> {
    const { ledger, kinds } = this.#options
    const run = this.runs.find(call.toolContext.invocationContext)
    const resolved = await resolveQuestionTerms(call, { hint: '' }, this.#termsOf(run))
    const terms = resolved && kinds.toTerms(call.toolContext, resolved)
    const { onAsk } = run?.chatRun.outside ?? {}
    return terms ? requestFollowUp(call, { approval, terms, ledger, onAsk }) : APPROVAL_UNAVAILABLE
  }

  override async onToolErrorCallback(
    call: ToolCall & { readonly error: Error },
  ): Promise<undefined> {
    const { toolContext, error } = call
    // The nested session has already reported this error.
    if (!(error instanceof ApprovalUnavailableError)) this.#options.onError(error)
    if (this.runner.ranHere(toolContext)) return
    const run = this.runs.find(toolContext.invocationContext)
    // An agent inside has lost a call to another process.
    run?.throwIfLost()
    const approval = this.runner.takeApprovalRunByAdk(toolContext)
    const failure = { by: 'failure', result: undefined, error, hidden: false } as const
    if (!(await this.#record(run, toolContext, { approval, ...failure }))) throw toLoss(run)
  }

  /** Records that clients may not see the response of a call. */
  #recordFailure({ toolContext }: ToolCall): void {
    const { functionCallId, invocationContext } = toolContext
    if (functionCallId !== undefined) this.runs.find(invocationContext)?.failed.add(functionCallId)
  }

  /** Records that the model has streamed a token. Called for every token, by ADK or in place of `onEventCallback`. */
  noteToken(event: Event): void {
    const { invocationId, branch } = event
    this.agents.confine(event)
    this.runs.findByInvocation(invocationId)?.modelStreamed(branch)
  }

  override async onEventCallback(params: {
    invocationContext: InvocationContext
    event: Event
  }): Promise<Event | undefined> {
    const { invocationContext, event } = params
    if (event.partial) {
      this.noteToken(event)
      return undefined
    }
    this.agents.confine(event)
    const run = this.runs.find(invocationContext)
    if (!run) return undefined
    run.markEvent(event.branch)
    if (isModelOutput(event)) {
      noteModelTimes(run, event)
      if (run.isOfChat) noteUnchecked(event)
    }
    for (const error of makeStorable(event)) this.#options.onError(error)
    if ((event.content?.parts ?? []).length === 0) return undefined
    const yielded = { run, context: invocationContext, event }
    const rest = await this.agents.storePauses(yielded)
    if (rest) return annotateEndings(run, rest) ?? rest
    if (asksForApproval(event)) return storeRequests(yielded, this.#options)
    return (await this.agents.storeQuestions(yielded)) ?? annotateEndings(run, event)
  }

  override async beforeModelCallback(params: {
    callbackContext: Context
    llmRequest: LlmRequest
  }): Promise<LlmResponse | undefined> {
    const { callbackContext, llmRequest } = params
    const run = this.runs.find(callbackContext.invocationContext)
    // AP8: the model continues when all responses that its turn waits for have arrived. An empty response ends the
    // run.
    const { invocationContext, agentName } = callbackContext
    if (run?.cause === 'responses' && isTurnWaiting(callbackContext, run)) {
      run.hold(invocationContext, agentName)
      return {}
    }
    run?.unhold(invocationContext, agentName)
    const ending = findEnding(callbackContext)
    if (ending === 'result' || (ending === 'nothing' && run?.cause === 'responses')) return {}
    if (hasOpenCall(callbackContext, llmRequest.contents) || hasTransferred(callbackContext))
      return {}
    restoreCallNames(llmRequest.contents)
    run?.modelStarted(callbackContext.invocationContext.branch)
    return undefined
  }

  override async onModelErrorCallback(params: {
    callbackContext: Context
    error: Error
  }): Promise<undefined> {
    // Stopping a turn aborts its request. That is not an error.
    if (params.callbackContext.abortSignal?.aborted) return
    this.#options.onError(explainModelError(params.error))
  }

  /** Ends a turn whose model has sent neither a reply nor a finish reason, for example because it has blocked the prompt. */
  override async afterRunCallback(params: { invocationContext: InvocationContext }): Promise<void> {
    const { invocationContext } = params
    const run = this.runs.find(invocationContext)
    if (!run?.isOfChat || !run.hasSilentModel || invocationContext.abortSignal?.aborted) return
    await storeSilence(run, invocationContext)
  }

  /** Reports a call that needs approval where ADK cannot wait for it. */
  #reportUnavailable({ name }: BaseTool): void {
    this.#options.onError(
      new Error(
        `The tool ${name} needs approval, but ADK cannot wait for an approval here. The call did not run.`,
      ),
    )
  }

  /** Records the outcome of an approved call that ADK ran. Returns false if another process has settled the call. */
  async #record(
    run: RunState | undefined,
    toolContext: Context,
    { approval, ...outcome }: CallOutcome & { readonly approval: Approval | undefined },
  ): Promise<boolean> {
    if (!approval) return true
    const toolCallId = toolContext.functionCallId ?? ''
    run?.executing.delete(toolCallId)
    const ended = await recordOutcome(this.#options.ledger, approval, {
      outcome,
      judge: this.#options,
    }).catch((error: unknown) => {
      run?.markUnstored(error)
      throw error
    })
    // A call without a result was handed over: it has not ended.
    const hasResult = outcome.by === 'failure' || outcome.result
    if (ended && hasResult) run?.decided.set(toolCallId, toApprovedNote(ended))
    return ended !== undefined
  }

  /** Returns the terms of an approval that a tool requested itself, with `toolContext.requestConfirmation()`. It has run up to that request. */
  async #findQuestion(
    call: ToolCall,
    run: RunState | undefined,
  ): Promise<ResolvedTerms | 'unavailable' | undefined> {
    const toolCallId = call.toolContext.functionCallId ?? ''
    // This plugin may have requested the confirmation.
    const question = call.toolContext.actions.requestedToolConfirmations[toolCallId]
    if (question && !this.agents.canWait(call, run)) return 'unavailable'
    if (!question || !run || run.asking.has(toolCallId) || run.pausing.has(toolCallId))
      return undefined
    const terms = await resolveQuestionTerms(call, question, this.#termsOf(run))
    return terms && this.#options.kinds.toTerms(call.toolContext, terms)
  }
}

/** Ends a run whose call another process has settled. */
function toLoss(run: RunState | undefined): Error {
  return run?.markLost() ?? new ProtocolError('turn-lost')
}

/** Whether an agent must wait for responses that the turn of its run waits for. */
function isTurnWaiting(
  { invocationContext, agentName }: Context,
  { messageId }: RunState,
): boolean {
  const { session, invocationId, branch } = invocationContext
  return isAgentWaiting(session.events, messageId, { invocationId, agentName, branch })
}

/** Stores that a long-running call needs no approval, and offers it to the client if its tool runs there. */
async function storeChecked({ tool, toolContext }: ToolCall, run: RunState): Promise<void> {
  const { functionCallId: id } = toolContext
  if (!tool.isLongRunning || id === undefined) return
  await storeNote(run.rootOf(toolContext.invocationContext), {
    checked: [id],
    ...offerOf(tool, id),
  })
}
