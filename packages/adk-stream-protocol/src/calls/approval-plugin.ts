import type {
  BaseTool,
  Context,
  Event,
  InvocationContext,
  LlmRequest,
  LlmResponse,
  Session,
} from '@google/adk'
import { isBaseTool, ToolConfirmation } from '@google/adk'
import type { Content, Part } from '@google/genai'

import type { Approval, ApprovalChat } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import { isRefusal } from '../approvals/refusal.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { canWait } from '../agent/adk-workarounds/can-wait.ts'
import {
  describeRefusedRequest,
  PENDING,
  toResponse,
  APPROVAL_UNAVAILABLE,
} from '../agent/call-responses.ts'
import { recordOutcome } from './approved-call.ts'
import type { ToolQuestion, TermsOptions } from './call-terms.ts'
import { checkCall, needsConfirmation, resolveQuestionTerms } from './call-terms.ts'
import { CallRunner } from './call-runner.ts'
import type { AskedNote } from '../agent/history/event-notes.ts'
import { writeNotes } from '../agent/history/event-notes.ts'
import {
  asksForApproval,
  storeResponses,
  annotateEndings,
  storeHandover,
  readOriginalCall,
  toAskedNote,
} from './approval-events.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { RunCause } from './run-state.ts'
import { RunState } from './run-state.ts'
import { QuietPlugin } from '../agent/adk-workarounds/quiet-plugin.ts'
import { AgentTransfers } from '../agent/adk-workarounds/agent-transfers.ts'
import { pickAgent } from '../agent/adk-workarounds/pick-agent.ts'
import type { CallOutcome } from './run-call.ts'
import { hasRepliedWithNothing } from '../agent/adk-workarounds/silent-model.ts'
import { splitTurns, replayTurn } from '../agent/history/replay-turn.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { ToolErrors } from './tool-errors.ts'
import { ApprovalUnavailableError } from '../agent/tool-failure.ts'
import { isWaiting } from '../agent/translate/translation.ts'

export interface ApprovalPluginOptions extends TermsOptions {
  readonly ledger: Ledger
  /** Whether the model is told the words of an error that a tool threw. */
  readonly exposeErrors: boolean
  /** The agent that is run; a call below another one is made inside a workflow. */
  readonly root: unknown
  /** Hears of errors that ADK turns into events or tool results, and of policies that fail. */
  readonly onError: (error: unknown) => void
}

/**
 * The one place through which every tool call and every model call of a run passes. A call that needs approval is asked about by
 * ADK's own confirmation request and starts only by a claim in the ledger. It must be the first plugin: one that returns a value
 * keeps the later ones from being asked.
 */
export class ApprovalPlugin extends QuietPlugin {
  readonly runner: CallRunner
  /** The plugin that answers for tools that threw. It must be the last one. */
  readonly errors: ToolErrors
  readonly #options: ApprovalPluginOptions
  readonly #transfers = new AgentTransfers()
  readonly #runs = new Map<string, RunState>()
  /** ADK's invocations by id: a run that was given up still ends its tools, while its chat has another run already. */
  readonly #invocations = new Map<string, RunState>()

  constructor(options: ApprovalPluginOptions) {
    super('adk-stream-protocol:approval-gate')
    this.#options = options
    const { ledger, exposeErrors, onError } = options
    const onFailure = (call: ToolCall): void => this.#noteFailure(call)
    this.errors = new ToolErrors({ exposeErrors, onFailure, onError, onNestedError: onError })
    this.runner = new CallRunner(ledger, this.errors)
  }

  /** Opens the gate for a run of a chat. Whoever opens it closes it. */
  open(chat: ApprovalChat, messageId: string, cause: RunCause): RunState {
    const run = new RunState(messageId, cause)
    this.#runs.set(keyOf(chat), run)
    return run
  }

  close(chat: ApprovalChat, run: RunState): void {
    if (this.#runs.get(keyOf(chat)) === run) this.#runs.delete(keyOf(chat))
    for (const [id, bound] of this.#invocations) if (bound === run) this.#invocations.delete(id)
  }

  override async beforeRunCallback({
    invocationContext,
  }: {
    invocationContext: InvocationContext
  }): Promise<undefined> {
    const run = this.#runOf(invocationContext)
    if (run?.cause === 'responses') pickAgent(invocationContext)
    run?.onStored?.()
  }

  override async beforeToolCallback(call: ToolCall): Promise<Record<string, unknown> | undefined> {
    const { tool, toolContext } = call
    // ADK 2.0.0 finds among the tools what every object has, such as `constructor`.
    if (!isBaseTool(tool)) throw new ProtocolError('unknown-tool')
    this.errors.guard(call)
    if (this.runner.ranHere(toolContext)) return undefined
    const run = this.#runOf(toolContext.invocationContext)
    const toolCallId = toolContext.functionCallId
    if (toolContext.toolConfirmation)
      return run ? this.runner.runForAdk(call, run) : APPROVAL_UNAVAILABLE
    const check = await checkCall(call, this.#options)
    if (check.verdict === 'refuse') return check.response
    if (check.verdict === 'run') {
      // The policy of the host has the last word on what the tool was declared with; ADK would ask nevertheless.
      if (await needsConfirmation(call))
        toolContext.toolConfirmation = new ToolConfirmation({ confirmed: true })
      return undefined
    }
    // A nested runner, as AgentTool makes one, has a session that no client can answer in.
    if (!run || toolCallId === undefined || !this.#canWait(call)) return this.#refuse(tool)
    const { terms } = check
    run.asking.set(toolCallId, terms)
    toolContext.requestConfirmation({ hint: terms.hint ?? `Approve ${tool.name}?` })
    toolContext.actions.skipSummarization = true
    return PENDING
  }

  override async afterToolCallback(
    call: ToolCall & { readonly result: Record<string, unknown> | null | undefined },
  ): Promise<Record<string, unknown> | undefined> {
    const { tool, toolContext, result } = call
    const run = this.#runOf(toolContext.invocationContext)
    const toolCallId = toolContext.functionCallId
    // Without a result, the call has been handed to somebody outside; what was approved has happened.
    const approvalId = await this.#record(run, toolContext, { by: 'tool', result })
    if (findQuestion(call) && !this.#canWait(call)) {
      // ADK would show a question that cannot be answered.
      toolContext.actions.requestedToolConfirmations = {}
      return this.#refuse(tool)
    }
    if (!run || toolCallId === undefined) return undefined
    if (approvalId !== undefined && !result)
      await storeHandover(run, toolContext.invocationContext, toolCallId)
    await this.#trackToolQuestion(run, call)
    if (result) run.results.set(toolCallId, { name: tool.name, response: toResponse(result) })
    return undefined
  }

  override async onToolErrorCallback(
    call: ToolCall & { readonly error: Error },
  ): Promise<undefined> {
    const { toolContext, error } = call
    // What an agent that is a tool could not ask has been reported.
    if (!(error instanceof ApprovalUnavailableError)) this.#options.onError(error)
    if (this.runner.ranHere(toolContext)) return
    const run = this.#runOf(toolContext.invocationContext)
    await this.#record(run, toolContext, { by: 'failure', result: undefined, error, hidden: false })
  }

  /** Notes that the response of a call has words that are not for clients. */
  #noteFailure({ toolContext }: ToolCall): void {
    const { functionCallId, invocationContext } = toolContext
    if (functionCallId !== undefined) this.#runOf(invocationContext)?.failed.add(functionCallId)
  }

  override async onEventCallback(params: {
    invocationContext: InvocationContext
    event: Event
  }): Promise<Event | undefined> {
    const { invocationContext, event } = params
    if (event.partial) return undefined
    const run = this.#runOf(invocationContext)
    const parts = event.content?.parts ?? []
    if (!run || parts.length === 0) return undefined
    return asksForApproval(event)
      ? this.#ask(run, invocationContext, event)
      : annotateEndings(run, event)
  }

  override async beforeModelCallback(params: {
    callbackContext: Context
    llmRequest: LlmRequest
  }): Promise<LlmResponse | undefined> {
    const { callbackContext, llmRequest } = params
    const run = this.#runOf(callbackContext.invocationContext)
    // AP8: the model goes on when everything that its turn waits for has come. An empty response ends the run.
    if (run?.cause === 'responses' && isTurnWaiting(callbackContext.invocationContext.session, run))
      return {}
    if (run?.cause === 'responses' && hasRepliedWithNothing(callbackContext)) return {}
    // ADK 2.0.0 asks the model again after a streamed long-running call or transfer, because the usage report that follows it
    // counts as the last event. Gemini refuses a conversation that ends on an unanswered call, and a transfer would be answered
    // twice.
    const isOver = endsOnCall(llmRequest.contents) || endsOnRequest(callbackContext)
    return isOver || this.#transfers.has(callbackContext) ? {} : undefined
  }

  override async onModelErrorCallback(params: {
    callbackContext: Context
    error: Error
  }): Promise<undefined> {
    // A turn that was stopped breaks off its request; that is no fault.
    if (params.callbackContext.abortSignal?.aborted) return
    this.#options.onError(params.error)
  }

  #canWait(call: ToolCall): boolean {
    return canWait(call, (agent) => agent === this.#options.root)
  }

  /** Refuses a call that needs approval where ADK cannot wait for it. */
  #refuse({ name }: BaseTool): Record<string, unknown> {
    this.#options.onError(
      new Error(
        `The tool ${name} needs approval, but ADK cannot wait for an approval here. The call did not run.`,
      ),
    )
    return APPROVAL_UNAVAILABLE
  }

  /** Records what came of a call that ADK ran for an approval; gives the approval. */
  async #record(
    run: RunState | undefined,
    toolContext: Context,
    outcome: CallOutcome,
  ): Promise<string | undefined> {
    const approvalId = this.runner.takeApprovalRunByAdk(toolContext)
    if (approvalId === undefined) return undefined
    run?.executing.delete(toolContext.functionCallId ?? '')
    if (await recordOutcome(this.#options.ledger, approvalId, outcome)) return approvalId
    throw run?.markLost() ?? new ProtocolError('turn-lost')
  }

  /** A tool may ask by itself, with `toolContext.requestConfirmation()`: it has run as far as its question. */
  async #trackToolQuestion(run: RunState, call: ToolCall): Promise<void> {
    const toolCallId = call.toolContext.functionCallId ?? ''
    const question = findQuestion(call)
    if (!question || run.asking.has(toolCallId)) return
    const terms = await resolveQuestionTerms(call, question, this.#options)
    if (terms) run.asking.set(toolCallId, terms)
  }

  /** Enters the questions of an event into the ledger before anybody sees them (AP2). */
  async #ask(run: RunState, context: InvocationContext, event: Event): Promise<Event> {
    const asked: AskedNote[] = []
    const parts: Part[] = []
    for (const part of event.content?.parts ?? []) {
      const approval = await this.#requestApproval(run, context.session, part)
      if (!approval) continue
      asked.push(toAskedNote(approval))
      parts.push(part)
    }
    const pending = asked.map(({ toolCallId }) => toolCallId)
    await storeResponses(run, context, { event, pending })
    const customMetadata = writeNotes({ asked, messageId: run.messageId }, event.customMetadata)
    const { content, ...rest } = event
    // Gemini refuses a content without parts, in this turn and in every later one.
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
    const requested = await this.#options.ledger.request({
      id: functionCall.id,
      chat: chatOf(session),
      messageId: run.messageId,
      toolCallId: original.id,
      toolName: original.name,
      args: original.args,
      terms: rest,
      deadlineMs,
    })
    if (!isRefusal(requested)) return requested
    run.results.set(original.id, {
      name: original.name,
      response: describeRefusedRequest(requested),
    })
    return undefined
  }

  #runOf({ session, invocationId }: InvocationContext): RunState | undefined {
    const run = this.#invocations.get(invocationId) ?? this.#runs.get(keyOf(chatOf(session)))
    if (run) this.#invocations.set(invocationId, run)
    return run
  }
}

/** What a call asks: by the gate, or by the tool itself. */
function findQuestion({ toolContext }: ToolCall): ToolQuestion | undefined {
  return toolContext.actions.requestedToolConfirmations[toolContext.functionCallId ?? '']
}

function keyOf({ appName, principalId, chatId }: ApprovalChat): string {
  return JSON.stringify([appName, principalId, chatId])
}

/** Whether the turn of the run still waits for somebody. */
function isTurnWaiting({ events }: Session, { messageId }: RunState): boolean {
  const turn = splitTurns(events).find((stored) => stored.messageId === messageId)
  return turn !== undefined && isWaiting(replayTurn(turn, { exposeState: () => false }).state)
}

function endsOnCall(contents: readonly Content[]): boolean {
  return contents.at(-1)?.parts?.some((part) => part.functionCall !== undefined) === true
}

/** Whether the agent has just asked somebody outside by a call of ADK's own, which ADK leaves out of what it tells the model. */
function endsOnRequest({ invocationContext, invocationId, agentName }: Context): boolean {
  const last = invocationContext.session.events.findLast(
    (event) => event.invocationId === invocationId && (event.content?.parts ?? []).length > 0,
  )
  if (last?.author !== agentName) return false
  const names = last.content?.parts?.map(({ functionCall }) => functionCall?.name) ?? []
  return names.some((name) => name?.startsWith('adk_request_') === true)
}
