import type { Event } from '@google/adk'
import { context, SpanStatusCode, trace } from '@opentelemetry/api'

import { positionOf } from '../../../agent/history/position.ts'
import type { ReplayedTurn } from '../../../agent/history/replay-turn.ts'
import {
  closeAtPause,
  findPositionAfter,
  markPauses,
  replayTurn,
  toReplay,
} from '../../../agent/history/replay-turn.ts'
import { findTurn } from '../../../agent/history/stored-turns.ts'
import { ChunkWriter } from '../../../agent/translate/chunk-writer.ts'
import type { TranslationOptions } from '../../../agent/translate/translate-event.ts'
import type { Translation } from '../../../agent/translate/translation.ts'
import type { Ledger } from '../../../approvals/ledger.ts'
import type { Chunk } from '../../../protocol/chunk.ts'
import type { AppChatRef, ChatRef } from '../../../shared/chat-ref.ts'
import { RunEvents, runTurn } from '../../../turns/run-turn.ts'
import type { RunOutcome, RunTurnOptions } from '../../../turns/run-turn.ts'
import type { IdentifiedMessage, Turn } from '../../../turns/turn.ts'
import { isClosing } from '../../../turns/turn.ts'
import type { TurnRegistry } from '../../../turns/turn-registry.ts'
import type { TurnInfo } from '../../settings/observers.ts'
import type { Backend } from '../backend.ts'
import { toAppChat } from '../backend.ts'

/** A turn that has started, with its id. */
interface StartedTurn extends TurnInfo {
  readonly turn: string
}

export interface TurnRunsOptions extends TranslationOptions {
  readonly onChunk: ((chunk: Chunk, turn: TurnInfo) => void) | undefined
  readonly onError: (error: unknown) => void
  /** Called when a turn starts, and when it resumes with new work. */
  readonly onTurn: (started: StartedTurn) => void
  /** Called when results of approved calls were stored after their turn was stopped. The turn may have ended. */
  readonly onLateResults: (turn: TurnInfo) => void
  /** Called when the run of a turn has ended. `isSpoken` says that it was a message of a live session. */
  readonly onTurnEnd: (turn: TurnInfo, outcome: RunOutcome, isSpoken: boolean) => void
}

/** The events of a run, and how they are streamed. */
export interface RunInTurn extends Pick<
  RunTurnOptions,
  'from' | 'lastError' | 'isOpenRun' | 'leavesCalls'
> {
  readonly chat: ChatRef
  readonly events: AsyncIterable<Event>
  /** Whether responses resume a turn that was stored before, so that another server may continue it (AP661). Default: a message starts it. */
  readonly isResumed?: boolean
  /** The outcome up to the question of a running call after which the turn continues. */
  readonly before?: RunOutcome
  /** Stores the message of the person before the session is repaired, if the run has not stored it. */
  readonly storePrompt?: () => Promise<void>
}

/** What a run is streamed with. */
export interface RunParts {
  readonly backend: Backend
  readonly turns: Pick<TurnRegistry, 'continue'>
  readonly options: TurnRunsOptions
}

/**
 * Streams a run of the agent into a turn, to its end, and repairs the session after it. A run whose calls ask while they run is streamed
 * in several turns. Resolves with how the run ended, or with undefined if the session could not be repaired.
 */
export async function streamRun(
  parts: RunParts,
  turn: Turn,
  { chat, events, ...how }: RunInTurn,
): Promise<RunOutcome['end'] | undefined> {
  const { backend, turns, options } = parts
  if (backend.kinds.askedDuringCalls.length === 0 || how.isOpenRun === true)
    return (await streamOnce(parts, turn, { chat, events, ...how }))?.end
  const run = new RunEvents(events)
  const leavesCalls = (): boolean => run.question !== undefined
  const { isResumed = false } = how
  let next: typeof how = { ...how, leavesCalls }
  for (let current = turn; ;) {
    const read = run.read(({ approvalId }) => {
      current.asking = approvalId
    })
    const before = await streamOnce(parts, current, { chat, events: read, ...next })
    turn.failure ??= current.failure
    if (!run.question) return before?.end
    if (before?.end !== 'completed') {
      // Stopped at the moment of the question. The run ends by itself.
      run.close().catch(options.onError)
      return before?.end
    }
    next = { from: closeSteps(before.state), before, leavesCalls, isResumed }
    await run.untilAnswered(turn.signal)
    current = turns.continue(chat, current)
    options.onTurn({ ...chat, messageId: turn.messageId, turn: current.id })
  }
}

/** Streams a run until it ends, or until a running call asks a question. Returns undefined if the session could not be repaired. */
async function streamOnce(
  { backend, options }: RunParts,
  turn: Turn,
  { chat, events, before, storePrompt, isResumed = false, ...how }: RunInTurn,
): Promise<RunOutcome | undefined> {
  const { onChunk, onError, onTurnEnd, exposeState } = options
  const { principalId, chatId } = chat
  // Without a spread, which would give each turn a hidden class of its own.
  const info = { principalId, chatId, messageId: turn.messageId }
  try {
    return await traceTurn(info, async () => {
      const outcome = await runTurn(turn, events, {
        exposeState,
        onError,
        onChunk: onChunk && ((chunk) => onChunk(chunk, info)),
        readPosition: () => readPosition(backend, chat, turn),
        ...how,
      })
      if (outcome.end === 'failed') turn.failure = outcome.stats.errorCode ?? 'internal'
      onTurnEnd(info, outcome, how.isOpenRun === true)
      if (turn.asking !== undefined && outcome.end === 'completed') return outcome
      const whole = before ? afterQuestion(outcome, before) : outcome
      const isLeft = isResumed && isClosing(turn.signal)
      if (whole.end !== 'completed') await storePrompt?.()
      const ended = { chat: toAppChat(backend, chat), outcome: whole, isLeft }
      await backend.host.endings.settle(ended)
      if (!how.isOpenRun) await backend.waitingCalls.onWaiting(backend, info, outcome.waiting)
      return outcome
    })
  } catch (error) {
    // The turn was streamed; only the session could not be repaired. A sweep or the next turn tries again.
    onError(error)
    return undefined
  }
}

/** Reads the position of a chat at the end of a turn. Undefined if the reader of the turn does not have everything up to it. */
async function readPosition(
  backend: Backend,
  chat: ChatRef,
  { startPosition: before, messageId }: Turn,
): Promise<string | undefined> {
  if (before === undefined) return undefined
  // Without a position, the client reads the messages.
  const session = await backend.sessions.get(toAppChat(backend, chat)).catch(() => undefined)
  return session && findPositionAfter(session.events, { before, messageId })
}

/** The stored part of a turn, with the position of its chat. */
interface StoredPart extends ReplayedTurn {
  readonly position: string
  /** The message of the person. */
  readonly repliesTo: IdentifiedMessage
}

/** Replays the stored part of a turn, up to its pause. Returns undefined if the turn does not exist. */
export async function replayStored(
  { sessions }: Pick<Backend, 'sessions'>,
  chat: AppChatRef,
  { messageId, options }: { readonly messageId: string; readonly options: TranslationOptions },
): Promise<StoredPart | undefined> {
  const { events = [] } = (await sessions.get(chat)) ?? {}
  const stored = findTurn(events, messageId)
  if (!stored) return undefined
  const repliesTo = { id: stored.userMessage.id, content: stored.firstEvent.content }
  const part = closeAtPause(replayTurn(stored, options))
  return { ...part, position: positionOf(events), repliesTo }
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
