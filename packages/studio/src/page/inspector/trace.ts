import type { WireEvent } from 'adk-stream-protocol/client'

/** The trace of a reply: its chunks and when they arrived. Times are in ms since 1970. */
export interface TurnTrace {
  readonly request: string
  readonly trigger: string
  /** The message that the reply writes, from its first chunk. */
  messageId?: string
  readonly startedAt: number
  /** When the first chunk arrived. */
  firstAt?: number
  /** When the first text arrived, not counting reasoning. */
  firstWordAt?: number
  endedAt?: number
  error?: string
  chunks: number
  readonly entries: Entry[]
  readonly spans: Span[]
}

/** One line of the timeline. Consecutive deltas or audio chunks share a line. */
export interface Entry {
  readonly at: number
  readonly type: string
  /** When the last chunk of the line arrived. */
  lastAt: number
  count: number
  /** The text of deltas, or the JSON of other chunks. */
  detail: string
}

/** A period within a reply. */
export interface Span {
  readonly kind: 'reasoning' | 'text' | 'call' | 'approval'
  readonly id: string
  readonly label: string
  readonly from: number
  to?: number
}

type Chunk = Extract<WireEvent, { type: 'chunk' }>['chunk']
type RequestEvent = Extract<WireEvent, { type: 'request' }>

/** The maximum number of characters that a line keeps. */
const MAX_DETAIL = 4000
const MAX_ENTRIES = 500

export function startTrace({ request, trigger }: RequestEvent, at: number): TurnTrace {
  return { request, trigger, startedAt: at, chunks: 0, entries: [], spans: [] }
}

/** Adds a chunk. Mutates the trace, because a reply has thousands of chunks and the page reads it a few times a second. */
export function traceChunk(trace: TurnTrace, chunk: Chunk, at: number): void {
  trace.firstAt ??= at
  trace.chunks += 1
  if (chunk.type === 'start' && chunk.messageId !== undefined) trace.messageId = chunk.messageId
  addEntry(trace.entries, chunk, at)
  addSpans(trace, chunk, at)
}

export function endTrace(trace: TurnTrace, at: number, error?: string): void {
  trace.endedAt = at
  if (error !== undefined) trace.error = error
  // A call that waits for a decision ends in a later reply, or never.
  for (const span of trace.spans)
    if (span.kind === 'text' || span.kind === 'reasoning') span.to ??= at
}

function addEntry(entries: Entry[], chunk: Chunk, at: number): void {
  const delta = 'delta' in chunk ? chunk.delta : undefined
  const last = PIECES.has(chunk.type) ? findLine(entries, chunk.type) : undefined
  if (last) {
    last.lastAt = at
    last.count += 1
    if (last.detail.length < MAX_DETAIL) last.detail += delta ?? ''
    return
  }
  if (entries.length >= MAX_ENTRIES) entries.shift()
  const detail = delta ?? JSON.stringify(chunk, undefined, 2)
  entries.push({ at, type: chunk.type, lastAt: at, count: 1, detail: detail.slice(0, MAX_DETAIL) })
}

/** Chunk types that arrive in pieces. Text and audio arrive at the same time. */
const PIECES: ReadonlySet<string> = new Set([
  'text-delta',
  'reasoning-delta',
  'tool-input-delta',
  'data-pcm',
])

/** Returns the line of a piece, unless a chunk of another kind followed it. */
function findLine(entries: readonly Entry[], type: string): Entry | undefined {
  const line = entries.findLast((entry) => entry.type === type || !PIECES.has(entry.type))
  return line?.type === type ? line : undefined
}

function addSpans(trace: TurnTrace, chunk: Chunk, at: number): void {
  const { spans } = trace
  if (chunk.type === 'text-delta') trace.firstWordAt ??= at
  const started = startedSpan(chunk, spans)
  if (started) spans.push({ ...started, from: at })
  for (const [kind, id] of endedSpans(chunk)) {
    const open = spans.findLast((span) => span.kind === kind && span.id === id)
    if (open) open.to ??= at
  }
}

function startedSpan(chunk: Chunk, spans: readonly Span[]): Omit<Span, 'from' | 'to'> | undefined {
  if (chunk.type === 'text-start') return { kind: 'text', id: chunk.id, label: '' }
  if (chunk.type === 'reasoning-start') return { kind: 'reasoning', id: chunk.id, label: '' }
  const calls = spans.filter(({ kind }) => kind === 'call')
  if (chunk.type === 'tool-input-start' || chunk.type === 'tool-input-available') {
    const { toolCallId, toolName } = chunk
    // If the arguments arrive at once, there is no `tool-input-start`.
    const isKnown = calls.some(({ id }) => id === toolCallId)
    return isKnown ? undefined : { kind: 'call', id: toolCallId, label: toolName }
  }
  if (chunk.type !== 'tool-approval-request') return undefined
  const { toolCallId } = chunk
  const label = calls.find(({ id }) => id === toolCallId)?.label ?? ''
  return { kind: 'approval', id: toolCallId, label }
}

function endedSpans(chunk: Chunk): readonly (readonly [Span['kind'], string])[] {
  if (chunk.type === 'text-end') return [['text', chunk.id]]
  if (chunk.type === 'reasoning-end') return [['reasoning', chunk.id]]
  if (chunk.type === 'data-approval')
    return chunk.data.state === 'requested' ? [] : [['approval', chunk.data.toolCallId]]
  const isResult =
    chunk.type === 'tool-output-available' ||
    chunk.type === 'tool-output-error' ||
    chunk.type === 'tool-output-denied'
  return isResult
    ? [
        ['approval', chunk.toolCallId],
        ['call', chunk.toolCallId],
      ]
    : []
}
