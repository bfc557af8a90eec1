import type { Event } from '@google/adk'

import type { Usage } from '../../protocol/message.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import type { TimelineEntry } from '../../protocol/timeline.ts'
import { readNotes } from '../history/event-notes.ts'
import { readCallName } from '../history/input-calls.ts'
import { isModelOutput } from '../tool-call.ts'
import type { StoredTurn } from '../history/replay-turn.ts'
import { replayTurn } from '../history/replay-turn.ts'
import { countUsage, NO_USAGE, totalUsage } from '../translate/count-usage.ts'
import { describeModelError, isFinishReason } from '../translate/model-outcome.ts'
import type { Translation } from '../translate/translation.ts'
import { isWaiting } from '../translate/translation.ts'
import { shortenArgs, shortenText } from './timeline-text.ts'
import type { ApprovalEntry } from './build-timeline.ts'

type ModelEntry = Extract<TimelineEntry, { type: 'model' }>
type ToolEntry = Extract<TimelineEntry, { type: 'tool' | 'browser-tool' }>

export interface TurnFacts {
  /** The approvals of the turn. */
  readonly approvals: readonly ApprovalEntry[]
  /** Whether the turn runs now, on any server. */
  readonly running: boolean
  /** Calls that wait for a browser. */
  readonly browserCalls: ReadonlySet<string>
  /** Whether a tool runs in the browser. */
  readonly isBrowserTool: (toolName: string) => boolean
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
  const { state, chunks } = replayTurn(turn, { exposeState: () => false })
  const reader = new TurnReader(turn, facts)
  for (const event of turn.events) if (event !== turn.firstEvent) reader.read(event)
  const failed = new Set<string>()
  for (const chunk of chunks) if (chunk.type === 'tool-output-error') failed.add(chunk.toolCallId)
  return { entries: reader.finish(state, failed), state }
}

class TurnReader {
  readonly #turn: StoredTurn
  readonly #facts: TurnFacts
  readonly #entries: TimelineEntry[] = []
  readonly #models: ModelEntry[] = []
  readonly #tools = new Map<string, ToolEntry>()
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
    const { messageId } = this.#turn
    const notes = readNotes(event)
    // The model calls and tools of an agent that is used as a tool.
    if (notes.nested) this.read(notes.nested.event)
    if (isModelOutput(event)) this.#readModel(event)
    for (const { functionResponse } of event.content?.parts ?? []) {
      const id = functionResponse?.id
      if (id === undefined || functionResponse?.name === CONFIRMATION_TOOL) continue
      this.#modelIsOpen = false
      if (!notes.pending?.includes(id)) this.#ended.set(id, event.timestamp)
    }
    const moment = { messageId, at: event.timestamp }
    for (const toolCallId of notes.handedOver ?? []) {
      this.#handedOver.set(toolCallId, event.timestamp)
      const id = `hand-over:${toolCallId}`
      this.#entries.push({ type: 'hand-over', id, ...moment, to: 'browser', toolCallId })
    }
    const name = event.actions.transferToAgent
    if (name)
      this.#entries.push({
        type: 'hand-over',
        id: `hand-over:${event.id}`,
        ...moment,
        to: 'agent',
        name,
      })
    if (event.interrupted)
      this.#entries.push({ type: 'interruption', id: `interruption:${event.id}`, ...moment })
    this.#readError(event)
    this.#cursor = Math.max(this.#cursor, event.timestamp)
  }

  #readModel(event: Event): void {
    const { model: times } = readNotes(event)
    // The model calls of an agent that is used as a tool come before the usage report of its caller.
    const known = times
      ? this.#models.findLast(({ at, agent }) => at === times.startedAt && agent === event.author)
      : this.#modelIsOpen && this.#models.at(-1)
    const at = times?.startedAt ?? this.#cursor
    const entry: ModelEntry = known || {
      type: 'model',
      id: `model:${event.id}`,
      messageId: this.#turn.messageId,
      at,
    }
    const usage = event.usageMetadata && readUsage(event.usageMetadata)
    const hasContent = (event.content?.parts ?? []).length > 0
    // ADK runs the tools of a call before it reads the usage report that ends the stream.
    const isReport = !hasContent && entry.endedAt !== undefined
    const endedAt = isReport
      ? (entry.endedAt ?? at)
      : (times?.endedAt ?? Math.max(event.timestamp, at))
    const updated: ModelEntry = {
      ...entry,
      endedAt,
      ...(event.author !== undefined && { agent: event.author }),
      ...(event.modelVersion !== undefined && { model: event.modelVersion }),
      ...(times?.firstAt !== undefined && { firstAt: times.firstAt }),
      ...(usage && { usage }),
    }
    if (known) this.#models.splice(this.#models.indexOf(known), 1, updated)
    else this.#models.push(updated)
    this.#modelIsOpen = true
    for (const { functionCall } of event.content?.parts ?? []) {
      if (functionCall?.id === undefined) continue
      this.#addTool(functionCall.id, readCallName(functionCall.name ?? ''), {
        at: endedAt,
        args: functionCall.args ?? {},
      })
    }
    this.#cursor = Math.max(this.#cursor, endedAt)
  }

  #addTool(
    toolCallId: string,
    toolName: string,
    { at, args }: { at: number; args: Record<string, unknown> },
  ): void {
    const { isBrowserTool, browserCalls } = this.#facts
    const isBrowser = isBrowserTool(toolName) || browserCalls.has(toolCallId)
    this.#tools.set(toolCallId, {
      type: isBrowser ? 'browser-tool' : 'tool',
      id: `tool:${toolCallId}`,
      messageId: this.#turn.messageId,
      at,
      toolCallId,
      toolName,
      args: shortenArgs(args),
      state: 'running',
    })
  }

  #readError({ id, timestamp, errorCode, errorMessage }: Event): void {
    // ADK reports every finish reason except STOP as an error.
    if (!errorCode || isFinishReason(errorCode)) return
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
    const { messageId, userMessage, firstEvent } = this.#turn
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
    const { timestamp: at } = firstEvent
    const ends = inner.map((entry) => entry.endedAt ?? entry.at)
    const name = readState(this.#turn, state, running)
    const usage = totalUsage(state.usage)
    const text = userMessage.parts
      .flatMap((part) => (part.type === 'text' ? part.text : []))
      .join(' ')
    const entries: TimelineEntry[] = [
      {
        type: 'message',
        id: `message:${userMessage.id}`,
        messageId,
        at,
        ...(showText && { text: shortenText(text) }),
      },
      {
        type: 'turn',
        id: `turn:${messageId}`,
        messageId,
        at,
        ...(name !== 'running' &&
          name !== 'waiting' && { endedAt: Math.max(this.#cursor, ...ends) }),
        state: name,
        ...(usage && { usage }),
      },
      ...inner,
    ]
    return entries.toSorted((one, other) => one.at - other.at)
  }

  #finishTool(tool: ToolEntry, failed: ReadonlySet<string>): ToolEntry[] {
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

function toToolState(state: string): ToolEntry['state'] {
  if (state === 'succeeded' || state === 'failed' || state === 'unknown') return state
  return 'running'
}

function readState(
  { events }: StoredTurn,
  state: Translation,
  running: boolean,
): Extract<TimelineEntry, { type: 'turn' }>['state'] {
  if (running) return 'running'
  if (isWaiting(state)) return 'waiting'
  if (state.error) return 'failed'
  return events.some((event) => event.interrupted) ? 'stopped' : 'completed'
}

function readUsage(report: NonNullable<Event['usageMetadata']>): Usage | undefined {
  return totalUsage(countUsage(NO_USAGE, report))
}
