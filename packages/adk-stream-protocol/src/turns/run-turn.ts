import type { Event } from '@google/adk'

import { finishTranslation } from '../agent/translate/finish-translation.ts'
import type { TranslationOptions } from '../agent/translate/translate-event.ts'
import { translateEvent } from '../agent/translate/translate-event.ts'
import { holdsOnlySound } from '../agent/translate/translate-parts.ts'
import type { Translation } from '../agent/translate/translation.ts'
import { beginTranslation, isWaiting } from '../agent/translate/translation.ts'
import type { PartialAnswer } from '../agent/history/repair-session.ts'
import type { Chunk, TextKind } from '../protocol/chunk.ts'
import { isSound } from '../protocol/chunk.ts'
import { toProtocolError } from '../protocol/errors.ts'
import type { Turn } from './turn.ts'

export interface RunTurnOptions extends TranslationOptions {
  /** Where a turn goes on that was told before. Default: it begins. */
  readonly from?: Translation
  /** Whether sound is only for those who listen now. Default false: it is told like everything else. */
  readonly passSound?: boolean
  /** Whether what runs is left to run when the events end. Default false: it has no result. */
  readonly leavesCalls?: () => boolean
  /** Sees every chunk as it is told. */
  readonly onChunk: ((chunk: Chunk) => void) | undefined
  readonly onError: (error: unknown) => void
}

/** How a run ended, and what of it ADK has not stored. */
export interface RunOutcome {
  readonly end: 'completed' | 'stopped' | 'failed'
  /** What was streamed after the last event that ADK stored. */
  readonly unstored: PartialAnswer
  /** Whether it stands still until somebody outside answers. */
  readonly paused: boolean
  /** Calls that wait for a result from outside: call → tool. */
  readonly waiting: ReadonlyMap<string, string>
}

/** How long a stopped run may take to come to its end before the turn ends without it: a tool need not heed the signal. */
const ABANDON_AFTER_MS = 1_000

/** Drives a run of the agent and tells its events to the turn. Never throws: what goes wrong is told, and reported. */
export async function runTurn(
  turn: Turn,
  events: AsyncIterable<Event>,
  options: RunTurnOptions,
): Promise<RunOutcome> {
  const telling = new TurnWriter(turn, options)
  if (!options.from) telling.append({ type: 'start', messageId: turn.messageId })
  const abandonment = waitForAbandonment(turn.signal)
  try {
    await Promise.race([telling.follow(events), abandonment.promise])
  } catch (thrown) {
    if (!turn.signal.aborted) telling.fail(thrown)
  } finally {
    abandonment.cancel()
  }
  return telling.finish()
}

class TurnWriter {
  readonly #turn: Turn
  readonly #options: RunTurnOptions
  #state: Translation
  #unstored: { readonly kind: TextKind; readonly id: string }[] = []
  #author = ''
  #invocationId = ''
  #over = false

  constructor(turn: Turn, options: RunTurnOptions) {
    this.#turn = turn
    this.#options = options
    this.#state = options.from ?? beginTranslation()
  }

  async follow(events: AsyncIterable<Event>): Promise<void> {
    const { signal, log } = this.#turn
    for await (const event of events) {
      // The world may have changed while the run was thinking: the turn was stopped, or ended without it.
      if (this.#over || signal.aborted) return
      this.#tell(event)
      // ADK goes on after some errors, and repeats them; the client has stopped reading.
      if (this.#state.error) return
      if (log.congested) await log.room()
    }
  }

  append(chunk: Chunk): void {
    if (this.#options.passSound === true && isSound(chunk)) this.#turn.log.pass(chunk)
    else this.#turn.log.append(chunk)
    // A client may lose its connection and answer over another one, while this turn runs on.
    if (chunk.type === 'tool-input-available') this.#turn.log.markPause(chunk.toolCallId)
    if (chunk.type === 'tool-approval-request') this.#turn.log.markPause(chunk.approvalId)
    this.#options.onChunk?.(chunk)
  }

  fail(thrown: unknown): void {
    this.#options.onError(thrown)
    this.#state = { ...this.#state, error: toProtocolError(thrown).toJSON().error }
  }

  finish(): RunOutcome {
    this.#over = true
    const stopped = this.#turn.signal.aborted
    const unstored = {
      parts: this.#unstored.map(({ kind, id }) => ({
        text: this.#turn.log.textOf(kind, id),
        thought: kind === 'reasoning',
      })),
      author: this.#author,
      invocationId: this.#invocationId,
      messageId: this.#turn.messageId,
    }
    const end = stopped ? 'stopped' : 'completed'
    const left = !stopped && this.#options.leavesCalls?.() === true
    for (const chunk of finishTranslation(this.#state, left ? 'left' : end)) this.append(chunk)
    this.#turn.log.end()
    const waiting = [...this.#state.calls].filter(([, call]) => call.state === 'waiting')
    return {
      end: this.#state.error ? 'failed' : end,
      unstored,
      paused: isWaiting(this.#state),
      waiting: new Map(waiting.map(([toolCallId, { toolName }]) => [toolCallId, toolName])),
    }
  }

  #tell(event: Event): void {
    const [state, chunks] = translateEvent(this.#state, event, this.#options)
    this.#state = state
    this.#author = event.author ?? this.#author
    this.#invocationId = event.invocationId
    // The whole event repeats what was streamed. An error has no content: what was streamed before it is stored nowhere.
    if (!event.partial && event.content && !holdsOnlySound(event)) this.#unstored = []
    for (const chunk of chunks) {
      if (event.partial) this.#noteUnstored(chunk)
      this.append(chunk)
    }
  }

  #noteUnstored(chunk: Chunk): void {
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
  const giveTime = (): void => {
    timer = setTimeout(() => abandon?.(), ABANDON_AFTER_MS)
  }
  if (signal.aborted) giveTime()
  else signal.addEventListener('abort', giveTime, { once: true })
  // Not by a signal of its own: to abort one costs 50 µs, and every turn ends here.
  const cancel = (): void => {
    signal.removeEventListener('abort', giveTime)
    clearTimeout(timer)
  }
  return { promise, cancel }
}
