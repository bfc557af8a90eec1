import { randomUUID } from 'node:crypto'

import type { Context, Event, InvocationContext } from '@google/adk'
import { createEvent, ToolConfirmation } from '@google/adk'

import {
  describeEnding,
  describeRefusedRequest,
  toResponse,
  APPROVAL_UNAVAILABLE,
  ApprovalUnavailableError,
} from '../agent/call-responses.ts'
import {
  confirmCall,
  getEditedArgs,
  recordOutcome,
  withEditedArgs,
  toApprovedNote,
} from '../calls/approved-call.ts'
import { BROWSER_TIMED_OUT, toBrowserResponse, asBrowserTool } from '../calls/browser-tool.ts'
import type { BrowserTool } from '../calls/browser-tool.ts'
import type { DecidedNote, EventNotes } from '../agent/history/event-notes.ts'
import { writeNotes } from '../agent/history/event-notes.ts'
import type { ToolQuestion, TermsOptions } from '../calls/call-terms.ts'
import { canWait } from '../agent/adk-workarounds/can-wait.ts'
import { checkCall, needsConfirmation, resolveQuestionTerms } from '../calls/call-terms.ts'
import { createHandoverEvent, createOfferEvent } from '../calls/approval-events.ts'
import type { CallOutcome } from '../calls/run-call.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import type { Approval } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { isRefusal } from '../approvals/refusal.ts'
import { toApprovalEvents } from '../gemini-live/approval-events.ts'
import type { RecordOutcome } from '../gemini-live/run-live-call.ts'
import type { OutputResponse } from '../protocol/read-responses.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'

export interface LiveCallsOptions {
  readonly chat: AppChatRef
  readonly ledger: Ledger
  readonly terms: TermsOptions
  /** Runs a tool with the host's plugins and callbacks. */
  readonly run: (call: ToolCall, record: RecordOutcome) => Promise<CallOutcome>
  /** Stores an event of a call, and streams it. */
  readonly write: (toolCallId: string, event: Event) => Promise<void>
  /** Streams an event of a call without storing it. Does nothing if the message is not streaming. */
  readonly stream: (toolCallId: string, event: Event) => void
  /** Sends the result of a call to the model. */
  readonly sendResult: (toolCallId: string, name: string, response: Record<string, unknown>) => void
  /** Returns the id of the message that made a call. */
  readonly messageOf: (toolCallId: string) => string
  /** Records which calls wait for a client, and for how long. The records outlive this run. */
  readonly browserCalls: {
    add(call: { messageId: string; toolCallId: string }, timeoutMs: number): Promise<void>
    drop(toolCallId: string): Promise<void>
  }
  /** Whether the run knows all events of its chat. */
  readonly isCurrent: () => Promise<boolean>
  /** Whether the user had stopped the reply before the model made a call. */
  readonly isUnwanted: (toolCallId: string) => boolean
  /** The decision or output that a call waited for has arrived. */
  readonly onResponse: (toolCallId: string) => void
  /** Another process has settled a call of this run and continues the conversation. */
  readonly onLost: () => void
  readonly onStateChange: (toolCallId: string, state: LiveCallState) => void
  readonly onError: (error: unknown) => void
}

/** `executing`: it runs after an approval, so clients saw it wait before. */
export type LiveCallState = 'running' | 'executing' | 'waiting' | 'ended'

type CallPhase =
  /** `output` is a client's output that arrived before the call was handed to a browser tool. */
  | { readonly name: 'running'; readonly output?: OutputResponse }
  | { readonly name: 'asked'; readonly approvalId: string }
  | {
      readonly name: 'awaiting-output'
      readonly browser: BrowserTool
      readonly timer: NodeJS.Timeout
    }
  /** The result is known and is being stored. */
  | { readonly name: 'settling' }

/** A call that has not ended. */
interface OpenCall extends ToolCall {
  readonly id: string
  phase: CallPhase
  /** The call's approval, if one was requested. */
  approvalId?: string
  /** Whether the model cancelled the call. It receives no result. */
  isCancelled: boolean
  /** Whether the result is in the session. */
  isStored: boolean
  /** Whether the call is recorded in `browserCalls`. */
  isBrowserCall: boolean
  /** Whether the result contains the text of an error, which clients must not see. */
  hidesError: boolean
}

/** The record of a browser call expires this much later than the call, because a run that is still there expires the call itself. */
const POST_RUN_GRACE_MS = 2_000

/** Reasons of cancelled approvals. */
const NOT_EXECUTABLE = 'the call could not be carried out'
const CANCELLED_BY_MODEL = 'the conversation went on without it'

/** Results that the model receives. */
const CANCELLED = { status: 'cancelled', error: `Cancelled: ${CANCELLED_BY_MODEL}.` } as const
const UNWANTED = {
  status: 'cancelled',
  error: 'Cancelled, not run: the person stopped this answer.',
} as const
const PENDING = { status: 'pending', note: 'Under way. The result comes later.' } as const
const BROKEN = { error: 'The call could not be carried out.' } as const

/** The calls of a live run. They are independent: several may wait for approval at once and be decided in any order. */
export class LiveCalls {
  readonly #options: LiveCallsOptions
  readonly #open = new Map<string, OpenCall>()
  /** Work on calls that is in progress. */
  readonly #work = new Set<Promise<void>>()
  #isClosed = false

  constructor(options: LiveCallsOptions) {
    this.#options = options
  }

  /** Whether an approval was requested for an open call. */
  get hasApprovals(): boolean {
    for (const { approvalId } of this.#open.values()) if (approvalId !== undefined) return true
    return false
  }

  get isBusy(): boolean {
    return this.#work.size > 0
  }

  has(toolCallId: string): boolean {
    return this.#open.has(toolCallId)
  }

  /** Takes a call over from ADK: runs it, or requests approval. */
  start(toolCall: ToolCall): void {
    const id = toolCall.toolContext.functionCallId ?? ''
    const call: OpenCall = {
      ...toolCall,
      id,
      phase: { name: 'running' },
      isCancelled: false,
      isStored: false,
      isBrowserCall: false,
      hidesError: false,
    }
    this.#open.set(id, call)
    this.#runWork(call, async () => {
      if (this.#options.isUnwanted(id)) return this.#settle(call, UNWANTED)
      const check = await checkCall(toolCall, this.#options.terms)
      if (check.verdict === 'refuse') return this.#settle(call, check.response)
      if (check.verdict === 'ask' && canWait(toolCall, isAnyRoot))
        return this.#requestApproval(call, check.terms)
      if (check.verdict === 'ask') return this.#settle(call, APPROVAL_UNAVAILABLE)
      // The host's policy overrides the tool's own declaration. Without a confirmation, the tool would refuse to run.
      if (await needsConfirmation(toolCall)) confirm(toolCall)
      return this.#run(call)
    })
  }

  /** Continues a call whose approval has changed, in this process or another one. */
  approvalChanged(approval: Approval): void {
    const call = this.#open.get(approval.toolCallId)
    if (call?.phase.name !== 'asked' || call.phase.approvalId !== approval.id) return
    if (ranElsewhere(approval)) return this.#remove(call)
    const isApproved = approval.state.name === 'approved'
    if (!isApproved && !isOver(approval)) return
    call.phase = { name: 'running' }
    this.#resume(call, () =>
      isApproved ? this.#runApproved(call, approval) : this.#settleWithoutRun(call, approval),
    )
  }

  /**
   * Takes the output of a browser tool. Returns false if the call does not wait for one. A client may send it together with the approval
   * (BT6): then it is kept until the call is handed over.
   */
  submitOutput(output: OutputResponse): boolean {
    const call = this.#open.get(output.toolCallId)
    switch (call?.phase.name) {
      case 'running':
        if (call.phase.output || call.approvalId === undefined) return false
        if (!asBrowserTool(call.tool)) return false
        call.phase = { name: 'running', output }
        return true
      case 'awaiting-output': {
        const { browser, timer } = call.phase
        clearTimeout(timer)
        call.phase = { name: 'settling' }
        this.#resume(call, () => this.#settle(call, toBrowserResponse(output.result, browser)))
        return true
      }
      case 'asked':
      case 'settling':
      case undefined:
        return false
    }
  }

  /** Cancels calls for the model. Calls that wait are withdrawn. Calls that run may finish, and their results are stored. */
  cancel(toolCallIds: readonly string[]): void {
    for (const id of toolCallIds) {
      const call = this.#open.get(id)
      if (!call) continue
      call.isCancelled = true
      if (call.phase.name === 'awaiting-output') {
        clearTimeout(call.phase.timer)
        call.phase = { name: 'settling' }
        this.#runWork(call, () => this.#settle(call, CANCELLED))
      } else if (call.phase.name === 'asked') {
        const { approvalId } = call.phase
        this.#runWork(call, async () => {
          // An earlier decision wins. Then the call runs, and only the model receives no result.
          await this.#options.ledger.cancel(approvalId, CANCELLED_BY_MODEL)
        })
      }
    }
  }

  /** Ends all calls here. Requested approvals stay in the ledger, where they can still be decided. */
  close(): void {
    this.#isClosed = true
    for (const call of this.#open.values()) clearTimer(call)
    this.#open.clear()
  }

  /** Resolves when no work is in progress. */
  async idle(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work)
  }

  #resume(call: OpenCall, work: () => Promise<void>): void {
    this.#options.onResponse(call.id)
    this.#runWork(call, work)
  }

  async #requestApproval(call: OpenCall, { deadlineMs, ...terms }: ResolvedTerms): Promise<void> {
    const { chat, ledger, messageOf } = this.#options
    const { id: toolCallId, tool, toolArgs: args } = call
    const messageId = messageOf(toolCallId)
    const entered = await ledger.request({
      // The same form as the ids of ADK's confirmations.
      id: `adk-${randomUUID()}`,
      chat,
      messageId,
      toolCallId,
      toolName: tool.name,
      args,
      terms,
      deadlineMs,
      live: true,
    })
    if (isRefusal(entered)) {
      await this.#settle(call, describeRefusedRequest(entered))
      return
    }
    for (const event of toApprovalEvents(entered, contextOf(call)))
      await this.#options.write(toolCallId, event)
    call.approvalId = entered.id
    call.phase = { name: 'asked', approvalId: entered.id }
    this.#options.onStateChange(toolCallId, 'waiting')
    if (call.isCancelled) this.cancel([toolCallId])
    // The decision may have come before the call was in this phase.
    const now = await ledger.get(entered.id)
    if (now) this.approvalChanged(now)
  }

  /** Runs an approved call, if the ledger grants the claim. */
  async #runApproved(call: OpenCall, { id: approvalId }: Approval): Promise<void> {
    const { chat, ledger } = this.#options
    const { id: toolCallId, tool, toolArgs: args } = call
    const claimed = await ledger.claim(approvalId, { chat, toolCallId, toolName: tool.name, args })
    if (isRefusal(claimed)) {
      const now = await ledger.get(approvalId)
      if (now && isOver(now) && !ranElsewhere(now)) await this.#settleWithoutRun(call, now)
      else this.#remove(call)
      return
    }
    confirmCall(call.toolContext, claimed)
    call.toolContext.actions.requestedToolConfirmations = {}
    await this.#run(call, claimed)
  }

  async #run(call: OpenCall, approval?: Approval): Promise<void> {
    const { run, terms } = this.#options
    const edited = getEditedArgs(approval)
    const toRun = { ...call, ...(edited && { toolArgs: { ...edited } }) }
    let isLost = false
    const outcome = await run(toRun, async (made) => {
      if (!approval) return
      const recorded = { ...made, result: withEditedArgs(made, edited) }
      isLost = !(await recordOutcome(this.#options.ledger, approval.id, recorded))
    })
    if (isLost) {
      // The ledger holds the outcome. The process that continues the conversation reports it to the model and to clients.
      this.#remove(call)
      this.#options.onLost()
      return
    }
    const result = withEditedArgs(outcome, edited)
    if (outcome.by === 'failure' && !(outcome.error instanceof ApprovalUnavailableError))
      this.#options.onError(outcome.error)
    call.hidesError = outcome.by === 'failure' && outcome.hidden
    const question = approval ? undefined : readOwnQuestion(call.toolContext)
    const asked = question && (await resolveQuestionTerms(call, question, terms))
    if (asked && canWait(call, isAnyRoot)) return this.#requestApproval(call, asked)
    if (asked) return this.#settle(call, APPROVAL_UNAVAILABLE)
    const note = approval && toApprovedNote(approval)
    const isOpen = result === undefined && call.tool.isLongRunning
    return isOpen ? this.#handOver(call, note) : this.#settle(call, toResponse(result), note)
  }

  /** Hands the call to a browser tool. Any other long-running call is reported to the model as pending. */
  async #handOver(call: OpenCall, note: DecidedNote | undefined): Promise<void> {
    const browser = asBrowserTool(call.tool)
    if (!browser) {
      await this.#settle(call, PENDING, note)
      return
    }
    const messageId = this.#options.messageOf(call.id)
    if (note)
      await this.#options.write(call.id, createHandoverEvent(contextOf(call), messageId, call.id))
    await this.#options.browserCalls.add(
      { messageId, toolCallId: call.id },
      browser.timeoutMs + POST_RUN_GRACE_MS,
    )
    if (this.#isClosed) return
    call.isBrowserCall = true
    const output = call.phase.name === 'running' ? call.phase.output : undefined
    const timer = setTimeout(() => {
      this.#expireBrowserCall(call).catch((error: unknown) => this.#options.onError(error))
    }, browser.timeoutMs)
    call.phase = { name: 'awaiting-output', browser, timer }
    if (output && !call.isCancelled) {
      this.submitOutput(output)
      return
    }
    if (!note) this.#options.stream(call.id, createOfferEvent(contextOf(call), call.id))
    this.#options.onStateChange(call.id, 'waiting')
    if (call.isCancelled) this.cancel([call.id])
  }

  /** Ends a browser call without output. If another process took the output, it has continued the conversation, and the call ends here. */
  async #expireBrowserCall(call: OpenCall): Promise<void> {
    const isCurrent = await this.#options.isCurrent()
    if (isCurrent)
      this.submitOutput({ toolCallId: call.id, result: { errorText: BROWSER_TIMED_OUT } })
    else if (this.#open.has(call.id)) this.#remove(call)
  }

  /** Settles a call whose approval ended without a run. */
  async #settleWithoutRun(call: OpenCall, approval: Approval): Promise<void> {
    const ending = describeEnding(approval)
    if (ending) await this.#settle(call, ending.response, ending.note)
    else this.#remove(call)
  }

  /** Stores the result of a call, sends it to the model, and ends the call. */
  async #settle(
    call: OpenCall,
    response: Record<string, unknown>,
    note?: DecidedNote,
  ): Promise<void> {
    const { write, sendResult, messageOf } = this.#options
    const { id, tool, toolContext } = call
    const { invocationId, agent, branch } = contextOf(call)
    const notes: EventNotes = {
      messageId: messageOf(id),
      ...(note && { decided: [note] }),
      ...(call.hidesError && { failed: [id] }),
    }
    const author = agent?.name
    const event = createEvent({
      invocationId,
      content: { role: 'user', parts: [{ functionResponse: { id, name: tool.name, response } }] },
      actions: toolContext.actions,
      customMetadata: writeNotes(notes),
      ...(author !== undefined && { author }),
      ...(branch !== undefined && { branch }),
    })
    if (!call.isStored) await write(id, event)
    call.isStored = true
    if (note) await this.#options.ledger.markReported(this.#options.chat, [id])
    if (call.isBrowserCall) await this.#options.browserCalls.drop(id)
    if (!call.isCancelled && !this.#isClosed) sendResult(id, tool.name, response)
    this.#remove(call)
  }

  #remove(call: OpenCall): void {
    clearTimer(call)
    this.#open.delete(call.id)
    this.#options.onStateChange(call.id, 'ended')
  }

  /** Runs work in the background. A failure ends the call, and not the conversation. */
  #runWork(call: OpenCall, work: () => Promise<void>): void {
    this.#options.onStateChange(call.id, call.approvalId === undefined ? 'running' : 'executing')
    const done = work()
      .catch((error: unknown) => {
        this.#options.onError(error)
        return this.#isClosed || !this.#open.has(call.id) ? undefined : this.#recover(call)
      })
      .finally(() => this.#work.delete(done))
    this.#work.add(done)
  }

  /** Settles a call whose work failed: with the outcome in the ledger if there is one, else as not executable. */
  async #recover(call: OpenCall): Promise<void> {
    clearTimer(call)
    call.phase = { name: 'settling' }
    try {
      const { chat, ledger } = this.#options
      if (!(await ledger.stillHoldsLock(chat))) {
        this.#remove(call)
        this.#options.onLost()
        return
      }
      const { id } = (await ledger.findByCall(chat, call.id)) ?? {}
      if (id !== undefined) ledger.abandon(id)
      if (id !== undefined) await ledger.cancel(id, NOT_EXECUTABLE)
      const approval = id === undefined ? undefined : await ledger.get(id)
      const ending = approval && describeEnding(unknownIfExecuting(approval))
      await this.#settle(call, ending?.response ?? BROKEN, ending?.note)
    } catch (error) {
      this.#options.onError(error)
      if (this.#isClosed) return
      if (!call.isCancelled) this.#options.sendResult(call.id, call.tool.name, BROKEN)
      this.#remove(call)
    }
  }
}

function clearTimer({ phase }: OpenCall): void {
  if (phase.name === 'awaiting-output') clearTimeout(phase.timer)
}

// A live run uses a copy of the agent, and never runs a workflow.
function isAnyRoot(): boolean {
  return true
}

function isOver({ state }: Approval): boolean {
  return !['requested', 'approved', 'executing'].includes(state.name)
}

/** Whether another process runs or ran a call that this run did not start. That process stores and streams the result. */
function ranElsewhere({ state }: Approval): boolean {
  return ['executing', 'succeeded', 'failed'].includes(state.name)
}

/** Returns an executing approval as `unknown`: the call may have taken effect, but its outcome could not be recorded. */
function unknownIfExecuting(approval: Approval): Approval {
  const { state } = approval
  return state.name === 'executing'
    ? { ...approval, state: { ...state, name: 'unknown' } }
    : approval
}

function contextOf({ toolContext }: ToolCall): InvocationContext {
  return toolContext.invocationContext
}

/** Confirms a call, so that a tool with `requireConfirmation` runs. */
function confirm({ toolContext }: ToolCall): void {
  toolContext.toolConfirmation = new ToolConfirmation({ confirmed: true })
  toolContext.actions.requestedToolConfirmations = {}
}

function readOwnQuestion({ actions, functionCallId = '' }: Context): ToolQuestion | undefined {
  return actions.requestedToolConfirmations[functionCallId]
}
