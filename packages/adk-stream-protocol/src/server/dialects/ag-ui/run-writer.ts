import type { Chunk, DataChunk, TextKind } from '../../../protocol/chunk.ts'
import { readOffer } from '../../../protocol/call-offers.ts'
import type { DataParts, MessageMetadata, TurnError, Usage } from '../../../protocol/message.ts'
import type { CardLabels } from './cards.ts'
import { toCards, toEndedCard } from './cards.ts'
import type { Interrupt, OpenInterrupt, RunEvent, RunOutcome, TokenUsage } from './events.ts'

/** The run that a request asks for. */
interface RunIds {
  readonly threadId: string
  readonly runId: string
  /** Whether the client declares a version, so that it knows what 1.0 has added (AG1381). */
  readonly isVersioned: boolean
}

interface RunWriterOptions {
  /** Whether the page runs a tool. */
  readonly isPageTool: (toolName: string) => boolean
  /** Set if the page asks with cards instead of interrupts (AG1540). */
  readonly cards: CardLabels | undefined
  /** The calls that the client has. */
  readonly clientCalls: ReadonlySet<string>
  /** Whether the client has a state, to which patches apply. */
  readonly hasState: boolean
}

/** A call of a message. */
interface WrittenCall {
  readonly toolName: string
  readonly input: unknown
  readonly parent: string
  /** Whether the page may run it: it needs no approval, or is approved. */
  isOffered: boolean
  isShown: boolean
  hasResult: boolean
  /** Whether the next result is not final. */
  isPreliminary: boolean
  /** Set if a person has denied it. */
  denial?: { readonly reason?: string }
}

/** What is asked, or has failed, at the end of a run. */
interface RunEnd extends RunIds {
  /** What this person can answer now. */
  readonly interrupts: readonly OpenInterrupt[]
  /** Whether the run has answered interrupts of an earlier one. */
  readonly answers: boolean
}

/**
 * Writes the chunks of messages as AG-UI events. The events depend only on the chunks, so the stored chunks give the same messages as the
 * stream. What was written before is not written again: a call, a result or a text with a known id.
 */
export class RunWriter {
  readonly #options: RunWriterOptions
  readonly #calls = new Map<string, WrittenCall>()
  readonly #texts = new Set<string>()
  /** How many parts without an id a message has, by message and type. */
  readonly #counts = new Map<string, number>()
  /** The agent that writes each message. A message continues in another stream after a pause. */
  readonly #authors = new Map<string, string>()
  readonly #usages = new Map<string, Usage>()
  #messageId = ''
  /** The message that holds the calls of the step. */
  #parent: string | undefined
  #open: { readonly kind: TextKind; readonly id: string; readonly head: string } | undefined
  #hasState: boolean
  #metadata: MessageMetadata = {}
  #error: TurnError | undefined
  #finishReason: string | undefined
  #isStopped = false
  #isStored = true
  #hasOutdatedResult = false

  constructor(options: RunWriterOptions) {
    this.#options = options
    this.#hasState = options.hasState
  }

  /** Forgets how the stored messages ended. What is written now belongs to a new run. */
  startRun(): void {
    this.#isStored = false
    this.#endMessage()
    this.#error = undefined
    this.#finishReason = undefined
    this.#isStopped = false
  }

  /** Whether the client has a result that another one has replaced. Only a snapshot can replace a message. */
  get hasOutdatedResult(): boolean {
    return this.#hasOutdatedResult
  }

  /** The beginning of the event for a delta of the open text. Undefined if its text is not written. */
  get deltaHead(): string | undefined {
    return this.#open?.head
  }

  /** The calls that wait for the page, and that it may run. */
  get waitingForPage(): string[] {
    return [...this.#calls].flatMap(([id, call]) =>
      call.isOffered && !call.hasResult && this.#isPageCall(call) ? id : [],
    )
  }

  write(chunk: Chunk): RunEvent[] {
    return isData(chunk) ? this.#writeData(chunk) : this.#writePart(chunk)
  }

  #writePart(chunk: Exclude<Chunk, DataChunk>): RunEvent[] {
    switch (chunk.type) {
      case 'start':
        this.#startMessage(chunk.messageId)
        return []
      case 'start-step':
        this.#parent = undefined
        return []
      case 'finish-step':
        return this.#close()
      case 'text-start':
      case 'reasoning-start':
        return this.#openText(chunk.type === 'text-start' ? 'text' : 'reasoning', chunk.id)
      case 'text-delta':
      case 'reasoning-delta': {
        const messageId = this.#open?.id
        const type = chunk.type === 'text-delta' ? TEXT_CONTENT : REASONING_CONTENT
        return messageId === undefined ? [] : [{ type, messageId, delta: chunk.delta }]
      }
      case 'text-end':
      case 'reasoning-end':
        return this.#close()
      case 'tool-input-available':
        return this.#writeCall(chunk)
      case 'tool-output-available':
        return this.#writeResult(chunk.toolCallId, chunk.output)
      case 'tool-output-error':
        return this.#writeResult(chunk.toolCallId, { error: chunk.errorText })
      case 'tool-output-denied':
        return this.#writeResult(chunk.toolCallId, { status: 'denied' })
      case 'file':
      case 'source-url':
      case 'source-document': {
        const { type, ...content } = chunk
        return this.#writeActivity(type, this.#countPart(type), content)
      }
      case 'message-metadata':
        this.#note(chunk.messageMetadata)
        return []
      case 'finish':
        this.#note(chunk.messageMetadata)
        this.#finishReason = chunk.finishReason
        return []
      case 'abort':
        this.#isStopped = true
        return []
      case 'error':
        this.#error ??= { code: 'internal', message: chunk.errorText }
        return []
      case 'tool-input-start':
      case 'tool-approval-request':
        return []
    }
  }

  /** Writes the end of the run: the calls for the page, unless something is asked (AG1386), and the outcome. */
  endRun({ threadId, runId, isVersioned, interrupts, answers }: RunEnd): RunEvent[] {
    const events = this.#close()
    const waiting = interrupts.length === 0 ? this.waitingForPage : []
    for (const toolCallId of waiting) events.push(...this.#show(toolCallId))
    const { cards } = this.#options
    if (cards) events.push(...toCards(interrupts, cards))
    const usage = this.#usageOfRun()
    const reason = this.#finishReason
    const isUsual = reason === undefined || reason === 'stop' || reason === 'tool-calls'
    const outcome = this.#outcome(
      cards ? [] : interrupts.map((each) => each.interrupt),
      waiting,
      isVersioned,
    )
    const finished: RunEvent = {
      type: 'RUN_FINISHED',
      threadId,
      runId,
      ...(outcome && { outcome }),
      ...(usage && { usage: [usage] }),
      ...(!isUsual && { metadata: { adk: { finishReason: reason } } }),
    }
    if (!this.#error) return [...events, finished]
    const { message, code } = this.#error
    const error: RunEvent = { type: 'RUN_ERROR', message, code }
    // AG1387: only RUN_FINISHED makes a client forget what it has answered. A failure may follow it.
    return answers || interrupts.length > 0 ? [...events, finished, error] : [...events, error]
  }

  #outcome(
    interrupts: readonly Interrupt[],
    pendingToolCallIds: readonly string[],
    isVersioned: boolean,
  ): RunOutcome | undefined {
    if (interrupts.length > 0) return { type: 'interrupt', interrupts }
    if (!isVersioned) return undefined
    if (this.#isStopped) return { type: 'cancelled' }
    return { type: 'success', ...(pendingToolCallIds.length > 0 && { pendingToolCallIds }) }
  }

  #startMessage(messageId: string): void {
    this.#endMessage()
    this.#messageId = messageId
    this.#parent = undefined
  }

  /** Keeps the usage of the message up to now. The usage of a run is what comes on top. */
  #endMessage(): void {
    const { usage } = this.#metadata
    if (usage) this.#usages.set(this.#messageId, usage)
    this.#metadata = {}
  }

  #note(metadata: MessageMetadata): void {
    this.#metadata = { ...this.#metadata, ...metadata }
    if (metadata.error) this.#error = metadata.error
    if (metadata.stopped === true) this.#isStopped = true
  }

  #usageOfRun(): TokenUsage | undefined {
    const { usage, modelVersion } = this.#metadata
    if (!usage) return undefined
    const before = this.#usages.get(this.#messageId)
    const counts = Object.entries(usage).map(([name, count]: [string, number]) => {
      // The names of both are those of `Usage`.
      return [name, count - (before?.[name as keyof Usage] ?? 0)] as const
    })
    // Object.fromEntries forgets the names.
    const own = Object.fromEntries(counts) as unknown as Usage
    if (own.totalTokens <= 0) return undefined
    return {
      provider: 'google',
      ...(modelVersion !== undefined && { model: modelVersion }),
      ...own,
    }
  }

  #openText(kind: TextKind, partId: string): RunEvent[] {
    const id = `${this.#messageId}.${partId}`
    const events = this.#close()
    this.#parent = undefined
    if (this.#texts.has(id)) return events
    this.#texts.add(id)
    const type = kind === 'text' ? TEXT_CONTENT : REASONING_CONTENT
    const head = `{"type":"${type}","messageId":${JSON.stringify(id)},"delta":`
    this.#open = { kind, id, head }
    if (kind === 'text') {
      const name = this.#authors.get(this.#messageId)
      const author = name === undefined ? {} : { name }
      return [
        ...events,
        { type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant', ...author },
      ]
    }
    return [
      ...events,
      { type: 'REASONING_START', messageId: id },
      { type: 'REASONING_MESSAGE_START', messageId: id, role: 'reasoning' },
    ]
  }

  #close(): RunEvent[] {
    if (!this.#open) return []
    const { kind, id: messageId } = this.#open
    this.#open = undefined
    return kind === 'text'
      ? [{ type: 'TEXT_MESSAGE_END', messageId }]
      : [
          { type: 'REASONING_MESSAGE_END', messageId },
          { type: 'REASONING_END', messageId },
        ]
  }

  #writeCall(chunk: Extract<Chunk, { type: 'tool-input-available' }>): RunEvent[] {
    const { toolCallId, toolName, input } = chunk
    if (this.#calls.has(toolCallId)) return []
    this.#parent ??= `${toolCallId}.calls`
    const isPageCall = this.#options.isPageTool(toolName)
    this.#calls.set(toolCallId, {
      toolName,
      input,
      // A call that is shown later is not a part of the step's message.
      parent: isPageCall ? `${toolCallId}.call` : this.#parent,
      isOffered: false,
      isShown: false,
      hasResult: false,
      isPreliminary: false,
    })
    // AG1385: CopilotKit runs each call that it sees, also one that waits for approval.
    const isHeld = isPageCall && !this.#options.clientCalls.has(toolCallId)
    return isHeld ? [] : this.#show(toolCallId)
  }

  #show(toolCallId: string): RunEvent[] {
    const call = this.#calls.get(toolCallId)
    if (!call || call.isShown) return []
    call.isShown = true
    return [
      ...this.#close(),
      {
        type: 'TOOL_CALL_START',
        toolCallId,
        toolCallName: call.toolName,
        parentMessageId: call.parent,
      },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(call.input ?? {}) },
      { type: 'TOOL_CALL_END', toolCallId },
    ]
  }

  #writeResult(toolCallId: string, output: unknown): RunEvent[] {
    const call = this.#calls.get(toolCallId)
    if (!call) return []
    // The application has completed a call whose tool had thrown. Of stored chunks, this event replaces the one before.
    if (call.hasResult && !this.#isStored) {
      this.#hasOutdatedResult = true
      return []
    }
    // AG1388: a second result would be a second message, so a preliminary one is an activity.
    if (call.isPreliminary) {
      call.isPreliminary = false
      const content = { toolCallId, output }
      return this.#writeActivity('preliminary', `${toolCallId}.preliminary`, content)
    }
    call.hasResult = true
    const result = call.denial ? { status: 'denied', ...call.denial } : output
    const content = typeof result === 'string' ? result : JSON.stringify(result ?? null)
    const messageId = `${toolCallId}.result`
    return [
      ...this.#close(),
      ...this.#show(toolCallId),
      { type: 'TOOL_CALL_RESULT', messageId, toolCallId, content, role: 'tool' },
    ]
  }

  #writeData(chunk: DataChunk): RunEvent[] {
    const offered = readOffer(chunk)
    const call = offered === undefined ? undefined : this.#calls.get(offered)
    if (call) call.isOffered = true
    if (offered !== undefined || OMITTED.has(chunk.type)) return []
    const name = chunk.type.slice('data-'.length)
    if (chunk.type === 'data-agent') {
      this.#authors.set(this.#messageId, chunk.data.name)
      return []
    }
    if (chunk.type === 'data-state-delta') return this.#writeState(chunk.data.delta)
    if (chunk.type === 'data-approval') return this.#writeApproval(chunk.data)
    if (chunk.type === 'data-preliminary') {
      const preliminary = this.#calls.get(chunk.data.toolCallId)
      if (preliminary) preliminary.isPreliminary = true
      return []
    }
    if (chunk.transient) return [{ type: 'CUSTOM', name: `adk-${name}`, value: chunk.data }]
    const partId = chunk.id === undefined ? this.#countPart(name) : `${name}.${chunk.id}`
    return this.#writeActivity(name, partId, { ...chunk.data })
  }

  #writeApproval(data: DataParts['approval']): RunEvent[] {
    const { approvalId, toolCallId, state, reason } = data
    const call = this.#calls.get(toolCallId)
    if (call && state === 'denied') call.denial = reason === undefined ? {} : { reason }
    const events = this.#writeActivity('approval', approvalId, { ...data })
    const { cards } = this.#options
    if (cards) events.push(...toEndedCard(data, call?.toolName, cards))
    return events
  }

  /** A patch applies to the state of the client, so one without a state gets all of it. */
  #writeState(delta: Readonly<Record<string, unknown>>): RunEvent[] {
    const events = this.#close()
    if (!this.#hasState) {
      this.#hasState = true
      return [...events, { type: 'STATE_SNAPSHOT', snapshot: delta }]
    }
    const patch = Object.entries(delta).map(([key, value]) => {
      const path = `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
      return { op: 'add', path, value } as const
    })
    return [...events, { type: 'STATE_DELTA', delta: patch }]
  }

  #writeActivity(
    name: string,
    partId: string,
    content: Readonly<Record<string, unknown>>,
  ): RunEvent[] {
    const messageId = `${this.#messageId}.${partId}`
    const activityType = `adk-${name}`
    return [
      ...this.#close(),
      { type: 'ACTIVITY_SNAPSHOT', messageId, activityType, content, replace: true },
    ]
  }

  #countPart(type: string): string {
    const key = `${this.#messageId}.${type}`
    const count = this.#counts.get(key) ?? 0
    this.#counts.set(key, count + 1)
    return `${type}-${count}`
  }

  #isPageCall({ toolName }: WrittenCall): boolean {
    return this.#options.isPageTool(toolName)
  }
}

const TEXT_CONTENT = 'TEXT_MESSAGE_CONTENT'
const REASONING_CONTENT = 'REASONING_MESSAGE_CONTENT'

/** Data parts that repeat what other events say, or that no client of AG-UI can use. */
const OMITTED: ReadonlySet<Chunk['type']> = new Set<Chunk['type']>([
  'data-agent-transfer',
  'data-decision',
  'data-input-transcription',
  'data-pcm',
])

function isData(chunk: Chunk): chunk is DataChunk {
  return chunk.type.startsWith('data-')
}
