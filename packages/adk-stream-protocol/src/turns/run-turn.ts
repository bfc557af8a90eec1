import type { Event } from '@google/adk'

import { readNotes } from '../agent/events/event-notes.ts'
import type { PartialReply } from '../agent/tree/interrupted-turn.ts'
import { readInnerResults } from '../agent/events/event-notes.ts'
import { ChunkWriter } from '../agent/translate/chunk-writer.ts'
import type { TranslationOptions } from '../agent/translate/translate-event.ts'
import { finishTranslation, translateEvent } from '../agent/translate/translate-event.ts'
import { isAudioOnly } from '../agent/translate/translate-parts.ts'
import type { Translation } from '../agent/translate/translation.ts'
import { isWaiting } from '../agent/translate/translation.ts'
import type { Chunk, TextKind } from '../protocol/chunk.ts'
import { isAudio, isDelta, readQuestion } from '../protocol/chunk.ts'
import type { TurnError } from '../protocol/message.ts'
import type { ErrorCode } from '../protocol/error-codes.ts'
import { toProtocolError } from '../protocol/errors.ts'
import type { Turn } from './turn.ts'

export interface RunTurnOptions extends TranslationOptions {
  /** The state of a turn that continues. Default: the turn starts. */
  readonly from?: Translation
  /** The error that the turn ended with before. It lasts if the run has no events. */
  readonly lastError?: TurnError | undefined
  /** Whether the run stays open, as a live session does. Then only present readers receive audio. Default false: it is logged like other chunks. */
  readonly isOpenRun?: boolean
  /** Whether calls continue to run after the events end. Default false: they end without a result. */
  readonly leavesCalls?: () => boolean
  /** Reads the position of the chat at the end of a completed run, for a client that has read the turn. Default: it is not known. */
  readonly readPosition?: () => Promise<string | undefined>
  /** Called for every chunk. */
  readonly onChunk: ((chunk: Chunk) => void) | undefined
  readonly onError: (error: unknown) => void
}

/** How a run ended, and the output that ADK has not stored. */
export interface RunOutcome {
  readonly end: 'completed' | 'stopped' | 'failed'
  /** The output after the last event that ADK stored. */
  readonly unstored: PartialReply
  /** The id of the last stored event of the agent that the turn has received. */
  readonly lastStored: string | undefined
  /** The newest event of the agent that ADK has tried to store. Known when the run is settled. */
  newest?: Event | undefined
  /** Whether the turn waits for a response. */
  readonly paused: boolean
  /** Calls that wait for a result from a client: call → tool. */
  readonly waiting: ReadonlyMap<string, string>
  /** The state at the end, for a turn that continues the run. */
  readonly state: Translation
  readonly stats: RunStats
}

/** What a run did, for metrics. It is counted here and read once, when the run has ended. */
interface RunStats {
  readonly chunks: number
  readonly durationMs: number
  /** From the start of the run to the first chunk of the agent. Undefined if there was none. */
  readonly firstChunkMs: number | undefined
  /** The code of the error that the run ended with. */
  readonly errorCode: ErrorCode | undefined
  /** The calls that ended in this run. The ledger knows those that needed approval. */
  readonly calls: readonly { readonly toolName: string; readonly hasFailed: boolean }[]
}

/** How long a stopped run may take to end. Then the turn ends without it: a tool may ignore the signal. */
const ABANDON_AFTER_MS = 1_000

/** Runs the agent and writes its events to the turn. Never throws: an error ends the turn and is reported. */
export async function runTurn(
  turn: Turn,
  events: AsyncIterable<Event>,
  options: RunTurnOptions,
): Promise<RunOutcome> {
  const writer = new TurnWriter(turn, options)
  if (!options.from) writer.append({ type: 'start', messageId: turn.messageId })
  const abandonment = waitForAbandonment(turn.signal)
  try {
    await Promise.race([writer.follow(events), abandonment.promise])
  } catch (thrown) {
    if (!turn.signal.aborted) writer.fail(thrown)
  } finally {
    abandonment.cancel()
  }
  if (turn.wantsPosition && writer.isComplete) {
    const position = await options.readPosition?.()
    // The end of a stopped turn is stored later.
    if (writer.isComplete) turn.endPosition = position
  }
  return writer.finish()
}

class TurnWriter {
  readonly #turn: Turn
  readonly #options: RunTurnOptions
  readonly #chunks: ChunkWriter
  #unstored: { readonly kind: TextKind; readonly id: string }[] = []
  #report: PartialReply['report']
  #lastStored: string | undefined
  #author = ''
  #invocationId = ''
  #isOver = false
  /** Whether a live session has ended before the model had completed its reply. */
  #isCutOff = false
  #hasWritten = false
  readonly #startedAt = performance.now()
  #firstChunkAt: number | undefined
  #chunkCount = 0
  readonly #failedCalls: string[] = []

  constructor(turn: Turn, options: RunTurnOptions) {
    this.#turn = turn
    this.#options = options
    this.#chunks = new ChunkWriter(options.from)
  }

  async follow(events: AsyncIterable<Event>): Promise<void> {
    const { signal, log } = this.#turn
    for await (const event of events) {
      // The turn may have been stopped, or have ended without the run.
      if (this.#isOver || signal.aborted) return
      // The model of a live session marks partial events when a person speaks.
      const isLast = this.#options.isOpenRun === true && event.interrupted && !event.partial
      if (isLast) return this.#cutOff(event)
      this.#write(event)
      // ADK continues after some errors and repeats them. The client has stopped reading.
      if (this.#state.error) return
      if (log.congested) await log.room()
    }
  }

  /** Whether the run has neither failed nor been stopped, and has not paused at the question of an MCP server. */
  get isComplete(): boolean {
    return !this.#isStopped && !this.#state.error && this.#turn.asking === undefined
  }

  get #isStopped(): boolean {
    return this.#turn.signal.aborted || this.#isCutOff
  }

  get #state(): Translation {
    return this.#chunks.state
  }

  append(chunk: Chunk): void {
    this.#chunkCount += 1
    if (this.#options.isOpenRun === true && isAudio(chunk)) this.#turn.log.pass(chunk)
    else this.#turn.log.append(chunk)
    if (!isDelta(chunk)) this.#mark(chunk)
    this.#options.onChunk?.(chunk)
  }

  #appendAll(chunks: readonly Chunk[]): void {
    for (const chunk of chunks) this.append(chunk)
  }

  #mark(chunk: Chunk): void {
    // A client may lose its connection and respond over another one while this turn runs.
    if (chunk.type === 'tool-input-available') this.#turn.log.markPause(chunk.toolCallId)
    if (chunk.type === 'tool-output-error') this.#failedCalls.push(chunk.toolCallId)
    if (chunk.type === 'tool-approval-request') this.#turn.log.markPause(chunk.approvalId)
    const question = readQuestion(chunk)
    if (question) this.#turn.log.markPause(question.approvalId)
  }

  fail(thrown: unknown): void {
    this.#options.onError(thrown)
    this.#chunks.update({ error: toProtocolError(thrown).toJSON().error })
  }

  finish(): RunOutcome {
    this.#isOver = true
    const stopped = this.#isStopped
    const unstored = {
      parts: this.#unstored.map(({ kind, id }) => ({
        text: this.#turn.log.textOf(kind, id),
        thought: kind === 'reasoning',
      })),
      author: this.#author,
      invocationId: this.#invocationId,
      messageId: this.#turn.messageId,
      report: this.#report,
    }
    const end = stopped ? 'stopped' : 'completed'
    // TU1800: the message was complete before, so there was nothing to stop.
    const isDone = stopped && !this.#hasWritten && this.#options.from && !isWaiting(this.#state)
    const left = isDone === true || (!stopped && this.#options.leavesCalls?.() === true)
    this.#turn.log.appendTogether(() => {
      // If the translation of an event threw, the state includes what was written before.
      this.#appendAll(this.#chunks.take())
      this.#appendAll(finishTranslation(this.#endState, left ? 'left' : end))
    })
    this.#turn.log.end()
    const waiting = [...this.#state.calls].filter(([, call]) => call.state === 'waiting')
    return {
      end: this.#state.error ? 'failed' : end,
      unstored,
      lastStored: this.#lastStored,
      paused: isWaiting(this.#state) || this.#turn.asking !== undefined,
      waiting: new Map(waiting.map(([toolCallId, { toolName }]) => [toolCallId, toolName])),
      state: this.#state,
      stats: this.#readStats(),
    }
  }

  /** TU1984: a turn that had nothing to do ends as before. */
  get #endState(): Translation {
    const { lastError } = this.#options
    return this.#hasWritten || !lastError ? this.#state : { ...this.#state, error: lastError }
  }

  #readStats(): RunStats {
    const ended = [...this.#state.calls].filter(
      ([id, { state, approval }]) =>
        state === 'settled' && !approval && this.#options.from?.calls.get(id)?.state !== 'settled',
    )
    return {
      chunks: this.#chunkCount,
      durationMs: performance.now() - this.#startedAt,
      firstChunkMs: this.#firstChunkAt && this.#firstChunkAt - this.#startedAt,
      errorCode: this.#state.error?.code,
      calls: ended.map(([id, { toolName }]) => ({
        toolName,
        hasFailed: this.#failedCalls.includes(id),
      })),
    }
  }

  #cutOff({ author = '', invocationId }: Event): void {
    this.#isCutOff = true
    this.#hasWritten = true
    // The agent that has replied may be another one.
    this.#author ||= author
    this.#invocationId ||= invocationId
  }

  #write(event: Event): void {
    this.#hasWritten = true
    // A response that the turn waited for starts a step, as in the stored turn.
    if (event.author === 'user' && this.#options.isOpenRun !== true) this.#chunks.closeStep()
    translateEvent(this.#chunks, event, this.#options)
    const chunks = this.#chunks.take()
    this.#author = event.author ?? this.#author
    this.#invocationId = event.invocationId
    // A complete event repeats the streamed output. An error has no content: the output before it is not stored.
    if (!event.partial && event.content && !isAudioOnly(event)) this.#unstored = []
    const { usageMetadata, modelVersion } = event
    const version = modelVersion !== undefined && { modelVersion }
    if (usageMetadata) this.#report = event.partial ? { usageMetadata, ...version } : undefined
    if (!event.partial && event.author !== 'user') this.#lastStored = event.id
    if (chunks.length > 0) this.#firstChunkAt ??= performance.now()
    if (event.partial) for (const chunk of chunks) this.#recordUnstored(chunk)
    if (chunks.length > 1) this.#turn.log.appendTogether(() => this.#appendAll(chunks))
    else this.#appendAll(chunks)
  }

  #recordUnstored(chunk: Chunk): void {
    if (chunk.type === 'text-start') this.#unstored.push({ kind: 'text', id: chunk.id })
    if (chunk.type === 'reasoning-start') this.#unstored.push({ kind: 'reasoning', id: chunk.id })
  }
}

function waitForAbandonment(signal: AbortSignal): { promise: Promise<void>; cancel: () => void } {
  let abandon: (() => void) | undefined
  let timer: NodeJS.Timeout | undefined
  const promise = new Promise<void>((resolve) => {
    abandon = resolve
  })
  const startTimer = (): void => {
    timer = setTimeout(() => abandon?.(), ABANDON_AFTER_MS)
  }
  if (signal.aborted) startTimer()
  else signal.addEventListener('abort', startTimer, { once: true })
  // Not with an AbortController: an abort costs 50 µs, and every turn ends here.
  const cancel = (): void => {
    signal.removeEventListener('abort', startTimer)
    clearTimeout(timer)
  }
  return { promise, cancel }
}

/** A question of an MCP server. The call that asked it waits for the answer. */
interface Question {
  readonly approvalId: string
  readonly toolCallId: string
}

/**
 * The events of one run of the agent, which several turns stream one after the other: a turn ends at the question of an MCP server, and
 * the next one continues when the question has ended. The run itself continues meanwhile.
 */
export class RunEvents {
  readonly #source: AsyncIterator<Event>
  readonly #held: Event[] = []
  #pending: Promise<IteratorResult<Event>> | undefined
  #question: Question | undefined

  constructor(events: AsyncIterable<Event>) {
    this.#source = events[Symbol.asyncIterator]()
  }

  /** The question at which the last read ended. Undefined if the run has ended. */
  get question(): Question | undefined {
    return this.#question
  }

  /** Yields the events up to the next question, or to the end of the run. Calls `onAsk` before it ends at a question. */
  async *read(onAsk: (question: Question) => void): AsyncGenerator<Event> {
    this.#question = undefined
    try {
      for (;;) {
        const event = await this.#take()
        if (!event) return
        yield event
        const question = event.customMetadata && readNotes(event).askedDuringCalls?.at(-1)
        if (!question) continue
        this.#question = question
        onAsk(question)
        return
      }
    } finally {
      if (!this.#question) await this.#source.return?.()
    }
  }

  /** Resolves when the question has ended, the run has ended, or the signal aborts. Events are kept for the next read. */
  async untilAnswered(signal: AbortSignal): Promise<void> {
    const { toolCallId } = this.#question ?? {}
    const aborted = new Promise<undefined>((resolve) => {
      if (signal.aborted) resolve(undefined)
      else signal.addEventListener('abort', () => resolve(undefined), { once: true })
    })
    while (!signal.aborted) {
      this.#pending ??= this.#source.next()
      // The next read throws it.
      const failed = this.#pending.then(
        (result) => result,
        () => undefined,
      )
      const result = await Promise.race([failed, aborted])
      if (!result || result.done === true) return
      this.#pending = undefined
      this.#held.push(result.value)
      if (toolCallId !== undefined && readInnerResults(result.value).includes(toolCallId)) return
    }
  }

  /** Ends a run that no turn reads any more. */
  async close(): Promise<void> {
    await this.#source.return?.()
  }

  async #take(): Promise<Event | undefined> {
    const held = this.#held.shift()
    if (held) return held
    const pending = this.#pending ?? this.#source.next()
    this.#pending = undefined
    const result = await pending
    return result.done === true ? undefined : result.value
  }
}
