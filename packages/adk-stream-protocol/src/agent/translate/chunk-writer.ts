import type { Chunk, TextKind } from '../../protocol/chunk.ts'
import { createOffer } from '../../protocol/call-offers.ts'
import type { DataParts } from '../../protocol/message.ts'
import type {
  AskedNote,
  DecidedNote,
  CallQuestion,
  PausedNote,
  StepNote,
} from '../events/event-notes.ts'
import type { Call, CallState, Speaker, Streamed, Translation } from './translation.ts'
import {
  beginTranslation,
  isCallWaiting,
  isAskingDuringCall,
  NOTHING_STREAMED,
} from './translation.ts'

/** The tail is cut to the first length when it is longer than the second, and not for each delta. */
const TAIL_LENGTH = 32
const MAX_TAIL_LENGTH = 256

/** The result of a call. */
export type ToolResult =
  | { readonly output: unknown }
  | { readonly errorText: string }
  | { readonly denied: true }

/**
 * Collects the chunks of events, and the state of the translation after them. Keeps parts and steps properly nested
 * (CH3, CH4).
 */
export class ChunkWriter {
  chunks: Chunk[] = []
  /** A copy that only this writer changes. Copying it for every delta would cost more than the rest of the translation. */
  readonly #state: { -readonly [Key in keyof Translation]: Translation[Key] }
  #calls: Map<string, Call> | undefined

  constructor(state: Translation = beginTranslation()) {
    this.#state = { ...state }
  }

  /** The current state. It changes with the next event. */
  get state(): Translation {
    return this.#state
  }

  update(change: Partial<Translation>): void {
    Object.assign(this.#state, change)
  }

  /** Returns the chunks that were written since the last call. */
  take(): readonly Chunk[] {
    const { chunks } = this
    this.chunks = []
    return chunks
  }

  /** Adds a part that is neither text nor a tool call. */
  addPart(chunk: Chunk): void {
    this.closeText()
    if (this.#state.step === 'closed') this.#openStep()
    if (REPLY_PARTS.has(chunk.type)) this.#markReplied()
    this.chunks.push(chunk)
  }

  /** Writes a part that replaces an earlier one with the same id. It needs no open step. */
  replacePart(chunk: Chunk): void {
    this.closeText()
    this.chunks.push(chunk)
  }

  /** Streams text or reasoning. Continues the open part if it has the same kind. */
  writeText(kind: TextKind, delta: string): void {
    if (delta === '') return
    if (this.#state.openText?.kind !== kind) this.#openText(kind)
    const id = this.#state.openText?.id ?? ''
    this.chunks.push({ type: `${kind}-delta`, id, delta })
  }

  closeText(): void {
    const { openText } = this.#state
    if (!openText) return
    this.chunks.push({ type: `${openText.kind}-end`, id: openText.id })
    this.update({ openText: undefined })
  }

  /** Writes a call of the model. Does nothing if the call was written before. */
  writeCall(call: {
    id: string
    toolName: string
    input: unknown
    state: CallState
    steps: readonly StepNote[] | undefined
    isLongRunning: boolean
  }): void {
    const { id: toolCallId, toolName, input, state, steps, isLongRunning } = call
    if (this.#state.calls.has(toolCallId)) return
    this.closeText()
    this.#enterStep()
    this.chunks.push(
      { type: 'tool-input-start', toolCallId, toolName },
      { type: 'tool-input-available', toolCallId, toolName, input },
    )
    const { stepCount } = this.#state
    this.#updateCall(toolCallId, {
      toolName,
      input,
      stepCount,
      state,
      ...(steps && { steps }),
      ...(isLongRunning && { isLongRunning }),
    })
  }

  /** Writes an approval request or a question. `state` is that of its call: no run starts with the answer to a call that runs on. */
  requestApproval(approval: DataParts['approval'], state: 'asked' | 'running' = 'asked'): void {
    const { approvalId, toolCallId } = approval
    const call = this.#state.calls.get(toolCallId)
    if (call === undefined || call.state === 'settled') return
    this.closeText()
    this.chunks.push({ type: 'data-approval', id: approvalId, data: approval })
    // The answer to a question is the output of its call, so a stock client must not be asked to approve it.
    if (!approval.kind) this.chunks.push({ type: 'tool-approval-request', approvalId, toolCallId })
    this.#updateCall(toolCallId, { ...call, state, approval })
  }

  /**
   * Writes that a call waits for approvals inside its agent, and the calls that need them. They are in the step of the call, so that
   * clients send all decisions of the step together. The call gets a preliminary result, because stock clients send decisions only when
   * all other calls of the step have a result.
   */
  pause({ toolCallId, confirmationId, asked, decided }: PausedNote, result: unknown): void {
    if (decided) this.decide(decided)
    const call = this.#state.calls.get(toolCallId)
    if (call === undefined || call.state === 'settled') return
    this.closeText()
    // A stream may stay open while a call waits. Calls that the agent makes afterwards are in a new step.
    const isResumed = call.state === 'paused' || call.approval !== undefined
    const isNew = asked.some((question) => !this.#state.calls.has(question.toolCallId))
    if (isResumed && isNew && call.stepCount === this.#state.stepCount) this.closeStep()
    for (const question of asked) this.ask(question, toolCallId)
    if (call.state !== 'paused') this.#writePreliminary(toolCallId, { output: result })
    // A call inside an agent is resumed by that agent.
    const resumedBy = call.madeBy === undefined ? { resumedBy: confirmationId } : {}
    this.#updateCall(toolCallId, { ...call, state: 'paused', ...resumedBy })
  }

  /** Writes a question inside another call. */
  ask(question: CallQuestion, madeBy: string): void {
    this.#ask(question, madeBy, 'asked')
  }

  /** Writes a question that another call asks while it runs. */
  askDuringCall(question: CallQuestion, madeBy: string): void {
    // AP503: stock clients send an answer when all calls of the last step have a result. The call that asks has none.
    this.closeStep()
    this.#ask(question, madeBy, 'running')
  }

  #ask(
    { toolName, args, ...asked }: CallQuestion,
    madeBy: string,
    state: 'asked' | 'running',
  ): void {
    const { toolCallId } = asked
    if (this.#state.calls.has(toolCallId)) return
    if (this.#state.step === 'closed') this.#openStep()
    this.chunks.push(
      { type: 'tool-input-start', toolCallId, toolName },
      { type: 'tool-input-available', toolCallId, toolName, input: args },
    )
    const { stepCount } = this.#state
    this.#updateCall(toolCallId, { toolName, input: args, stepCount, state: 'running', madeBy })
    this.requestApproval({ ...asked, state: 'requested' }, state)
  }

  /** Writes an approval that was decided when its call was made. The call runs, or has ended. */
  noteUnasked(asked: AskedNote, { toolCallId, ...decided }: DecidedNote): void {
    const call = this.#state.calls.get(toolCallId)
    if (call === undefined || call.state === 'settled') return
    const approval = { ...asked, ...decided }
    this.closeText()
    this.chunks.push({ type: 'data-approval', id: approval.approvalId, data: approval })
    this.#updateCall(toolCallId, { ...call, approval })
  }

  /** Writes the outcome of an approval. */
  decide({ toolCallId, ...ending }: DecidedNote): void {
    const call = this.#state.calls.get(toolCallId)
    if (call?.approval === undefined || call.state === 'settled') return
    const approval = { ...call.approval, ...ending }
    this.closeText()
    this.chunks.push({ type: 'data-approval', id: approval.approvalId, data: approval })
    this.#updateCall(toolCallId, { ...call, state: 'running', approval })
  }

  /**
   * Writes that a call was approved and now waits for the client to run it. Writes the call again, because for a
   * stock client the decision had settled it, and it must now wait for its output (BT130).
   */
  handOver(toolCallId: string): void {
    this.decide({ toolCallId, state: 'approved' })
    const call = this.#state.calls.get(toolCallId)
    if (call?.state !== 'running') return
    const { toolName, input } = call
    // AI SDK 6.0.320 and 7.0.163 mistake a call of an earlier step for a different call.
    if (call.stepCount === this.#state.stepCount)
      this.chunks.push({ type: 'tool-input-available', toolCallId, toolName, input })
    this.#updateCall(toolCallId, { ...call, state: 'waiting' })
  }

  /** Records that a call waits for its result. Clients have the call. */
  setWaiting(toolCallId: string): void {
    const call = this.#state.calls.get(toolCallId)
    if (call?.state === 'running') this.#updateCall(toolCallId, { ...call, state: 'waiting' })
  }

  /** Writes that the client may run a call. */
  offer(toolCallId: string): void {
    const call = this.#state.calls.get(toolCallId)
    if (call === undefined || call.state === 'settled') return
    // In no step of its own: stock clients look for open calls in the last step only.
    this.chunks.push(createOffer(toolCallId))
    // The client gives the result.
    const { isLongRunning: _, ...offered } = call
    this.#updateCall(toolCallId, offered)
  }

  /** Writes the result of a call. Ignores a call that this message does not contain, because clients would throw (CH5). */
  settle(toolCallId: string, result: ToolResult): void {
    // The call that asked has ended without an answer.
    if (isAskingDuringCall(this.#state.calls.get(toolCallId))) {
      this.decide({ toolCallId, state: 'cancelled', reason: ASKING_ENDED })
      return this.settle(toolCallId, { errorText: `The question was cancelled: ${ASKING_ENDED}.` })
    }
    const call = this.#state.calls.get(toolCallId)
    if (call === undefined || call.state === 'settled') return
    this.closeText()
    if (call.state === 'paused') this.#settleInside(toolCallId)
    this.chunks.push(toResultChunk(toolCallId, result))
    this.#updateCall(toolCallId, { ...call, state: 'settled' })
    this.update({ hasResults: true })
  }

  /** Writes what the run of a call has returned. For a long-running call, this is not its result. */
  settleRun(toolCallId: string, result: ToolResult): void {
    const call = this.#state.calls.get(toolCallId)
    const isFinal =
      !call?.isLongRunning || call.approval?.kind !== undefined || !('output' in result)
    if (isFinal || call.state === 'settled') return this.settle(toolCallId, result)
    this.closeText()
    this.#writePreliminary(toolCallId, result)
    this.#updateCall(toolCallId, { ...call, state: 'settled' })
    this.update({ hasResults: true })
  }

  /** Writes a result that another one replaces. */
  #writePreliminary(toolCallId: string, result: ToolResult): void {
    this.chunks.push(
      { type: 'data-preliminary', data: { toolCallId }, transient: true },
      toResultChunk(toolCallId, result),
    )
  }

  /** Settles the calls that were made inside a call which has ended. They cannot run any more. */
  #settleInside(madeBy: string): void {
    for (const [id, call] of this.#state.calls)
      if (call.madeBy === madeBy) this.settle(id, { errorText: ENDED_OUTSIDE })
  }

  /** Writes the final result of a long-running call. It replaces the first return value of the tool, such as a ticket number. */
  complete(toolCallId: string, result: ToolResult): void {
    const call = this.#state.calls.get(toolCallId)
    if (call === undefined || call.completed) return
    this.closeText()
    this.chunks.push(toResultChunk(toolCallId, result))
    this.#updateCall(toolCallId, { ...call, state: 'settled', completed: true })
    this.update({ hasResults: true })
  }

  closeStep(): void {
    this.closeText()
    if (this.#state.step === 'closed') return
    this.chunks.push({ type: 'finish-step' })
    this.update({ step: 'closed' })
  }

  /** Switches to another author. The streams of parallel branches stay separate. */
  switchTo(author: string, branch: string): void {
    const { speaker, parked } = this.#state
    if (speaker.author === author && speaker.branch === branch) return
    const isNext = (other: Speaker): boolean => other.author === author && other.branch === branch
    const next = parked.find(isNext) ?? {
      author,
      branch,
      text: NOTHING_STREAMED,
      reasoning: NOTHING_STREAMED,
    }
    const others = parked.filter((other) => !isNext(other))
    const unfinished = speaker.text.length > 0 || speaker.reasoning.length > 0
    this.closeText()
    this.update({ speaker: next, parked: unfinished ? [...others, speaker] : others })
    if (speaker.author !== '' && speaker.author !== author) {
      this.addPart({ type: 'data-agent', data: { name: author } })
    }
  }

  /** Records streamed text, because the complete event will repeat it. */
  recordStreamed(kind: TextKind, delta: string): void {
    const { author, branch, text, reasoning } = this.#state.speaker
    this.#state.speaker =
      kind === 'text'
        ? { author, branch, text: extend(text, delta), reasoning }
        : { author, branch, text, reasoning: extend(reasoning, delta) }
  }

  /** Returns how many characters of a complete text were already streamed. Returns 0 if the text differs from the streamed one. */
  alreadyStreamed(kind: TextKind, whole: string): number {
    const { length, tail } = this.#state.speaker[kind]
    return whole.length >= length && whole.slice(length - tail.length, length) === tail ? length : 0
  }

  /** Ends the streamed text after its complete event. Later text is new. */
  forgetStreamed(): void {
    const { speaker } = this.#state
    this.closeText()
    if (speaker.text.length === 0 && speaker.reasoning.length === 0) return
    this.update({ speaker: { ...speaker, text: NOTHING_STREAMED, reasoning: NOTHING_STREAMED } })
  }

  #openText(kind: TextKind): void {
    this.closeText()
    this.#enterStep()
    const textCount = this.#state.textCount + 1
    const id = `${kind}-${textCount}`
    this.chunks.push({ type: `${kind}-start`, id })
    this.update({ textCount, openText: { kind, id } })
    if (kind === 'text') this.#markReplied()
  }

  #markReplied(): void {
    this.#state.repliedStep = this.#state.stepCount
  }

  /** Opens a step for output of the model: a new one if the last step contains tool results. */
  #enterStep(): void {
    if (this.#state.hasResults && !this.#hasOpenCall()) this.closeStep()
    if (this.#state.step === 'closed') this.#openStep()
  }

  /**
   * Whether the current step contains a call that waits for a person or a client, or a call of another branch of a `ParallelAgent` that
   * may do so. Clients that send automatically look for decisions and results in the last step only.
   */
  #hasOpenCall(): boolean {
    const { calls, stepCount } = this.#state
    return [...calls.values()].some(
      (call) =>
        call.stepCount === stepCount &&
        (isCallWaiting(call) || (call.state === 'running' && call.steps !== undefined)),
    )
  }

  #openStep(): void {
    this.chunks.push({ type: 'start-step' })
    this.update({ step: 'open', stepCount: this.#state.stepCount + 1, hasResults: false })
  }

  // Copied once, because a turn may contain a thousand calls.
  #updateCall(toolCallId: string, call: Call): void {
    this.#calls ??= new Map(this.#state.calls)
    this.#calls.set(toolCallId, call)
    this.#state.calls = this.#calls
  }
}

/** Parts that are a reply, like text. */
const REPLY_PARTS: ReadonlySet<Chunk['type']> = new Set<Chunk['type']>([
  'file',
  'data-executable-code',
  'data-code-execution-result',
  'data-output',
])

const ASKING_ENDED = 'the call that asked it has ended'
const ENDED_OUTSIDE = 'Not run: the agent that made this call has ended.'

function extend({ length, tail }: Streamed, delta: string): Streamed {
  const longer = tail + delta
  return {
    length: length + delta.length,
    tail: longer.length > MAX_TAIL_LENGTH ? longer.slice(-TAIL_LENGTH) : longer,
  }
}

function toResultChunk(toolCallId: string, result: ToolResult): Chunk {
  if ('denied' in result) return { type: 'tool-output-denied', toolCallId }
  if ('errorText' in result) {
    return { type: 'tool-output-error', toolCallId, errorText: result.errorText }
  }
  return { type: 'tool-output-available', toolCallId, output: result.output }
}
