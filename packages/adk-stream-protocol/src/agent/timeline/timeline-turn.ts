import type { Event } from '@google/adk'
import { getFunctionCalls, getFunctionResponses } from '@google/adk'

import type { Usage } from '../../protocol/message.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import type {
  ApprovalEntry,
  AnyToolEntry,
  ModelEntry,
  TimelineEntry,
  TimelineCall,
} from '../../protocol/timeline.ts'
import { CLIENT_ENTRY } from '../../protocol/timeline.ts'
import type { EventNotes, ModelTimes } from '../events/event-notes.ts'
import { findInner, readNotes } from '../events/event-notes.ts'
import { readCallName } from '../events/input-names.ts'
import { isModelOutput } from '../tool-call.ts'
import type { StoredTurn } from '../history/stored-turns.ts'
import { replayTurn } from '../history/replay-turn.ts'
import { countUsage, NO_USAGE, totalUsage } from '../translate/count-usage.ts'
import { describeModelError, isReplyEnd } from '../translate/model-outcome.ts'
import type { Translation } from '../translate/translation.ts'
import { isWaiting } from '../translate/translation.ts'
import { shortenArgs, shortenText } from './timeline-text.ts'

export interface TurnFacts {
  /** The approvals of the turn. */
  readonly approvals: readonly ApprovalEntry[]
  /** Whether the turn runs now, on any server. */
  readonly running: boolean
  /** Whether a call runs in the client. */
  readonly isClientCall: (call: Pick<TimelineCall, 'toolCallId' | 'toolName'>) => boolean
  /** Whether the reader may see the text of messages. */
  readonly showText: boolean
}

/** The entries of one turn, and the state at its end. */
interface TurnTimeline {
  readonly entries: TimelineEntry[]
  readonly state: Translation
}

/** Returns what happened in a stored turn, in the order of the start. */
export function readTurnTimeline(turn: StoredTurn, facts: TurnFacts): TurnTimeline {
  const { state, chunks } = replayTurn(turn)
  const reader = new TimelineReader(turn, facts)
  for (const event of turn.events) if (event !== turn.firstEvent) reader.read(event)
  const failed = new Set<string>()
  for (const chunk of chunks) if (chunk.type === 'tool-output-error') failed.add(chunk.toolCallId)
  return { entries: reader.finish(state, failed), state }
}

/** Collects the entries of one turn, event by event. */
class TimelineReader {
  readonly #turn: StoredTurn
  readonly #facts: TurnFacts
  readonly #entries: TimelineEntry[] = []
  readonly #models: ModelEntry[] = []
  readonly #tools = new Map<string, AnyToolEntry>()
  readonly #ended = new Map<string, number>()
  readonly #handedOver = new Map<string, number>()
  /** Whether the next output of the model without times belongs to the last model call. */
  #modelIsOpen = false
  /** The end of what has been read. */
  #cursor: number

  constructor(turn: StoredTurn, facts: TurnFacts) {
    this.#turn = turn
    this.#facts = facts
    this.#cursor = turn.firstEvent.timestamp
  }

  read(event: Event): void {
    const notes = readNotes(event)
    // The model calls and tools of an agent that is used as a tool.
    const inner = findInner(event)
    if (inner) this.read(inner)
    if (isModelOutput(event)) this.#readModel(event)
    for (const { id, name } of getFunctionResponses(event)) {
      if (id === undefined || name === CONFIRMATION_TOOL) continue
      this.#modelIsOpen = false
      if (!notes.pending?.includes(id)) this.#ended.set(id, event.timestamp)
    }
    this.#readMoments(event, notes)
    this.#readError(event)
    this.#cursor = Math.max(this.#cursor, event.timestamp)
  }

  /** Adds what has no duration: calls and replies that are handed over, and interruptions. */
  #readMoments(event: Event, { handedOver = [] }: EventNotes): void {
    const { id, timestamp: at, interrupted, actions } = event
    const moment = { messageId: this.#turn.messageId, at }
    const handOver = (key: string) =>
      ({ type: 'hand-over', id: `hand-over:${key}`, ...moment }) as const
    for (const toolCallId of handedOver) {
      this.#handedOver.set(toolCallId, at)
      this.#entries.push({ ...handOver(toolCallId), to: CLIENT_ENTRY.to, toolCallId })
    }
    const name = actions.transferToAgent
    if (name) this.#entries.push({ ...handOver(id), to: 'agent', name })
    if (interrupted)
      this.#entries.push({ type: 'interruption', id: `interruption:${id}`, ...moment })
  }

  #readModel(event: Event): void {
    const endedAt = this.#updateModel(event)
    this.#modelIsOpen = true
    for (const { id, name = '', args = {} } of getFunctionCalls(event))
      if (id !== undefined) this.#addTool(id, readCallName(name), { at: endedAt, args })
    this.#cursor = Math.max(this.#cursor, endedAt)
  }

  /** Adds an event to the entry of its model call, or a new entry. Returns the end of the call. */
  #updateModel(event: Event): number {
    const { model: times } = readNotes(event)
    const { messageId } = this.#turn
    const known = this.#findModel(event, times)
    const at = times?.startedAt ?? this.#cursor
    const entry: ModelEntry = known ?? { type: 'model', id: `model:${event.id}`, messageId, at }
    const hasContent = (event.content?.parts ?? []).length > 0
    const eventEnd = times?.endedAt ?? Math.max(event.timestamp, at)
    // ADK runs the tools of a call before it reads the usage report that ends the stream.
    const endedAt = hasContent ? eventEnd : (entry.endedAt ?? eventEnd)
    const updated: ModelEntry = { ...entry, endedAt, ...describeModel(event, times) }
    if (known) this.#models.splice(this.#models.indexOf(known), 1, updated)
    else this.#models.push(updated)
    return endedAt
  }

  /** The model calls of an agent that is used as a tool come before the usage report of its caller. */
  #findModel({ author }: Event, times: ModelTimes | undefined): ModelEntry | undefined {
    if (!times) return this.#modelIsOpen ? this.#models.at(-1) : undefined
    return this.#models.findLast(({ at, agent }) => at === times.startedAt && agent === author)
  }

  #addTool(
    toolCallId: string,
    toolName: string,
    { at, args }: { at: number; args: Record<string, unknown> },
  ): void {
    this.#tools.set(toolCallId, {
      type: this.#facts.isClientCall({ toolCallId, toolName }) ? CLIENT_ENTRY.tool : 'tool',
      id: `tool:${toolCallId}`,
      messageId: this.#turn.messageId,
      at,
      toolCallId,
      toolName,
      args: shortenArgs(args),
      state: 'running',
    })
  }

  #readError(event: Event): void {
    const { id, timestamp, errorCode, errorMessage } = event
    if (!errorCode || isReplyEnd(event)) return
    const { code, message } = describeModelError(errorCode, errorMessage)
    const { messageId } = this.#turn
    this.#entries.push({
      type: 'error',
      id: `error:${id}`,
      messageId,
      at: timestamp,
      code,
      message,
    })
  }

  /** Returns the entries, with what is still open. */
  finish(state: Translation, failed: ReadonlySet<string>): TimelineEntry[] {
    const { messageId } = this.#turn
    const { running, showText, approvals } = this.#facts
    const tools = [...this.#tools.values()].flatMap((tool) => this.#finishTool(tool, failed))
    const isToolOpen = tools.some(({ endedAt }) => endedAt === undefined)
    // The event of a model call is stored when the call has ended.
    if (running && !isToolOpen && !isWaiting(state))
      this.#models.push({
        type: 'model',
        id: `model:${messageId}:now`,
        messageId,
        at: this.#cursor,
      })
    const inner = [...this.#entries, ...this.#models, ...tools, ...approvals]
    const ends = inner.map((entry) => entry.endedAt ?? entry.at)
    const endedAt = Math.max(this.#cursor, ...ends)
    const entries: TimelineEntry[] = [
      toMessageEntry(this.#turn, showText),
      toTurnEntry(this.#turn, state, { running, endedAt }),
      ...inner,
    ]
    return entries.toSorted((one, other) => one.at - other.at)
  }

  #finishTool(tool: AnyToolEntry, failed: ReadonlySet<string>): AnyToolEntry[] {
    const { toolCallId } = tool
    const approval = this.#facts.approvals.findLast((each) => each.toolCallId === toolCallId)
    const handedOver = this.#handedOver.get(toolCallId)
    if (approval && handedOver === undefined) {
      // The ledger knows when an approved call started. A call that did not start has no bar.
      const { startedAt, finishedAt, state } = approval
      if (startedAt === undefined) return []
      const end = finishedAt === undefined ? {} : { endedAt: finishedAt }
      return [{ ...tool, at: startedAt, ...end, state: toToolState(state) }]
    }
    const endedAt = this.#ended.get(toolCallId)
    const at = handedOver ?? tool.at
    if (endedAt === undefined) return [{ ...tool, at, state: 'running' }]
    const state = failed.has(toolCallId) ? 'failed' : 'succeeded'
    return [{ ...tool, at, endedAt: Math.max(at, endedAt), state }]
  }
}

function toMessageEntry(
  { messageId, userMessage, firstEvent }: StoredTurn,
  showText: boolean,
): TimelineEntry {
  const texts = userMessage.parts.flatMap((part) => (part.type === 'text' ? part.text : []))
  return {
    type: 'message',
    id: `message:${userMessage.id}`,
    messageId,
    at: firstEvent.timestamp,
    ...(showText && { text: shortenText(texts.join(' ')) }),
  }
}

function toTurnEntry(
  { messageId, firstEvent }: StoredTurn,
  state: Translation,
  { running, endedAt }: { readonly running: boolean; readonly endedAt: number },
): TimelineEntry {
  const name = readState(state, running)
  const usage = totalUsage(state.usage)
  return {
    type: 'turn',
    id: `turn:${messageId}`,
    messageId,
    at: firstEvent.timestamp,
    ...(name !== 'running' && name !== 'waiting' && { endedAt }),
    state: name,
    ...(usage && { usage }),
  }
}

function describeModel(
  { author, modelVersion, usageMetadata }: Event,
  times: ModelTimes | undefined,
): Partial<ModelEntry> {
  const usage = usageMetadata && readUsage(usageMetadata)
  return {
    ...(author !== undefined && { agent: author }),
    ...(modelVersion !== undefined && { model: modelVersion }),
    ...(times?.firstAt !== undefined && { firstAt: times.firstAt }),
    ...(usage && { usage }),
  }
}

function toToolState(state: string): AnyToolEntry['state'] {
  if (state === 'succeeded' || state === 'failed' || state === 'unknown') return state
  return 'running'
}

function readState(
  state: Translation,
  running: boolean,
): Extract<TimelineEntry, { type: 'turn' }>['state'] {
  if (running) return 'running'
  if (isWaiting(state)) return 'waiting'
  if (state.error) return 'failed'
  return state.stop === 'stopped' ? 'stopped' : 'completed'
}

function readUsage(report: NonNullable<Event['usageMetadata']>): Usage | undefined {
  return totalUsage(countUsage(NO_USAGE, report))
}
