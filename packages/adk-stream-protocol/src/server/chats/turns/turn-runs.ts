import type { Event } from '@google/adk'
import { context, SpanStatusCode, trace } from '@opentelemetry/api'

import type { ReplayedTurn } from '../../../agent/history/replay-turn.ts'
import {
  closeAtPause,
  markPauses,
  replayTurn,
  toReplay,
} from '../../../agent/history/replay-turn.ts'
import { ChunkWriter } from '../../../agent/translate/chunk-writer.ts'
import type { TranslationOptions } from '../../../agent/translate/translate-event.ts'
import type { Translation } from '../../../agent/translate/translation.ts'
import type { Ledger } from '../../../approvals/ledger.ts'
import { asBrowserTool } from '../../../calls/browser-tool.ts'
import type { Chunk } from '../../../protocol/chunk.ts'
import type { AppChatRef, ChatRef } from '../../../shared/chat-ref.ts'
import { RunEvents, runTurn } from '../../../turns/run-turn.ts'
import type { RunOutcome, RunTurnOptions } from '../../../turns/run-turn.ts'
import type { Turn } from '../../../turns/turn.ts'
import { isClosing } from '../../../turns/turn.ts'
import type { TurnRegistry } from '../../../turns/turn-registry.ts'
import type { TurnInfo } from '../../observers.ts'
import { isStoreFailure } from '../../http/exchange.ts'
import type { Backend } from '../backend.ts'
import { toAppChat } from '../backend.ts'

export interface TurnRunsOptions extends TranslationOptions {
  /** Whether MCP servers may ask questions during a call. */
  readonly elicits: boolean
  readonly onChunk: ((chunk: Chunk, turn: TurnInfo) => void) | undefined
  readonly onError: (error: unknown) => void
  /** Called when a turn starts, and when it resumes with new work. */
  readonly onTurn: (turn: TurnInfo) => void
  /** Called when results of approved calls were stored after their turn was stopped. The turn may have ended. */
  readonly onLateResults: (turn: TurnInfo) => void
  /** Called when the run of a turn has ended. `isLive` says that it was a message of a live session. */
  readonly onTurnEnd: (turn: TurnInfo, outcome: RunOutcome, isLive: boolean) => void
}

/** The events of a run, and how they are streamed. */
export interface RunInTurn extends Pick<RunTurnOptions, 'from' | 'passSound' | 'leavesCalls'> {
  readonly chat: ChatRef
  readonly events: AsyncIterable<Event>
  /** The outcome up to the question of an MCP server after which the turn continues. */
  readonly before?: RunOutcome
}

/** Streams runs of the agent into turns, and repairs the session after each run. */
export class TurnRuns {
  readonly #turns: TurnRegistry
  readonly #options: TurnRunsOptions
  /** Turns whose run ended with an error, with its code. */
  readonly #failed = new WeakMap<Turn, string>()

  constructor(turns: TurnRegistry, options: TurnRunsOptions) {
    this.#turns = turns
    this.#options = options
  }

  /** Whether the run of a turn ended with an error. */
  hasFailed(turn: Turn): boolean {
    return this.#failed.has(turn)
  }

  /** Whether the run of a turn ended because the store failed. */
  hasStoreFailed(turn: Turn): boolean {
    return isStoreFailure(this.#failed.get(turn))
  }

  /** Streams a run to its end. A run that asks a question of an MCP server is streamed in several turns. */
  async stream(
    backend: Backend,
    turn: Turn,
    { chat, events, ...options }: RunInTurn,
  ): Promise<void> {
    if (!this.#options.elicits || options.passSound === true)
      return void (await this.#runOnce(backend, turn, { chat, events, ...options }))
    const run = new RunEvents(events)
    const leavesCalls = (): boolean => run.question !== undefined
    let { from } = options
    let before: RunOutcome | undefined
    for (let current = turn; ;) {
      const read = run.read(({ approvalId }) => {
        current.asking = approvalId
      })
      const how = { leavesCalls, ...(from && { from }), ...(before && { before }) }
      before = await this.#runOnce(backend, current, { chat, events: read, ...how })
      const failure = this.#failed.get(current)
      if (failure !== undefined) this.#failed.set(turn, failure)
      if (!run.question) return
      if (before?.end !== 'completed') {
        // Stopped at the moment of the question. The run ends by itself.
        run.close().catch(this.#options.onError)
        return
      }
      from = closeSteps(before.state)
      await run.untilAnswered(turn.signal)
      current = this.#turns.continue(chat, current)
      this.#options.onTurn({ ...chat, messageId: turn.messageId })
    }
  }

  /** Streams a run until it ends, or until it asks a question of an MCP server. Returns undefined if the session could not be repaired. */
  async #runOnce(
    backend: Backend,
    turn: Turn,
    { chat, events, before, ...options }: RunInTurn,
  ): Promise<RunOutcome | undefined> {
    const { onChunk, onError, onTurnEnd, exposeState } = this.#options
    const { principalId, chatId } = chat
    // Without a spread, which would give each turn a hidden class of its own.
    const info = { principalId, chatId, messageId: turn.messageId }
    try {
      return await traceTurn(info, async () => {
        const outcome = await runTurn(turn, events, {
          exposeState,
          onError,
          onChunk: onChunk && ((chunk) => onChunk(chunk, info)),
          ...options,
        })
        if (outcome.end === 'failed') this.#failed.set(turn, outcome.stats.errorCode ?? 'internal')
        onTurnEnd(info, outcome, options.passSound === true)
        if (turn.asking !== undefined && outcome.end === 'completed') return outcome
        const whole = before ? afterQuestion(outcome, before) : outcome
        const isResumed = options.from !== undefined && !options.passSound
        const isLeft = isResumed && isClosing(turn.signal)
        await backend.host.settle(toAppChat(backend, chat), whole, isLeft)
        // A live session sets the timeouts of its browser calls itself.
        if (!options.passSound) await this.#startTimeouts(backend, info, outcome)
        return outcome
      })
    } catch (error) {
      // The turn was streamed; only the session could not be repaired. The next turn tries again.
      onError(error)
      return undefined
    }
  }

  /** Starts the timeouts of browser calls. */
  async #startTimeouts(
    backend: Backend,
    { messageId, ...chat }: TurnInfo,
    { waiting }: RunOutcome,
  ): Promise<void> {
    const key = toAppChat(backend, chat)
    for (const [toolCallId, toolName] of waiting) {
      const tool = await backend.findTool(key, toolName)
      const browser = tool && asBrowserTool(tool)
      const call = { chat: key, messageId, toolCallId }
      if (browser) await backend.browserCalls.add(call, browser.timeoutMs)
    }
  }
}

/** Replays the stored part of a turn, up to its pause. Returns undefined if the turn does not exist. */
export async function replayStored(
  { sessions }: Pick<Backend, 'sessions'>,
  chat: AppChatRef,
  { messageId, options }: { readonly messageId: string; readonly options: TranslationOptions },
): Promise<ReplayedTurn | undefined> {
  const stored = await sessions.findTurn(chat, messageId)
  return stored && closeAtPause(replayTurn(stored, options))
}

/** Writes the stored part of a turn into its log, and marks the pauses from which clients continue to read. */
export async function prefillTurn(
  turn: Turn,
  replayed: ReplayedTurn,
  {
    ledger,
    chat,
    pause,
  }: { readonly ledger: Ledger; readonly chat: AppChatRef; readonly pause: number },
): Promise<void> {
  const { chunks, state } = replayed
  const decided = new Set<string>()
  for (const [toolCallId, call] of state.calls) {
    const approval = call.approval && (await ledger.findByCall(chat, toolCallId))
    // A client that reads from the start must not be asked again.
    if (approval && approval.state.name !== 'requested') decided.add(toolCallId)
  }
  const before = toReplay(chunks.slice(0, pause), (toolCallId) => decided.has(toolCallId))
  turn.log.append({ type: 'start', messageId: turn.messageId })
  for (const chunk of before) turn.log.append(chunk)
  turn.log.markPause()
  const marks = markPauses(replayed)
  for (let index = pause; index <= chunks.length; index += 1) {
    for (const seen of marks.get(index) ?? []) turn.log.markPause(seen)
    const chunk = chunks[index]
    if (chunk) turn.log.append(chunk)
  }
}

/** Returns the outcome of a run that continued after a question. It may have ended without a further event. */
function afterQuestion(outcome: RunOutcome, before: RunOutcome): RunOutcome {
  const { unstored, lastStored = before.lastStored } = outcome
  const isSilent = unstored.invocationId === ''
  return {
    ...outcome,
    lastStored,
    unstored: isSilent ? { ...before.unstored, parts: [] } : unstored,
  }
}

/** Returns the state after the end of a stream: with the last step closed. */
function closeSteps(state: Translation): Translation {
  const writer = new ChunkWriter(state)
  writer.closeStep()
  return writer.state
}

/**
 * Runs a turn inside an OpenTelemetry span. The span records the chat and how the turn ended, never its content (OB2). Without a
 * registered provider it records nothing.
 */
async function traceTurn(turn: TurnInfo, run: () => Promise<RunOutcome>): Promise<RunOutcome> {
  const span = trace.getTracer('adk-stream-protocol').startSpan('turn', {
    attributes: {
      'gen_ai.conversation.id': turn.chatId,
      'adk_stream_protocol.message_id': turn.messageId,
    },
  })
  try {
    const outcome = await context.with(trace.setSpan(context.active(), span), run)
    span.setAttribute('adk_stream_protocol.end', outcome.end)
    if (outcome.end === 'failed') span.setStatus({ code: SpanStatusCode.ERROR })
    return outcome
  } finally {
    span.end()
  }
}
