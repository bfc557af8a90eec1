import { randomUUID } from 'node:crypto'

import type { Event } from '@google/adk'
import { Context, ToolConfirmation } from '@google/adk'

import type { Ending } from '../agent/call-responses.ts'
import {
  APPROVAL_UNAVAILABLE,
  ApprovalUnavailableError,
  describeEnding,
  toApprovedNote,
  toResponse,
} from '../agent/call-responses.ts'
import {
  confirmCall,
  recordOutcome,
  toClaim,
  withEditedArgs,
  withEdits,
} from '../calls/approved-call.ts'
import { BROWSER_TIMED_OUT, toBrowserResponse, asBrowserTool } from '../calls/browser-tool.ts'
import type { DecidedNote } from '../agent/history/event-notes.ts'
import type { ToolQuestion, TermsOptions } from '../calls/call-terms.ts'
import { canWait } from '../agent/adk-workarounds/can-wait.ts'
import { needsConfirmation, resolveQuestionTerms, withUserText } from '../calls/call-terms.ts'
import type { CallEffect, CallEvent } from '../calls/next-call.ts'
import { CANCELLED_BY_MODEL, nextCall } from '../calls/next-call.ts'
import {
  createHandoverEvent,
  createOfferEvent,
  toApprovalEvents,
  toPauseEvents,
} from '../calls/approval-events.ts'
import { toAnswerOutcome } from '../calls/question-terms.ts'
import type { LateSignIn } from '../calls/late-sign-ins.ts'
import {
  findLateSignIn,
  pauseForSignIn,
  readLateSignIn,
  requestLateSignIn,
  storeSignInEnding,
  toSignInCallId,
} from '../calls/late-sign-ins.ts'
import type { CallOutcome } from '../calls/run-call.ts'
import type { ElicitationQueue, LiveElicitation, Pause } from '../calls/run-state.ts'
import { RunState } from '../calls/run-state.ts'
import type { SignInCalls } from '../calls/sign-in-calls.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import type { Approval } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { previewApproval } from '../approvals/policy.ts'
import { isRefusal } from '../approvals/approval.ts'
import type { RecordOutcome } from '../gemini-live/live-agent.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import { describeInside, readInside, withdrawInside } from './inside-calls.ts'
import type { OpenCall, EndedCall } from './open-call.ts'
import { contextOf, readOwnQuestion, toResultEvent } from './open-call.ts'

export interface CallEffectsOptions {
  readonly chat: AppChatRef
  readonly ledger: Ledger
  readonly terms: TermsOptions
  /** The credentials of people who signed in. Undefined if no tool may ask for any. */
  readonly signIns?: SignInCalls | undefined
  /** Runs a tool with the host's plugins and callbacks. `outer` is the run that an agent used as a tool runs in. */
  readonly run: (call: ToolCall, record: RecordOutcome, outer: RunState) => Promise<CallOutcome>
  /** Stores an event of a call, and streams it. */
  readonly write: (toolCallId: string, event: Event) => Promise<void>
  /** Stores an event of an agent that a call runs, and streams it if the message is streaming. */
  readonly writeInside: (toolCallId: string, event: Event) => Promise<void>
  /** A call inside an agent that a call runs is about to ask for approval. */
  readonly onAskInside: (toolCallId: string, insideId: string) => void
  /** Streams an event of a call without storing it. Does nothing if the message is not streaming. */
  readonly stream: (toolCallId: string, event: Event) => void
  /** Sends the result of a call, or its status, to the model as its function response. */
  readonly sendResult: (toolCallId: string, name: string, response: Record<string, unknown>) => void
  /** Sends the result of a parked call to the model. */
  readonly sendParkedResult: (call: EndedCall) => void
  /** Tells the model that a call waits for a person. */
  readonly sendPending: (toolCallId: string, name: string) => void
  /** Returns the id of the message that made a call. */
  readonly messageOf: (toolCallId: string) => string
  /** Cancels the tasks of remote agents that asked what these calls stand for. */
  readonly cancelRemoteTasks: (calls: readonly { readonly toolCallId: string }[]) => Promise<void>
  /** Records which calls wait for a client, and for how long. The records outlive this run. */
  readonly browserCalls: {
    add(call: { messageId: string; toolCallId: string }, timeoutMs: number): Promise<void>
    drop(toolCallId: string): Promise<void>
  }
  /** Whether the run knows all events of its chat. */
  readonly isCurrent: () => Promise<boolean>
  /** The decision or output that a call waited for has arrived. */
  readonly onResponse: (toolCallId: string) => void
  /** Another process has settled a call of this run and continues the conversation. */
  readonly onLost: () => void
  readonly onStateChange: (toolCallId: string, state: LiveCallState) => void
  readonly onError: (error: unknown) => void
}

/**
 * - `executing`: it runs after an approval, so clients saw it wait before.
 * - `asking`: it runs, and its MCP server waits for the answer of a person.
 */
export type LiveCallState = 'running' | 'executing' | 'waiting' | 'asking' | 'ended'

/** What the effects need of the calls of the run. */
export interface Calls {
  /** Applies an event that the work on a call produced, and performs its effects as part of that work. */
  advance(call: OpenCall, event: CallEvent): Promise<void>
  /** Applies an event to a call, and performs its effects in the background. Returns false if the event changed nothing. */
  apply(call: OpenCall, event: CallEvent): boolean
  isOpen(call: OpenCall): boolean
  remove(call: OpenCall): void
  /** Whether the run has ended. */
  readonly isClosed: boolean
}

/** The record of a browser call expires this much later than the call, because a run that is still there expires the call itself. */
const POST_RUN_GRACE_MS = 2_000

/** The reason of a cancelled approval. */
const NOT_EXECUTABLE = 'the call could not be carried out'

/** Results that the model receives. */
const PENDING = { status: 'pending', note: 'Under way. The result comes later.' } as const
const BROKEN = { error: 'The call could not be carried out.' } as const

/** Performs the effects of `nextCall` on the calls of a live run: asks people, runs tools, and sends the results to the model. */
export class CallEffects {
  readonly #options: CallEffectsOptions
  readonly #calls: Calls
  readonly #elicitations: ElicitationQueue = { last: Promise.resolve() }

  constructor(options: CallEffectsOptions, calls: Calls) {
    this.#options = options
    this.#calls = calls
  }

  /** Performs effects, one after the other. */
  async performAll(call: OpenCall, effects: readonly CallEffect[]): Promise<void> {
    for (const effect of effects) await this.#perform(call, effect)
  }

  async #perform(call: OpenCall, effect: CallEffect): Promise<void> {
    const { ledger } = this.#options
    switch (effect.type) {
      case 'request':
        return this.#requestApproval(call, effect.terms)
      case 'show':
        return this.#showRequest(call, effect.approval)
      case 'read': {
        const approval = await ledger.get(effect.approvalId)
        if (approval) this.#calls.apply(call, { type: 'approval-changed', approval })
        return
      }
      case 'claim': {
        const claimed = await ledger.claim(effect.approvalId, toClaim(call))
        return isRefusal(claimed)
          ? this.#calls.advance(call, {
              type: 'claim-refused',
              approval: await ledger.get(effect.approvalId),
            })
          : this.#calls.advance(call, { type: 'claimed', approval: claimed })
      }
      case 'run':
        return effect.approval || !hasLateSignIn(call)
          ? this.#run(call, effect.approval)
          : this.#resumeSignIn(call)
      case 'hand-over':
        return this.#handOver(call, effect.note)
      case 'pause':
        return this.#pause(call, effect.pause, effect.note)
      case 'read-inside':
        return this.readInside(call)
      case 'withdraw-inside':
        return withdrawInside(ledger, call.pause?.asked ?? [], CANCELLED_BY_MODEL)
      case 'end-inside':
        return hasLateSignIn(call) ? this.#resumeSignIn(call) : this.#endInside(call)
      case 'settle-with-output': {
        const browser = asBrowserTool(call.tool)
        const { result } = effect.output
        return this.#settle(call, browser ? toBrowserResponse(result, browser) : BROKEN)
      }
      case 'settle':
        return this.#settle(call, effect.response, effect.note)
      case 'withdraw':
        await ledger.cancel(effect.approvalId, CANCELLED_BY_MODEL)
        return
      case 'leave':
        return this.#calls.remove(call)
      case 'lose':
        this.#calls.remove(call)
        return this.#options.onLost()
      case 'recover':
        return this.#recover(call)
    }
  }

  async #requestApproval(call: OpenCall, { deadlineMs, ...terms }: ResolvedTerms): Promise<void> {
    const { ledger, messageOf } = this.#options
    const messageId = messageOf(call.id)
    const { events } = contextOf(call).session
    const requested = await ledger.request({
      // The same form as the ids of ADK's confirmations.
      id: `adk-${randomUUID()}`,
      ...toClaim(call),
      messageId,
      terms: withUserText(terms, events, messageId),
      deadlineMs,
      live: true,
    })
    await this.#calls.advance(
      call,
      isRefusal(requested)
        ? { type: 'request-refused', refusal: requested }
        : { type: 'request-stored', approval: requested },
    )
  }

  async #showRequest(call: OpenCall, approval: Approval): Promise<void> {
    const { terms } = this.#options
    const made = await previewApproval(approval, approval.chat.principalId, terms)
    for (const event of toApprovalEvents(approval, made, contextOf(call)))
      await this.#options.write(call.id, event)
    call.approvalId = approval.id
    this.#sendPending(call)
    const [state, effects] = nextCall(call.state, {
      type: 'request-shown',
      approvalId: approval.id,
    })
    call.state = state
    this.#options.onStateChange(call.id, 'waiting')
    await this.performAll(call, effects)
  }

  #sendPending({ id, tool, state }: OpenCall): void {
    if (!state.isCancelled && !this.#calls.isClosed) this.#options.sendPending(id, tool.name)
  }

  /** Runs a call. `late`: the approval of a call that was approved before the sign-in that it runs after. */
  async #run(call: OpenCall, approval?: Approval, late?: Approval): Promise<void> {
    const { run, terms, ledger, signIns } = this.#options
    const { toolContext } = call
    if (approval?.terms.kind === 'sign-in')
      signIns?.markSignedIn(toolContext, { isApproved: late !== undefined })
    else if (approval) signIns?.markApproved(toolContext, approval)
    if (approval) confirmCall(toolContext, late ?? approval)
    // The host's policy overrides the tool's own declaration. Without a confirmation, the tool would refuse to run.
    else if (await needsConfirmation(call))
      toolContext.toolConfirmation = new ToolConfirmation({ confirmed: true })
    if (toolContext.toolConfirmation) toolContext.actions.requestedToolConfirmations = {}
    let ended: Approval | undefined
    let signIn: Approval | undefined
    const record = async (made: CallOutcome): Promise<void> => {
      signIn = readLateSignIn(made.result)
      if (approval) ended = await recordOutcome(ledger, approval, { outcome: made, judge: terms })
    }
    const answered = approval && toAnswerOutcome(approval)
    if (answered) await record(answered)
    const outer = this.#createRun(call)
    const edited = late && approval ? { ...call, toolArgs: { ...approval.args } } : undefined
    const outcome = answered ?? (await run(edited ?? withEdits(call, approval), record, outer))
    if (signIn && ended) pauseForSignIn(call, outer, { approval: ended, question: signIn })
    const signedIn = late && ended && (await this.#storeSignIn(call, late, ended))
    outer.markStored()
    call.endings.push(...outer.endingsStored)
    // An agent that the call ran has lost a call to another process.
    const isRecorded = (!approval || ended !== undefined) && !outer.loss
    const pause = outer.takePause(call.id)
    if (
      isRecorded &&
      outcome.by === 'failure' &&
      !(outcome.error instanceof ApprovalUnavailableError)
    )
      this.#options.onError(outcome.error)
    call.hidesError = outcome.by === 'failure' && outcome.hidden
    const result = withEditedArgs(outcome, approval)
    const isLeftOpen = result === undefined && call.tool.isLongRunning
    const isOpen = isLeftOpen && asBrowserTool(call.tool) !== undefined
    const question = approval || pause ? undefined : readOwnQuestion(toolContext)
    await this.#calls.advance(call, {
      type: 'ran',
      // Only a browser tool waits for its result in a live session.
      response: isLeftOpen ? PENDING : toResponse(result),
      isRecorded,
      ended,
      pause,
      signedIn,
      isOpen,
      question:
        question &&
        (canWait(call, isAnyRoot) ? await this.#resolveQuestion(call, question) : 'unavailable'),
    })
  }

  /** Asks for the sign-in of an approved call. Returns the result of the call until the sign-in has ended. */
  async askForSignIn(
    toolCall: ToolCall,
    approval: Approval,
    call: OpenCall | undefined,
  ): Promise<Record<string, unknown>> {
    const { ledger } = this.#options
    const terms = await this.#resolveQuestion(toolCall, { hint: '' })
    if (!terms) return APPROVAL_UNAVAILABLE
    const onAskLive = (id: string): void => {
      if (call) this.addInside(call, id)
    }
    return requestLateSignIn(toolCall, { approval, terms, ledger, onAskLive })
  }

  /** Continues an approved call whose sign-in has ended: runs it, or settles it without running it. */
  async #resumeSignIn(call: OpenCall): Promise<void> {
    const { ledger } = this.#options
    const late = await findLateSignIn(call, ledger)
    let { question } = late ?? {}
    if (late && question?.state.name === 'approved') {
      const claimed = await ledger.claim(question.id, question)
      if (!isRefusal(claimed)) return this.#run(call, claimed, late.approval)
      question = await ledger.get(question.id)
    }
    const hasRun = question?.state.name === 'succeeded' || question?.state.name === 'failed'
    const ending = question && !hasRun ? describeEnding(question) : undefined
    if (late && question && ending)
      return this.#settleSignIn(call, { approval: late.approval, question }, ending)
    // Another process runs the call and reports its result.
    await this.#calls.advance(call, { type: 'claim-refused', approval: undefined })
  }

  /** Settles an approved call with the end of its sign-in. */
  async #settleSignIn(
    call: OpenCall,
    { approval, question }: LateSignIn,
    { response, note }: Ending,
  ): Promise<void> {
    await this.#settle(call, response, await this.#storeSignIn(call, approval, question, note))
  }

  /** Stores how the sign-in of an approved call ended. Returns the note for the call. */
  async #storeSignIn(
    call: OpenCall,
    approval: Approval,
    question: Approval,
    note = toApprovedNote(question),
  ): Promise<DecidedNote> {
    call.endings.push(question.toolCallId)
    return storeSignInEnding(call, this.#createRun(call), { approval, question, note })
  }

  addInside(call: OpenCall, toolCallId: string): void {
    call.inside.add(toolCallId)
    this.#options.onAskInside(call.id, toolCallId)
  }

  /** Creates the run that an agent used as a tool runs in. */
  #createRun(call: OpenCall): RunState {
    const { terms, messageOf, writeInside } = this.#options
    return new RunState(messageOf(call.id), 'message', undefined, {
      deadlineMs: terms.deadlineMs,
      canWait: canWait(call, isAnyRoot),
      store: (event) => writeInside(call.id, event),
      onAsk: (toolCallId) => this.addInside(call, toolCallId),
      elicitation: this.#createElicitation(call),
    })
  }

  /** Lets the MCP server of a call ask a person. The message pauses meanwhile, as for any other question. */
  #createElicitation(call: OpenCall): LiveElicitation {
    const { write, onResponse, onStateChange } = this.#options
    return {
      // Node.js creates the signal when it is read first. Most calls ask nothing.
      get signal() {
        return call.unwanted.signal
      },
      queue: this.#elicitations,
      show: (event) => write(call.id, event),
      onStateChange: (state) => {
        if (this.#calls.isClosed) return
        call.isEliciting = state === 'asked'
        if (state === 'asked') this.#sendPending(call)
        else onResponse(call.id)
        onStateChange(call.id, state === 'asked' ? 'asking' : 'running')
      },
    }
  }

  /** Stores that a call waits for approvals inside the agent that it runs. */
  async #pause(call: OpenCall, pause: Pause, note: DecidedNote | undefined): Promise<void> {
    const { write, messageOf } = this.#options
    const { id, tool, toolArgs: args, toolContext } = call
    const confirmationId = `adk-${randomUUID()}`
    const paused = { ...pause, toolCallId: id, confirmationId, ...(note && { decided: note }) }
    const shown = { name: tool.name, args, messageId: messageOf(id) }
    const [placeholder, request] = toPauseEvents(paused, shown, contextOf(call))
    const { stateDelta, artifactDelta } = toolContext.actions
    Object.assign(placeholder.actions, { stateDelta, artifactDelta })
    await write(id, placeholder)
    await write(id, request)
    await this.#report(call, note)
    if (!call.pause && !note) this.#sendPending(call)
    call.pause = pause
    const invocationContext = contextOf(call)
    call.toolContext = new Context({ invocationContext, functionCallId: id })
    const [state, effects] = nextCall(call.state, { type: 'pause-shown' })
    call.state = state
    // A message whose call continues at once does not pause.
    const inside = await readInside(this.#options.ledger, pause.asked)
    if (call.state !== state || this.#calls.isClosed) return
    if (inside === 'decided') return this.#calls.advance(call, { type: 'inside-decided' })
    this.#options.onStateChange(id, 'waiting')
    await this.performAll(call, effects)
  }

  /** Continues a call when a call inside its agent was decided. */
  async readInside(call: OpenCall): Promise<void> {
    const { pause, state } = call
    if (state.name !== 'paused' || !state.isWaiting || !pause) return
    const inside = await readInside(this.#options.ledger, pause.asked)
    if (inside !== 'waiting' && call.pause === pause && !this.#calls.isClosed)
      this.#calls.apply(call, { type: `inside-${inside}` })
  }

  /** Settles a call whose agent cannot continue, and the calls inside it. */
  async #endInside(call: OpenCall, reason = CANCELLED_BY_MODEL): Promise<void> {
    const { ledger, writeInside, messageOf } = this.#options
    const pause = call.pause ?? { session: '', asked: [] }
    await withdrawInside(ledger, pause.asked, reason)
    await this.#options.cancelRemoteTasks(pause.asked)
    const where = { messageId: messageOf(call.id), context: contextOf(call) }
    const { response, events } = await describeInside(ledger, pause, where)
    for (const event of events) await writeInside(call.id, event)
    call.endings.push(...pause.asked.map(({ toolCallId }) => toolCallId))
    await this.#settle(call, response ?? BROKEN)
  }

  /** Records that the conversation shows the outcomes of approvals. */
  async #report(call: OpenCall, note: DecidedNote | undefined): Promise<void> {
    const endings = [...call.endings.splice(0), ...(note ? [call.id] : [])]
    if (endings.length > 0) await this.#options.ledger.markReported(this.#options.chat, endings)
  }

  async #resolveQuestion(
    call: ToolCall,
    question: ToolQuestion,
  ): Promise<ResolvedTerms | undefined> {
    const { terms, signIns } = this.#options
    const resolved = await resolveQuestionTerms(call, question, terms)
    return resolved && (signIns?.toTerms(call.toolContext, resolved) ?? resolved)
  }

  /** Hands the call to a browser tool. */
  async #handOver(call: OpenCall, note: DecidedNote | undefined): Promise<void> {
    const browser = asBrowserTool(call.tool)
    if (!browser) return
    const messageId = this.#options.messageOf(call.id)
    if (note)
      await this.#options.write(call.id, createHandoverEvent(contextOf(call), messageId, call.id))
    await this.#options.browserCalls.add(
      { messageId, toolCallId: call.id },
      browser.timeoutMs + POST_RUN_GRACE_MS,
    )
    if (this.#calls.isClosed) return
    this.startTimer(call, browser.timeoutMs)
    const hasOutput = call.state.name === 'delivered' && call.state.output !== undefined
    if (!hasOutput || call.state.isCancelled) {
      if (!note) this.#options.stream(call.id, createOfferEvent(contextOf(call), call.id))
      this.#options.onStateChange(call.id, 'waiting')
    }
    this.#calls.apply(call, { type: 'handed-over' })
  }

  startTimer(call: OpenCall, timeoutMs: number): void {
    call.isBrowserCall = true
    call.expiresAt = Date.now() + timeoutMs
    call.timer = setTimeout(() => {
      this.#expireBrowserCall(call).catch((error: unknown) => this.#options.onError(error))
    }, timeoutMs)
  }

  /** Ends a browser call without output. If another process took the output, it has continued the conversation, and the call ends here. */
  async #expireBrowserCall(call: OpenCall): Promise<void> {
    const isCurrent = await this.#options.isCurrent()
    if (!this.#calls.isOpen(call)) return
    if (!isCurrent) return this.#calls.remove(call)
    const output = { toolCallId: call.id, result: { errorText: BROWSER_TIMED_OUT } }
    this.#calls.apply(call, { type: 'output-received', output })
  }

  /** Stores the result of a call, sends it to the model, and ends the call. */
  async #settle(
    call: OpenCall,
    response: Record<string, unknown>,
    note?: DecidedNote,
  ): Promise<void> {
    const { write, messageOf } = this.#options
    const { id } = call
    const event = toResultEvent(call, { response, note, messageId: messageOf(id) })
    if (!call.isStored) await write(id, event)
    call.isStored = true
    await this.#report(call, note)
    if (call.isBrowserCall) await this.#options.browserCalls.drop(id)
    if (!call.state.isCancelled && !this.#calls.isClosed) this.#sendResult(call, response)
    this.#calls.remove(call)
  }

  #sendResult(
    { id, tool: { name }, toolArgs: args, parking }: OpenCall,
    response: Record<string, unknown>,
  ): void {
    const { sendResult, sendParkedResult } = this.#options
    if (parking) sendParkedResult({ id, name, args, response })
    else sendResult(id, name, response)
  }

  /** Settles a call whose work failed: with the outcome in the ledger if there is one, else as not executable. */
  async #recover(call: OpenCall): Promise<void> {
    clearTimeout(call.timer)
    try {
      const { chat, ledger } = this.#options
      if (!(await ledger.locks.stillHolds(chat))) {
        this.#calls.remove(call)
        this.#options.onLost()
        return
      }
      if (hasLateSignIn(call)) {
        const late = await this.#cancelSignIn(call)
        const ending = late && describeEnding(late.question)
        if (ending) return await this.#settleSignIn(call, late, ending)
      } else if (call.inside.size > 0) return await this.#endInside(call, NOT_EXECUTABLE)
      const { id } = (await ledger.findByCall(chat, call.id)) ?? {}
      if (id !== undefined) ledger.abandon(id)
      if (id !== undefined) await ledger.cancel(id, NOT_EXECUTABLE)
      const approval = id === undefined ? undefined : await ledger.get(id)
      const ending = approval && describeEnding(unknownIfExecuting(approval))
      await this.#settle(call, ending?.response ?? BROKEN, ending?.note)
    } catch (error) {
      this.#options.onError(error)
      if (this.#calls.isClosed) return
      if (!call.state.isCancelled) this.#sendResult(call, BROKEN)
      this.#calls.remove(call)
    }
  }

  /** Ends the sign-in of a call whose work failed. Returns undefined if the outcome of the call is not that of the sign-in. */
  async #cancelSignIn(call: OpenCall): Promise<LateSignIn | undefined> {
    const { chat, ledger } = this.#options
    const { id } = (await ledger.findByCall(chat, toSignInCallId(call.id))) ?? {}
    if (id === undefined) return undefined
    ledger.abandon(id)
    await ledger.cancel(id, NOT_EXECUTABLE)
    const late = await findLateSignIn(call, ledger)
    return late && { ...late, question: unknownIfExecuting(late.question) }
  }
}

/** Whether a call was approved and then asked for a sign-in. */
function hasLateSignIn({ id, inside }: OpenCall): boolean {
  return inside.has(toSignInCallId(id))
}

// A live run uses a copy of the agent, and never runs a workflow.
export function isAnyRoot(): boolean {
  return true
}

/** Returns an executing approval as `unknown`: the call may have taken effect, but its outcome could not be recorded. */
function unknownIfExecuting(approval: Approval): Approval {
  const { state } = approval
  return state.name === 'executing'
    ? { ...approval, state: { ...state, name: 'unknown' } }
    : approval
}
