import { randomUUID } from 'node:crypto'

import type { Context, Event, InvocationContext } from '@google/adk'
import { createEvent, ToolConfirmation } from '@google/adk'

import { describeEnding, describeUnasked, toResponse, UNASKABLE } from '../agent/call-responses.ts'
import {
  confirmCall,
  editOf,
  recordOutcome,
  resultOf,
  toApprovedNote,
} from '../calls/approved-call.ts'
import { NO_ANSWER, toBrowserResponse } from '../calls/browser-output.ts'
import type { BrowserTool } from '../calls/browser-tool.ts'
import { asBrowserTool } from '../calls/browser-tool.ts'
import type { DecidedNote, EventNotes } from '../agent/history/event-notes.ts'
import { writeNotes } from '../agent/history/event-notes.ts'
import type { OwnQuestion, TermsOptions } from '../calls/call-terms.ts'
import { canWait } from '../agent/adk-workarounds/can-wait.ts'
import { checkCall, needsConfirmation, termsOfQuestion } from '../calls/call-terms.ts'
import { toHandover, toOffer } from '../calls/approval-events.ts'
import { toApprovalEvents } from '../gemini-live/approval-events.ts'
import type { RecordOutcome } from '../gemini-live/run-live-call.ts'
import type { CallOutcome } from '../calls/run-call.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { UnaskableError } from '../agent/tool-failure.ts'
import type { Approval, ApprovalChat } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { isRefusal } from '../approvals/refusal.ts'
import type { OutputAnswer } from '../protocol/read-answers.ts'
import {
  BROKEN,
  CANCELLED,
  CANNOT_GO_ON,
  lostIfExecuting,
  TOOK_BACK,
  UNDER_WAY,
  UNWANTED,
} from './call-answers.ts'

export interface LiveCallsOptions {
  readonly chat: ApprovalChat
  readonly ledger: Ledger
  readonly terms: TermsOptions
  /** Runs a tool with all that the host put around it. */
  readonly run: (call: ToolCall, witness: RecordOutcome) => Promise<CallOutcome>
  /** Stores an event of a call, and tells it. */
  readonly write: (toolCallId: string, event: Event) => Promise<void>
  /** Tells an event of a call that nothing is stored of, while its message is being told. */
  readonly tell: (toolCallId: string, event: Event) => void
  /** Gives the model the result of a call. */
  readonly answer: (toolCallId: string, name: string, response: Record<string, unknown>) => void
  /** The message that a call belongs to. */
  readonly messageOf: (toolCallId: string) => string
  /** Puts on record which call waits for a client and for how long, for the time after this run. */
  readonly waits: {
    add(wait: { messageId: string; toolCallId: string }, timeoutMs: number): Promise<void>
    drop(toolCallId: string): Promise<void>
  }
  /** Whether the run knows all that its chat holds. */
  readonly isCurrent: () => Promise<boolean>
  /** Whether a call was made for an answer that a person had stopped. */
  readonly isUnwanted: (toolCallId: string) => boolean
  /** What a call waited for, a decision or an output, has come. */
  readonly onAnswered: (toolCallId: string) => void
  /** Another process has settled a call of this run: the conversation goes on there, and not here. */
  readonly onLost: () => void
  /** A call has begun to wait for somebody, or has ended. */
  readonly onChange: (toolCallId: string, state: LiveCallState) => void
  readonly onError: (error: unknown) => void
}

/** `executing`: it runs and was approved, so that who asked has been told that it waits. */
export type LiveCallState = 'running' | 'executing' | 'waiting' | 'ended'

/** A call that has not ended. */
interface OpenCall extends ToolCall {
  readonly id: string
  state: 'running' | 'asked' | 'waiting'
  /** Its approval, if a person was asked. */
  approvalId?: string
  timer?: NodeJS.Timeout
  browser?: BrowserTool
  /** The output of the client. It may come before the call is handed over. */
  output?: OutputAnswer
  /** The model took the call back: whatever comes of it is not for the model. */
  cancelled: boolean
  /** Its result is in the session. */
  stored: boolean
  /** Its result has words of an error, which are not for clients. */
  hidden: boolean
}

/** How much later than a run the record gives a client up: while the run is there, it does so itself. */
const AFTERLIFE_MS = 2_000

/**
 * The calls of a live run. Each goes its own way: several may wait for approval at once and be decided in any order, while the
 * conversation goes on.
 */
export class LiveCalls {
  readonly #options: LiveCallsOptions
  readonly #open = new Map<string, OpenCall>()
  /** The work on calls that is under way. */
  readonly #work = new Set<Promise<void>>()
  #closed = false

  constructor(options: LiveCallsOptions) {
    this.#options = options
  }

  /** Whether a call waits for a decision. */
  get asks(): boolean {
    for (const { approvalId } of this.#open.values()) if (approvalId !== undefined) return true
    return false
  }

  /** Whether anything is being done for a call. */
  get busy(): boolean {
    return this.#work.size > 0
  }

  has(toolCallId: string): boolean {
    return this.#open.has(toolCallId)
  }

  /** Takes a call over from ADK. */
  begin(call: ToolCall): void {
    const id = call.toolContext.functionCallId ?? ''
    const open: OpenCall = {
      ...call,
      id,
      state: 'running',
      cancelled: false,
      stored: false,
      hidden: false,
    }
    this.#open.set(id, open)
    this.#guard(open, async () => {
      if (this.#options.isUnwanted(id)) return this.#settle(open, UNWANTED)
      const check = await checkCall(call, this.#options.terms)
      if (check.verdict === 'refuse') return this.#settle(open, check.response)
      if (check.verdict === 'ask' && canWait(call, isAnyRoot)) return this.#ask(open, check.terms)
      if (check.verdict === 'ask') return this.#settle(open, UNASKABLE)
      // The policy of the host has the last word on what the tool was declared with; the tool would refuse nevertheless.
      if (await needsConfirmation(call)) confirm(call)
      return this.#run(open)
    })
  }

  /** An approval of the chat has changed, by whoever. */
  approvalChanged(approval: Approval): void {
    const call = this.#open.get(approval.toolCallId)
    if (call?.state !== 'asked' || call.approvalId !== approval.id) return
    if (ranElsewhere(approval)) return this.#forget(call)
    const isApproved = approval.state.name === 'approved'
    if (!isApproved && !isOver(approval)) return
    this.#resume(call, () =>
      isApproved ? this.#start(call, approval) : this.#conclude(call, approval),
    )
  }

  /**
   * Takes the output of a call that runs in the client. False for one that does not wait for it. A client may give it together with the
   * approval (BT6): it is kept until the call is handed over.
   */
  takeOutput(output: OutputAnswer): boolean {
    const { toolCallId, result } = output
    const call = this.#open.get(toolCallId)
    if (!call || call.output) return false
    if (call.state === 'running' && call.approvalId !== undefined && asBrowserTool(call.tool)) {
      call.output = output
      return true
    }
    if (call.state !== 'waiting' || !call.browser) return false
    call.output = output
    const { browser } = call
    clearTimeout(call.timer)
    this.#resume(call, () => this.#settle(call, toBrowserResponse(result, browser)))
    return true
  }

  /** The model took calls back. What waits is withdrawn; what runs is let end, and recorded. */
  cancel(toolCallIds: readonly string[]): void {
    for (const id of toolCallIds) {
      const call = this.#open.get(id)
      if (!call) continue
      call.cancelled = true
      if (call.state === 'waiting') this.#guard(call, () => this.#settle(call, CANCELLED))
      if (call.state === 'asked') {
        this.#guard(call, async () => {
          // Whoever decided a moment before was first; then the call runs, and only the model does not hear of it.
          await this.#options.ledger.cancel(call.approvalId ?? '', TOOK_BACK)
        })
      }
    }
  }

  /** The run ends. What waits stays in the ledger, to be decided in another way. */
  close(): void {
    this.#closed = true
    for (const call of this.#open.values()) clearTimeout(call.timer)
    this.#open.clear()
  }

  /** Resolves when nothing is being done for any call. */
  async idle(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work)
  }

  /** Goes on with a call that waited. */
  #resume(call: OpenCall, work: () => Promise<void>): void {
    call.state = 'running'
    this.#options.onAnswered(call.id)
    this.#guard(call, work)
  }

  async #ask(call: OpenCall, { deadlineMs, ...terms }: ResolvedTerms): Promise<void> {
    const { chat, ledger, messageOf } = this.#options
    const { id: toolCallId, tool, toolArgs: args } = call
    const messageId = messageOf(toolCallId)
    const entered = await ledger.request({
      // As ADK names the confirmations that it asks for.
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
      await this.#settle(call, describeUnasked(entered))
      return
    }
    const [place, question] = toApprovalEvents(entered, contextOf(call))
    await this.#options.write(toolCallId, place)
    await this.#options.write(toolCallId, question)
    call.approvalId = entered.id
    call.state = 'asked'
    this.#options.onChange(toolCallId, 'waiting')
    if (call.cancelled) this.cancel([toolCallId])
    // It may have been decided before anybody here looked.
    const now = await ledger.get(entered.id)
    if (now) this.approvalChanged(now)
  }

  /** Starts a call that was approved, if the ledger lets it. */
  async #start(call: OpenCall, { id: approvalId }: Approval): Promise<void> {
    const { chat, ledger } = this.#options
    const { id: toolCallId, tool, toolArgs: args } = call
    const claimed = await ledger.claim(approvalId, { chat, toolCallId, toolName: tool.name, args })
    if (isRefusal(claimed)) {
      const now = await ledger.get(approvalId)
      if (now && isOver(now) && !ranElsewhere(now)) await this.#conclude(call, now)
      else this.#forget(call)
      return
    }
    confirmCall(call.toolContext, claimed)
    call.toolContext.actions.requestedToolConfirmations = {}
    await this.#run(call, claimed)
  }

  async #run(call: OpenCall, approval?: Approval): Promise<void> {
    const { run, terms } = this.#options
    const edited = editOf(approval)
    const toRun = { ...call, ...(edited && { toolArgs: { ...edited } }) }
    let isLost = false
    const outcome = await run(toRun, async (made) => {
      if (!approval) return
      const recorded = { ...made, result: resultOf(made, edited) }
      isLost = !(await recordOutcome(this.#options.ledger, approval.id, recorded))
    })
    if (isLost) {
      // Neither the model nor a client is told: what came of the call stands in the ledger, and is told from there.
      this.#forget(call)
      this.#options.onLost()
      return
    }
    const result = resultOf(outcome, edited)
    if (outcome.by === 'failure' && !(outcome.error instanceof UnaskableError))
      this.#options.onError(outcome.error)
    call.hidden = outcome.by === 'failure' && outcome.hidden
    const question = approval ? undefined : readOwnQuestion(call.toolContext)
    const asked = question && (await termsOfQuestion(call, question, terms))
    if (asked && canWait(call, isAnyRoot)) return this.#ask(call, asked)
    if (asked) return this.#settle(call, UNASKABLE)
    const note = approval && toApprovedNote(approval)
    const isOpen = result === undefined && call.tool.isLongRunning
    return isOpen ? this.#handOver(call, note) : this.#settle(call, toResponse(result), note)
  }

  /** The call is answered from outside. Without anybody who could, the model is told that it is under way. */
  async #handOver(call: OpenCall, note: DecidedNote | undefined): Promise<void> {
    const browser = asBrowserTool(call.tool)
    if (!browser) {
      await this.#settle(call, UNDER_WAY, note)
      return
    }
    if (note) {
      const messageId = this.#options.messageOf(call.id)
      await this.#options.write(call.id, toHandover(contextOf(call), messageId, call.id))
    }
    await this.#options.waits.add(
      { messageId: this.#options.messageOf(call.id), toolCallId: call.id },
      browser.timeoutMs + AFTERLIFE_MS,
    )
    if (this.#closed) return
    call.browser = browser
    call.state = 'waiting'
    call.timer = setTimeout(() => {
      this.#giveUp(call).catch((error: unknown) => this.#options.onError(error))
    }, browser.timeoutMs)
    const { output } = call
    if (output && !call.cancelled) {
      delete call.output
      this.takeOutput(output)
      return
    }
    if (!note) this.#options.tell(call.id, toOffer(contextOf(call), call.id))
    this.#options.onChange(call.id, 'waiting')
    if (call.cancelled) this.cancel([call.id])
  }

  /** The client gave no output in time. Another process may have taken it: then the conversation went on there, and holds a result. */
  async #giveUp(call: OpenCall): Promise<void> {
    const isCurrent = await this.#options.isCurrent()
    if (isCurrent) this.takeOutput({ toolCallId: call.id, result: { errorText: NO_ANSWER } })
    else if (this.#open.has(call.id)) this.#forget(call)
  }

  /** An approval ended without a run. */
  async #conclude(call: OpenCall, approval: Approval): Promise<void> {
    const ending = describeEnding(approval)
    if (ending) await this.#settle(call, ending.response, ending.note)
    else this.#forget(call)
  }

  async #settle(
    call: OpenCall,
    response: Record<string, unknown>,
    note?: DecidedNote,
  ): Promise<void> {
    const { write, answer, messageOf } = this.#options
    const { id, tool, toolContext } = call
    const { invocationId, agent, branch } = contextOf(call)
    const notes: EventNotes = {
      messageId: messageOf(id),
      ...(note && { decided: [note] }),
      ...(call.hidden && { failed: [id] }),
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
    if (!call.stored) await write(id, event)
    call.stored = true
    if (note) await this.#options.ledger.markReported(this.#options.chat, [id])
    if (call.browser) await this.#options.waits.drop(id)
    if (!call.cancelled && !this.#closed) answer(id, tool.name, response)
    this.#forget(call)
  }

  #forget(call: OpenCall): void {
    clearTimeout(call.timer)
    this.#open.delete(call.id)
    this.#options.onChange(call.id, 'ended')
  }

  /** Nobody waits for the work of a call; what goes wrong with it must not end the conversation. */
  #guard(call: OpenCall, work: () => Promise<void>): void {
    this.#options.onChange(call.id, call.approvalId === undefined ? 'running' : 'executing')
    const done = work()
      .catch((error: unknown) => {
        this.#options.onError(error)
        return this.#closed || !this.#open.has(call.id) ? undefined : this.#mend(call)
      })
      .finally(() => this.#work.delete(done))
    this.#work.add(done)
  }

  /** Ends a call whose work went wrong: by what is on record of it, or as one that could not be carried out. */
  async #mend(call: OpenCall): Promise<void> {
    call.state = 'running'
    try {
      const { chat, ledger } = this.#options
      if (!(await ledger.stillHolds(chat))) {
        this.#forget(call)
        this.#options.onLost()
        return
      }
      const { id } = (await ledger.findByCall(chat, call.id)) ?? {}
      if (id !== undefined) ledger.abandon(id)
      if (id !== undefined) await ledger.cancel(id, CANNOT_GO_ON)
      const approval = id === undefined ? undefined : await ledger.get(id)
      const ending = approval && describeEnding(lostIfExecuting(approval))
      await this.#settle(call, ending?.response ?? BROKEN, ending?.note)
    } catch (error) {
      this.#options.onError(error)
      if (this.#closed) return
      if (!call.cancelled) this.#options.answer(call.id, call.tool.name, BROKEN)
      this.#forget(call)
    }
  }
}

// A live run has a copy of the agent, and runs no workflows.
function isAnyRoot(): boolean {
  return true
}

function isOver({ state }: Approval): boolean {
  return !['requested', 'approved', 'executing'].includes(state.name)
}

/** Whether a call that this run did not start was run by another process, which stores and tells the result. */
function ranElsewhere({ state }: Approval): boolean {
  return ['executing', 'succeeded', 'failed'].includes(state.name)
}

function contextOf({ toolContext }: ToolCall): InvocationContext {
  return toolContext.invocationContext
}

/** Lets a tool run that would ask, or refuse, without a confirmation. */
function confirm({ toolContext }: ToolCall): void {
  toolContext.toolConfirmation = new ToolConfirmation({ confirmed: true })
  toolContext.actions.requestedToolConfirmations = {}
}

function readOwnQuestion({ actions, functionCallId = '' }: Context): OwnQuestion | undefined {
  return actions.requestedToolConfirmations[functionCallId]
}
