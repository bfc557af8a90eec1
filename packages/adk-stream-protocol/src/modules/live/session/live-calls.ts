import type { BaseTool } from '@google/adk'
import { Context } from '@google/adk'

import { findPausedNote } from '../../../agent/history/open-questions.ts'
import type { ToolCall } from '../../../agent/tool-call.ts'
import type { Approval, Refusal } from '../../../approvals/approval.ts'
import { isRefusal } from '../../../approvals/approval.ts'
import type { DecidedCall } from '../../../approvals/ledger.ts'
import type { Decision } from '../../../approvals/next-approval.ts'
import { toClaim } from '../../../calls/approved-call.ts'
import type { CallCheck } from '../../../calls/call-kind.ts'
import { checkCall } from '../../../calls/call-terms.ts'
import { asClientTool } from '../../../calls/client-tool.ts'
import type { CallEffect, CallEvent } from '../../../calls/next-call.ts'
import { nextCall } from '../../../calls/next-call.ts'
import { isOutdated } from '../../../calls/outdated-calls.ts'
import type { OutputResponse } from '../../../protocol/read-responses.ts'
import { defer } from '../../../shared/async.ts'
import { SparseMap, SparseSet } from '../../../shared/collections.ts'
import { cancelIfRemoved, continueTimer, performEffects, resumeIfDecided } from './call-effects.ts'
import type { WaitingCall } from './live-snapshot.ts'
import type { LiveCallState } from './live-message.ts'
import type { LiveSession, LiveCallsOptions, OpenCall } from './open-call.ts'
import {
  addInside,
  canCallWait,
  sendResult,
  createOpenCall,
  isAsking,
  toWaitingCall,
  wasAsked,
  toParkedResponse,
} from './open-call.ts'
import { isStoreAway } from './store-away.ts'
import type { ShownQuestion } from './user-speech.ts'

/** The result of a call that the user stopped before the model made it. */
const UNWANTED = {
  status: 'cancelled',
  error: 'Cancelled, not run: the person stopped this answer.',
} as const

/**
 * The calls of a live run. They are independent: several may wait for approval at once and be decided in any order.
 * `nextCall` is their lifecycle, and `performEffects` performs its effects.
 */
export class LiveCalls {
  readonly #live: LiveSession
  readonly #open = new SparseMap<string, OpenCall>()
  /** Work on calls that is in progress. */
  readonly #work = new SparseSet<Promise<void>>()
  /** Calls that the model cancelled in its current turn and that are not open: ADK may be about to start them. */
  readonly #cancelled = new SparseSet<string>()
  #isClosed = false

  constructor(options: LiveCallsOptions) {
    const onStateChange = (toolCallId: string, state: LiveCallState): void => {
      const call = this.#open.get(toolCallId)
      if (call) call.shownAt = state === 'waiting' ? performance.now() : undefined
      options.onStateChange(toolCallId, state)
    }
    const questions = { last: Promise.resolve() }
    this.#live = { ...options, calls: this, questions, onStateChange }
  }

  /** Whether an approval was requested for an open call. */
  get hasApprovals(): boolean {
    return [...this.#open.values()].some(wasAsked)
  }

  /** Whether the run has ended. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  isOpen(call: OpenCall): boolean {
    return this.#open.get(call.id) === call
  }

  get isBusy(): boolean {
    return this.#work.size > 0
  }

  /** Whether a call is open here, or was made inside an agent that an open call runs. */
  has(toolCallId: string): boolean {
    return this.#open.has(toolCallId) || this.#findOuter(toolCallId) !== undefined
  }

  /** Returns the id of the message that made an open call. */
  messageOf(toolCallId: string): string | undefined {
    return this.has(toolCallId) ? this.#live.messages.messageIdOf(toolCallId) : undefined
  }

  /** Returns the open call that runs the agent which made a call. */
  #findOuter(toolCallId: string): OpenCall | undefined {
    for (const call of this.#open.values()) if (call.inside.has(toolCallId)) return call
    return undefined
  }

  /** Takes a call over from ADK: runs it, or requests approval. */
  start(toolCall: ToolCall): void {
    const call = this.#create(toolCall)
    const { id } = call
    if (this.#cancelled.has(id)) this.cancel([id])
    this.#runWork(call, async () => {
      const check: CallCheck = this.#live.messages.isUnwanted(id)
        ? { verdict: 'refuse', response: UNWANTED }
        : await checkCall(toolCall, this.#live.terms)
      // TU1981: its message may have been removed meanwhile.
      if (this.#isClosed && !(await this.#live.session.holdsCalls([id]))) return
      await this.advance(call, {
        type: 'checked',
        check,
        canWait: check.verdict === 'ask' && canCallWait(toolCall),
      })
    })
  }

  /** Continues the calls that waited in an earlier live session. */
  adopt(calls: readonly WaitingCall[], findTool: (name: string) => BaseTool | undefined): void {
    const { session, messages } = this.#live
    const { context } = session
    for (const waiting of calls) {
      const { toolCallId, toolName, messageId } = waiting
      const tool = findTool(toolName)
      const toolArgs = session.argsOf(toolCallId)
      const isSettled = session.hasResponse(toolCallId)
      if (!tool || !context || !toolArgs || isSettled || this.has(toolCallId)) continue
      const toolContext = new Context({ invocationContext: context, functionCallId: toolCallId })
      messages.adopt(messageId, toolCallId)
      this.#adopt({ tool, toolArgs, toolContext }, waiting)
    }
  }

  #adopt(toolCall: ToolCall, { approvalId, expiresAt, isPaused, isParked }: WaitingCall): void {
    if (isPaused) return this.#adoptPaused(toolCall, isParked)
    if (approvalId === undefined && expiresAt === undefined) return
    const call = this.#create(toolCall, isParked)
    if (expiresAt !== undefined) {
      call.state = { name: 'delivered', isWaiting: true }
      // Without a timer, a sweep expires the call.
      continueTimer(this.#live, call, expiresAt).catch((error: unknown) =>
        this.#live.onError(error),
      )
      return this.#live.onStateChange(call.id, 'waiting')
    }
    call.approvalId = approvalId ?? ''
    // The effects read the approval again: it may have been decided meanwhile.
    const [state, effects] = nextCall(call.state, {
      type: 'request-shown',
      approvalId: call.approvalId,
    })
    call.state = state
    this.#live.onStateChange(call.id, 'waiting')
    this.#runWork(call, () => performEffects(this.#live, call, effects))
  }

  /** Continues a call that waited for approvals inside its agent. */
  #adoptPaused(toolCall: ToolCall, isParked: boolean | undefined): void {
    const pause = findPausedNote(toolCall)
    if (!pause) return
    const call = this.#create(toolCall, isParked)
    call.pause = pause
    for (const { toolCallId } of pause.asked) addInside(this.#live, call, toolCallId)
    const paused = { name: 'paused', isWaiting: false } as const
    const [state, effects] = nextCall(paused, { type: 'pause-shown' })
    call.state = state
    this.#live.onStateChange(call.id, 'waiting')
    this.#runWork(call, () => performEffects(this.#live, call, effects))
  }

  /** Whether all open calls wait for a client, and none is being worked on. */
  get isWaiting(): boolean {
    return !this.isBusy && this.waiting.length === this.#open.size
  }

  /** The calls that wait for a client. */
  get waiting(): readonly WaitingCall[] {
    const waiting: WaitingCall[] = []
    for (const call of this.#open.values()) {
      const found = toWaitingCall(call, this.#live.messages)
      if (found) waiting.push(found)
    }
    return waiting
  }

  /** The questions that clients see. */
  get questions(): ShownQuestion[] {
    return this.waiting.flatMap(({ toolCallId, approvalId }) => {
      const { shownAt } = this.#open.get(toolCallId) ?? {}
      if (approvalId === undefined || shownAt === undefined) return []
      const { isPromptKnown } = this.#live.messages.ofCall(toolCallId)
      return { approvalId, shownAt, isPromptKnown }
    })
  }

  #create(toolCall: ToolCall, isParked = false): OpenCall {
    const call = createOpenCall(toolCall, isParked)
    this.#open.set(call.id, call)
    return call
  }

  /** Continues a call whose approval has changed, in this process or another one. */
  approvalChanged(approval: Approval): void {
    const call = this.#open.get(approval.toolCallId)
    if (call) this.apply(call, { type: 'approval-changed', approval })
    const outer = this.#findOuter(approval.toolCallId)
    if (outer && approval.state.name !== 'requested')
      this.#runWork(outer, () => resumeIfDecided(this.#live, outer))
  }

  /** Records a decision. If it completes the approval, claims the call in the same commit and runs it. */
  async decide(approval: Approval, decision: Decision): Promise<Approval | Refusal> {
    const { ledger } = this.#live
    const call = this.#open.get(approval.toolCallId)
    // AP1045: an outdated call is cancelled when it is claimed.
    if (call && isOutdated(approval, call.tool, decision.editedArgs))
      return this.#decideInLedger(approval, decision)
    const isAsked = call && this.apply(call, { type: 'decision-received', approvalId: approval.id })
    if (!isAsked) return this.#decideInLedger(approval, decision)
    return this.#track(async () => {
      let result: DecidedCall | Refusal | undefined
      try {
        result = await ledger.decideAndClaim(approval, decision, toClaim(call))
        return isRefusal(result) ? result : result.decided
      } finally {
        this.apply(call, { type: 'decided', result })
      }
    })
  }

  /** Records a decision without claiming the call. It is inside an agent that then runs it, does not wait here, or is outdated. */
  async #decideInLedger(approval: Approval, decision: Decision): Promise<Approval | Refusal> {
    const decided = await this.#live.ledger.decide(approval.id, decision, approval)
    if (!isRefusal(decided)) this.approvalChanged(decided)
    return decided
  }

  /** Takes the output of a client. Returns undefined if the call neither waits for one nor stores an earlier one. */
  submitOutput(output: OutputResponse): SubmittedOutput | undefined {
    const call = this.#open.get(output.toolCallId)
    if (!call || !asClientTool(call.tool)) return undefined
    const earlier = call.output
    // Before the event, which stores the output at once.
    call.output ??= defer<boolean>()
    const isTaken = this.apply(call, { type: 'output-received', output })
    if (isTaken) return { isTaken, isStored: call.output.promise }
    if (!earlier) delete call.output
    return earlier && { isTaken, isStored: earlier.promise }
  }

  /**
   * Parks the calls that people were asked about: the model receives their status as function responses, so that no function call is
   * unanswered that new input would cancel. Returns whether any call was parked.
   */
  park(): boolean {
    const calls = [...this.#open.values()].filter(
      (call) => (wasAsked(call) || call.asksDuringRun) && !call.parking && !call.state.isCancelled,
    )
    for (const call of calls) {
      const response = toParkedResponse(!isAsking(call))
      sendResult(this.#live, call, response)
      call.parking = 'sent'
    }
    return calls.length > 0
  }

  /** The model has reacted to everything that it was sent. */
  confirmParked(): void {
    for (const call of this.#open.values()) if (call.parking) call.parking = 'known'
  }

  /** Cancels calls for the model. Calls that wait are withdrawn. Calls that run may finish, and their results are stored. */
  cancel(toolCallIds: readonly string[]): void {
    const { input, messages } = this.#live
    // The model has the status of a parked call, so there is nothing that it could withdraw.
    const ids = toolCallIds.filter((id) => this.#open.get(id)?.parking !== 'known')
    for (const id of ids) {
      const call = this.#open.get(id)
      // The result of an ended call, or the status of a parked one, was sent too late.
      const ignoring = call && !call.parking ? undefined : messages.findByCall(id)
      input.cancelCall(id, ignoring)
    }
    for (const id of ids) {
      const call = this.#open.get(id)
      if (call) {
        call.unwanted.abort()
        this.apply(call, { type: 'cancelled' })
      } else {
        this.#cancelled.add(id)
        const message = messages.findByCall(id)
        if (message) messages.closeIfDone(message)
      }
    }
    input.flushResults()
  }

  /** The model's turn has ended. ADK has started its calls. */
  endTurn(): void {
    this.#cancelled.clear()
  }

  /** Ends all calls here. Requested approvals stay in the ledger, where they can still be decided. */
  close(): void {
    this.#isClosed = true
    for (const { timer, unwanted } of this.#open.values()) {
      clearTimeout(timer)
      unwanted.abort()
    }
    this.#open.clear()
  }

  /** Resolves when no work is in progress. */
  async idle(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work)
  }

  /** Applies an event to a call, and runs its effects in the background. Returns false if the event changed nothing. */
  apply(call: OpenCall, event: CallEvent): boolean {
    const before = call.state
    const [state, effects] = nextCall(before, event)
    call.state = state
    if (state.name === 'left') this.remove(call)
    else if (effects.length > 0) {
      if (isResponse(event, effects)) this.#live.messages.resume(call.id)
      this.#runWork(call, () => performEffects(this.#live, call, effects))
    }
    return state !== before
  }

  /** Applies an event that the work on a call produced, and runs its effects as part of that work. */
  async advance(call: OpenCall, event: CallEvent): Promise<void> {
    const [state, effects] = nextCall(call.state, event)
    call.state = state
    await performEffects(this.#live, call, effects)
  }

  remove(call: OpenCall): void {
    clearTimeout(call.timer)
    this.#open.delete(call.id)
    call.output?.resolve(false)
    this.#live.onStateChange(call.id, 'ended')
  }

  /** Runs work in the background. A failure ends the call, and not the conversation. */
  #runWork(call: OpenCall, work: () => Promise<void>): void {
    // A call that is asked again after a vote or a rejected decision still waits.
    const isExecuting = wasAsked(call)
    const { state } = call
    const isWaiting = state.name === 'asked' || (state.name === 'paused' && state.isWaiting)
    if (!isWaiting || state.isCancelled)
      this.#live.onStateChange(call.id, isExecuting ? 'executing' : 'running')
    void this.#track(async () => {
      await work().catch((error: unknown) => {
        this.#live.onError(error)
        call.loss = error
        return this.#isClosed || !this.#open.has(call.id)
          ? undefined
          : this.advance(call, { type: isStoreAway(error) ? 'store-failed' : 'failed' })
      })
      if (this.#isClosed) await cancelIfRemoved(this.#live, call)
    }).finally(() => {
      if (!this.isOpen(call)) call.output?.resolve(false)
    })
  }

  /** Counts work as in progress until it ends, so that the session does not move meanwhile. */
  async #track<T>(work: () => Promise<T>): Promise<T> {
    const done = defer()
    this.#work.add(done.promise)
    try {
      return await work()
    } finally {
      this.#work.delete(done.promise)
      done.resolve()
    }
  }
}

/** The output that a client has sent. */
interface SubmittedOutput {
  /** False if an earlier output of the call is being stored. */
  readonly isTaken: boolean
  /** Resolves when the output, or the earlier one, is stored, or with false if it will not be stored here. */
  readonly isStored: Promise<boolean>
}

/** Whether the decision or output that a call waited for has arrived. */
function isResponse({ type }: CallEvent, effects: readonly CallEffect[]): boolean {
  if (effects.some((effect) => effect.type === 'settle-with-output')) return true
  if (type === 'inside-decided' || type === 'inside-cancelled') return true
  const isDecision = type === 'approval-changed' || type === 'decided'
  return isDecision && !effects.some((effect) => effect.type === 'read')
}
