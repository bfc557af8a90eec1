import type {
  BaseTool,
  Context,
  Event,
  InvocationContext,
  LlmRequest,
  LlmResponse,
  PluginManager,
  Session,
} from '@google/adk'
import { isAgentTool, isBaseTool, ToolConfirmation } from '@google/adk'
import type { Content, Part } from '@google/genai'

import type { Approval } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { previewApproval } from '../approvals/preview.ts'
import { isRefusal } from '../approvals/refusal.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { wrapRun } from '../agent/adk-workarounds/guard-tool.ts'
import { canWaitIn } from '../agent/adk-workarounds/can-wait.ts'
import { controlRemoteAgents } from '../agent/adk-workarounds/remote-agent.ts'
import { confineRemoteEvent } from '../agent/adk-workarounds/remote-events.ts'
import { untilStored } from '../agent/adk-workarounds/run-nodes.ts'
import { resumeSteps } from '../agent/adk-workarounds/run-steps.ts'
import {
  PENDING,
  toApprovedNote,
  toResponse,
  APPROVAL_UNAVAILABLE,
  ApprovalUnavailableError,
} from '../agent/call-responses.ts'
import { recordOutcome } from './approved-call.ts'
import type { TermsOptions } from './call-terms.ts'
import { withUserText } from './user-text.ts'
import { checkCall, needsConfirmation, resolveQuestionTerms } from './call-terms.ts'
import { CallRunner } from './call-runner.ts'
import type { AskedNote, PausedNote } from '../agent/history/event-notes.ts'
import { writeNotes } from '../agent/history/event-notes.ts'
import { isInterrupt, restoreCallNames } from '../agent/history/input-calls.ts'
import { findPause } from '../agent/history/open-questions.ts'
import { isModelOutput } from '../agent/history/model-output.ts'
import {
  asksForApproval,
  storeResponses,
  annotateEndings,
  noteModelTimes,
  storeHandover,
  readOriginalCall,
  toAskedNote,
} from './approval-events.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { NestedAgentOptions } from './nested-agent.ts'
import { agentOf, runNestedAgent } from './nested-agent.ts'
import { findPausedAgain, pauseAgain } from './pause-again.ts'
import { restorePause } from './interrupted-agents.ts'
import { pauseForSignIn, readLateSignIn, requestLateSignIn } from './late-sign-ins.ts'
import { Elicitations } from './elicitations.ts'
import { nextCall } from './next-call.ts'
import { resolveNodeQuestion } from './node-questions.ts'
import { RemotePauses } from './remote-pauses.ts'
import type { RunCause } from './run-state.ts'
import { RunState } from './run-state.ts'
import { QuietPlugin } from '../agent/adk-workarounds/plugin-callbacks.ts'
import { hasTransferred, pickAgent, findEnding } from '../agent/adk-workarounds/agent-flow.ts'
import type { CallOutcome } from './run-call.ts'
import { isAgentWaiting } from '../agent/history/find-steps.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import type { CredentialSource } from './sign-in-calls.ts'
import { SignInCalls } from './sign-in-calls.ts'
import { ToolErrors } from './tool-errors.ts'
import { type AppChatRef, toChatKey } from '../shared/chat-ref.ts'

export interface ApprovalPluginOptions extends TermsOptions {
  readonly ledger: Ledger
  /** The credentials of people who signed in. Undefined if no tool may ask for any. */
  readonly credentials?: CredentialSource | undefined
  /** Whether the model may read the message of an error that a tool threw. */
  readonly exposeErrors: boolean
  /** Whether MCP servers may ask people during a call. */
  readonly elicits: boolean
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
  /** Runs the remote agents of the runner. */
  readonly remote: RemotePauses
  readonly #options: ApprovalPluginOptions
  readonly #signIns: SignInCalls | undefined
  readonly #elicitations: Elicitations | undefined
  readonly #runs = new Map<string, RunState>()
  /** Runs by ADK invocation id. The tools of an abandoned run may still end while its chat has a new run. */
  readonly #invocations = new Map<string, RunState>()
  /** Runs of agents that are used as tools, by their sessions. */
  readonly #nested = new WeakMap<Session, RunState>()

  constructor(options: ApprovalPluginOptions) {
    super('adk-stream-protocol:approval-gate')
    this.#options = options
    const { ledger, exposeErrors, onError, credentials } = options
    this.#signIns =
      credentials && new SignInCalls(credentials, (call, approval) => this.#askLate(call, approval))
    this.#elicitations = options.elicits ? new Elicitations(options) : undefined
    const onFailure = (call: ToolCall): void => this.#recordFailure(call)
    this.errors = new ToolErrors({ exposeErrors, onFailure, onError, onNestedError: onError })
    this.runner = new CallRunner(ledger, this.errors, { ...options, signIns: this.#signIns })
    this.remote = new RemotePauses({
      ledger,
      onError,
      runner: this.runner,
      runOf: (context) => this.#runOf(context),
      canWait: (call, run) => this.#canWait(call, run),
      termsOf: (run) => this.#termsOf(run),
      record: async ({ toolContext }, run, outcome) => {
        const approval = this.runner.takeApprovalRunByAdk(toolContext)
        return this.#record(run, toolContext, { approval, ...outcome })
      },
    })
  }

  /** Whether events can be shown while a call runs. */
  get elicits(): boolean {
    return this.#elicitations !== undefined
  }

  /** Registers a run of a chat. The caller must close it. */
  open(chat: AppChatRef, messageId: string, cause: RunCause): RunState {
    const run = new RunState(messageId, cause)
    this.#runs.set(toChatKey(chat), run)
    return run
  }

  /** Returns the id of the message that a run of a chat writes. Returns undefined for other runs, such as those of an `AgentTool`. */
  messageIdOf(context: InvocationContext): string | undefined {
    const run = this.#runOf(context)
    return run?.nested ? undefined : run?.messageId
  }

  /** Whether an agent waits for the responses of other calls of its turn before its model continues. */
  isHeld(context: InvocationContext, agentName: string): boolean {
    return this.#runOf(context)?.held.has(toHeldKey(context, agentName)) === true
  }

  close(chat: AppChatRef, run: RunState): void {
    if (this.#runs.get(toChatKey(chat)) === run) this.#runs.delete(toChatKey(chat))
    this.#release(run)
  }

  #release(run: RunState): void {
    for (const [id, bound] of this.#invocations) if (bound === run) this.#invocations.delete(id)
  }

  override async beforeRunCallback({
    invocationContext,
  }: {
    invocationContext: InvocationContext
  }): Promise<undefined> {
    const run = this.#runOf(invocationContext)
    controlRemoteAgents(invocationContext.agent?.rootAgent)
    if (run?.cause === 'responses' && !resumeSteps(invocationContext, run.messageId))
      pickAgent(invocationContext)
    run?.onStored?.()
  }

  override async beforeToolCallback(call: ToolCall): Promise<Record<string, unknown> | undefined> {
    const { tool, toolContext } = call
    await untilStored(toolContext.invocationContext)
    // ADK 2.0.0 also finds inherited properties such as `constructor` among the tools.
    if (!isBaseTool(tool)) throw new ProtocolError('unknown-tool')
    this.errors.guard(call)
    this.#signIns?.prepare(call)
    if (this.runner.ranHere(toolContext)) return undefined
    const run = this.#runOf(toolContext.invocationContext)
    const toolCallId = toolContext.functionCallId
    if (run) this.#elicitations?.prepare(call, run)
    if (run && toolCallId !== undefined && (await this.#nest(call, run))) return undefined
    if (toolContext.toolConfirmation) {
      if (!run) return APPROVAL_UNAVAILABLE
      return (await this.runner.resumeSignIn(call, run)) ?? this.runner.runForAdk(call, run)
    }
    // A runner of another program has a session in which no client can respond.
    const canAsk = run !== undefined && toolCallId !== undefined && this.#canWait(call, run)
    const check = await checkCall(call, this.#termsOf(run), run?.nested?.root.session)
    const [, [effect]] = nextCall({ name: 'new' }, { type: 'checked', check, canWait: canAsk })
    if (effect?.type === 'run') {
      // The policy of the host overrides the declaration of the tool. ADK would request approval otherwise.
      if (await needsConfirmation(call))
        toolContext.toolConfirmation = new ToolConfirmation({ confirmed: true })
      return undefined
    }
    if (effect?.type === 'request') {
      // ADK ends the run with a confirmation request, and `#ask` stores the approval.
      run?.asking.set(toolCallId ?? '', effect.terms)
      toolContext.requestConfirmation({ hint: effect.terms.hint ?? `Approve ${tool.name}?` })
      toolContext.actions.skipSummarization = true
      return PENDING
    }
    const response = effect?.type === 'settle' ? effect.response : APPROVAL_UNAVAILABLE
    if (response === APPROVAL_UNAVAILABLE) this.#reportUnavailable(tool)
    return response
  }

  /** Runs the agent of an `AgentTool` in place of ADK. Returns true if the call only resumes after a pause, which needs no approval. */
  async #nest(call: ToolCall, outer: RunState): Promise<boolean> {
    const { toolConfirmation } = call.toolContext
    const { ledger } = this.#options
    const pause = toolConfirmation
      ? (findPauseOf(call) ?? (await restorePause(call, outer, ledger)))
      : undefined
    const canCallWait = this.#canWait(call, outer)
    return this.#replace(call, outer, { pause, canWait: canCallWait }) && pause !== undefined
  }

  /** Runs the agent of an `AgentTool` that a live model called. Does nothing for any other tool. */
  nestLive(call: ToolCall, outer: RunState, plugins: PluginManager): void {
    const { canWait: canCallWait = false } = outer.live ?? {}
    this.#elicitations?.prepare(call, outer)
    this.#replace(call, outer, { pause: findPauseOf(call), canWait: canCallWait, plugins })
  }

  /** Runs the agent of an `AgentTool` in place of the tool. Returns false for any other tool. */
  #replace(
    { tool, toolArgs, toolContext }: ToolCall,
    outer: RunState,
    options: Pick<NestedAgentOptions, 'pause' | 'canWait' | 'plugins'>,
  ): boolean {
    const agent = isAgentTool(tool) ? agentOf(tool) : undefined
    if (!agent) return false
    const request = { args: toolArgs, toolContext }
    wrapRun(toolContext, agent, () =>
      runNestedAgent(request, {
        ...options,
        agent,
        outer,
        ledger: this.#options.ledger,
        onOpen: (opened, run) => this.#nested.set(opened, run),
        onClose: (run) => this.#release(run),
      }),
    )
    return true
  }

  /** Returns the terms of the calls of a run. A live session has a deadline of its own. */
  #termsOf(run: RunState | undefined): TermsOptions {
    const { live } = run?.nested?.root.run ?? {}
    return live ? { ...this.#options, deadlineMs: live.deadlineMs } : this.#options
  }

  override async afterToolCallback(
    call: ToolCall & { readonly result: Record<string, unknown> | null | undefined },
  ): Promise<Record<string, unknown> | undefined> {
    const { tool, toolContext, result } = call
    const run = this.#runOf(toolContext.invocationContext)
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
    if (effect?.type === 'lose') throw run?.markLost() ?? new ProtocolError('turn-lost')
    if (question === 'unavailable') {
      // ADK would show a request that cannot be decided.
      toolContext.actions.requestedToolConfirmations = {}
      this.#reportUnavailable(tool)
      return APPROVAL_UNAVAILABLE
    }
    if (!run || toolContext.functionCallId === undefined) return undefined
    if (approval && !result) await storeHandover(run, toolContext.invocationContext, toolCallId)
    if (effect?.type === 'request') run.asking.set(toolCallId, effect.terms)
    if (result) run.results.set(toolCallId, { name: tool.name, response: toResponse(result) })
    const signIn = readLateSignIn(result)
    const asking = signIn && (await this.#options.ledger.findByCall(signIn.chat, toolCallId))
    if (signIn && asking) pauseForSignIn(call, run, { approval: asking, question: signIn })
    return undefined
  }

  /** Asks for the sign-in of a call that was approved. */
  async #askLate(call: ToolCall, approval: Approval): Promise<Record<string, unknown>> {
    const { ledger } = this.#options
    const resolved = await resolveQuestionTerms(call, { hint: '' }, this.#options)
    const terms = resolved && this.#signIns?.toTerms(call.toolContext, resolved)
    return terms ? requestLateSignIn(call, { approval, terms, ledger }) : APPROVAL_UNAVAILABLE
  }

  override async onToolErrorCallback(
    call: ToolCall & { readonly error: Error },
  ): Promise<undefined> {
    const { toolContext, error } = call
    // The nested session has already reported this error.
    if (!(error instanceof ApprovalUnavailableError)) this.#options.onError(error)
    if (this.runner.ranHere(toolContext)) return
    const run = this.#runOf(toolContext.invocationContext)
    // An agent inside has lost a call to another process.
    if (run?.loss) throw run.loss
    const approval = this.runner.takeApprovalRunByAdk(toolContext)
    const failure = { by: 'failure', result: undefined, error, hidden: false } as const
    if (!(await this.#record(run, toolContext, { approval, ...failure })))
      throw run?.markLost() ?? new ProtocolError('turn-lost')
  }

  /** Records that clients may not see the response of a call. */
  #recordFailure({ toolContext }: ToolCall): void {
    const { functionCallId, invocationContext } = toolContext
    if (functionCallId !== undefined) this.#runOf(invocationContext)?.failed.add(functionCallId)
  }

  /** Records that the model has streamed a token. Called for every token, by ADK or in place of `onEventCallback`. */
  noteToken(event: Event): void {
    const { invocationId, branch } = event
    confineRemoteEvent(event)
    this.#invocations.get(invocationId)?.modelStreamed(branch)
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
    confineRemoteEvent(event)
    const run = this.#runOf(invocationContext)
    if (!run) return undefined
    if (isModelOutput(event)) noteModelTimes(run, event)
    if ((event.content?.parts ?? []).length === 0) return undefined
    const toolCallIds = findPausedAgain(run, event)
    if (toolCallIds.length > 0) {
      const rest = await pauseAgain(run, invocationContext, { event, toolCallIds })
      return annotateEndings(run, rest) ?? rest
    }
    if (asksForApproval(event)) return this.#ask(run, invocationContext, event)
    return (await this.#askForNode(run, invocationContext, event)) ?? annotateEndings(run, event)
  }

  /** Stores the questions of a workflow node in the ledger before clients see them. Returns undefined if the event has none. */
  async #askForNode(
    run: RunState,
    context: InvocationContext,
    event: Event,
  ): Promise<Event | undefined> {
    const asked: AskedNote[] = []
    for (const { functionCall } of event.content?.parts ?? []) {
      if (!functionCall || run.nested || !isInterrupt(functionCall)) continue
      const question = await resolveNodeQuestion(functionCall, context, this.#options)
      run.asking.set(question.toolCallId, question.terms)
      const approval = await this.#requestApproval(run, context.session, question.request)
      if (!approval) throw new Error('The question of a workflow node cannot be asked.')
      const made = await previewApproval(approval, approval.chat.principalId, this.#options)
      asked.push(toAskedNote(approval, made))
    }
    if (asked.length === 0) return undefined
    const notes = { asked, messageId: run.messageId }
    return { ...event, customMetadata: writeNotes(notes, event.customMetadata) }
  }

  override async beforeModelCallback(params: {
    callbackContext: Context
    llmRequest: LlmRequest
  }): Promise<LlmResponse | undefined> {
    const { callbackContext, llmRequest } = params
    const run = this.#runOf(callbackContext.invocationContext)
    // AP8: the model continues when all responses that its turn waits for have arrived. An empty response ends the
    // run.
    const key = toHeldKey(callbackContext.invocationContext, callbackContext.agentName)
    if (run?.cause === 'responses' && isTurnWaiting(callbackContext, run)) {
      run.held.add(key)
      return {}
    }
    run?.held.delete(key)
    const ending = findEnding(callbackContext)
    if (ending === 'result' || (ending === 'nothing' && run?.cause === 'responses')) return {}
    // ADK 2.0.0 calls the model again after a streamed long-running call or transfer, because the usage report that
    // follows counts as the last event. Gemini rejects a conversation that ends with an unanswered call, and a
    // transfer would get two replies.
    const isOver = endsOnCall(llmRequest.contents) || endsOnRequest(callbackContext)
    if (isOver || hasTransferred(callbackContext)) return {}
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
    this.#options.onError(params.error)
  }

  #canWait(call: ToolCall, run: RunState | undefined): boolean {
    const { agent: root, canWait: canCallerWait = true } = run?.nested ?? {
      agent: this.#options.root,
    }
    return canCallerWait && canWaitIn(root, call)
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
    if (question && !this.#canWait(call, run)) return 'unavailable'
    if (!question || !run || run.asking.has(toolCallId) || run.pausing.has(toolCallId))
      return undefined
    const terms = await resolveQuestionTerms(call, question, this.#termsOf(run))
    return terms && (this.#signIns?.toTerms(call.toolContext, terms) ?? terms)
  }

  /** Stores the approval requests of an event in the ledger before clients see them (AP2). */
  async #ask(run: RunState, context: InvocationContext, event: Event): Promise<Event> {
    const asked: AskedNote[] = []
    const paused: PausedNote[] = []
    const parts: Part[] = []
    for (const part of event.content?.parts ?? []) {
      const pause = takePause(run, part)
      if (pause) {
        paused.push(pause)
        parts.push(part)
        continue
      }
      const approval = await this.#requestApproval(run, context.session, part)
      if (!approval) continue
      const made = await previewApproval(approval, approval.chat.principalId, this.#options)
      asked.push(toAskedNote(approval, made))
      parts.push(part)
    }
    const pending = [...asked, ...paused].map(({ toolCallId }) => toolCallId)
    await storeResponses(run, context, { event, pending })
    const customMetadata = writeNotes(
      { asked, messageId: run.messageId, ...(paused.length > 0 && { paused }) },
      event.customMetadata,
    )
    const { content, ...rest } = event
    // Gemini rejects content without parts, in this turn and in all later ones.
    return { ...rest, ...(parts.length > 0 && { content: { ...content, parts } }), customMetadata }
  }

  async #requestApproval(
    run: RunState,
    session: Session,
    { functionCall }: Part,
  ): Promise<Approval | undefined> {
    const original = readOriginalCall(functionCall?.args)
    const terms = original && run.asking.get(original.id)
    if (!terms || functionCall?.id === undefined) return undefined
    run.asking.delete(original.id)
    const { deadlineMs, ...rest } = terms
    const { live } = run.nested?.root.run ?? {}
    live?.onAsk(original.id)
    const requested = await this.#options.ledger.request({
      id: functionCall.id,
      chat: chatOf(session),
      messageId: run.messageId,
      toolCallId: original.id,
      toolName: original.name,
      args: original.args,
      terms: {
        // The user wrote to the agent of the chat, not to an agent that is used as a tool.
        ...withUserText(rest, (run.nested?.root.session ?? session).events, run.messageId),
        ...(run.nested && { path: run.nested.path }),
      },
      deadlineMs,
      ...(live && { live: true }),
    })
    if (!isRefusal(requested)) return requested
    const refused = { type: 'request-refused', refusal: requested } as const
    const [, [effect]] = nextCall({ name: 'requested' }, refused)
    if (effect?.type === 'settle')
      run.results.set(original.id, { name: original.name, response: effect.response })
    return undefined
  }

  #runOf({ session, invocationId }: InvocationContext): RunState | undefined {
    const run =
      this.#nested.get(session) ??
      this.#invocations.get(invocationId) ??
      this.#runs.get(toChatKey(chatOf(session)))
    if (run) this.#invocations.set(invocationId, run)
    return run
  }
}

/** Returns the last pause of a call that runs an agent. Returns undefined for a new call. */
function findPauseOf({ toolContext }: ToolCall): PausedNote | undefined {
  const { session } = toolContext.invocationContext
  return findPause(session.events, toolContext.functionCallId ?? '')
}

/** Returns the note for a call that waits for approvals inside its agent. Returns undefined for any other call. */
function takePause(run: RunState, { functionCall }: Part): PausedNote | undefined {
  const toolCallId = readOriginalCall(functionCall?.args)?.id ?? ''
  const confirmationId = functionCall?.id
  const pause = confirmationId === undefined ? undefined : run.takePause(toolCallId)
  return pause && confirmationId !== undefined
    ? { toolCallId, confirmationId, ...pause }
    : undefined
}

/** Whether an agent must wait for responses that the turn of its run waits for. */
function isTurnWaiting(
  { invocationContext, agentName }: Context,
  { messageId }: RunState,
): boolean {
  const { session, invocationId, branch } = invocationContext
  return isAgentWaiting(session.events, messageId, { invocationId, agentName, branch })
}

function toHeldKey({ branch = '' }: InvocationContext, agentName: string): string {
  return `${branch} ${agentName}`
}

function endsOnCall(contents: readonly Content[]): boolean {
  return contents.at(-1)?.parts?.some((part) => part.functionCall !== undefined) === true
}

/** Whether the last event of the agent is one of ADK's own requests to the client, which ADK hides from the model. */
function endsOnRequest({ invocationContext, invocationId, agentName }: Context): boolean {
  const last = invocationContext.session.events.findLast(
    (event) => event.invocationId === invocationId && (event.content?.parts ?? []).length > 0,
  )
  if (last?.author !== agentName) return false
  const names = last.content?.parts?.map(({ functionCall }) => functionCall?.name) ?? []
  return names.some((name) => name?.startsWith('adk_request_') === true)
}
