import type { WireEvent } from 'adk-stream-protocol/client'

/** What is seen of an answer: when each thing of it came, and what it is made of. Times are ms since 1970. */
export interface TurnTrace {
  readonly request: string
  readonly trigger: string
  readonly startedAt: number
  /** When its first chunk came. */
  firstAt?: number
  /** When its first word came: of the answer, not of the thoughts. */
  firstWordAt?: number
  endedAt?: number
  error?: string
  chunks: number
  readonly entries: Entry[]
  readonly spans: Span[]
}

/** One line of the timeline; deltas and sound that follow each other are one line of each. */
export interface Entry {
  readonly at: number
  readonly type: string
  /** When the last of them came. */
  lastAt: number
  count: number
  /** The text of deltas, the JSON of anything else. */
  detail: string
}

/** Something that takes time within an answer. */
export interface Span {
  readonly kind: 'reasoning' | 'text' | 'call' | 'approval'
  readonly id: string
  readonly label: string
  readonly from: number
  to?: number
}

type Chunk = Extract<WireEvent, { type: 'chunk' }>['chunk']
type RequestEvent = Extract<WireEvent, { type: 'request' }>

/** No line of the timeline keeps more than this of what it shows. */
const MAX_DETAIL = 4000
const MAX_ENTRIES = 500

export function beginTrace({ request, trigger }: RequestEvent, at: number): TurnTrace {
  return { request, trigger, startedAt: at, chunks: 0, entries: [], spans: [] }
}

/** Enters a chunk. A trace is written in place: an answer has thousands of chunks, and the page reads it a few times a second. */
export function traceChunk(trace: TurnTrace, chunk: Chunk, at: number): void {
  trace.firstAt ??= at
  trace.chunks += 1
  addEntry(trace.entries, chunk, at)
  addSpans(trace, chunk, at)
}

export function endTrace(trace: TurnTrace, at: number, error?: string): void {
  trace.endedAt = at
  if (error !== undefined) trace.error = error
  for (const span of trace.spans) span.to ??= at
}

function addEntry(entries: Entry[], chunk: Chunk, at: number): void {
  const delta = 'delta' in chunk ? chunk.delta : undefined
  const last = FLOWING.has(chunk.type) ? findLine(entries, chunk.type) : undefined
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

/** What comes piece by piece; words and sound come at the same time. */
const FLOWING: ReadonlySet<string> = new Set([
  'text-delta',
  'reasoning-delta',
  'tool-input-delta',
  'data-pcm',
])

/** The line that a piece belongs to: nothing else has begun since. */
function findLine(entries: readonly Entry[], type: string): Entry | undefined {
  const line = entries.findLast((entry) => entry.type === type || !FLOWING.has(entry.type))
  return line?.type === type ? line : undefined
}

function addSpans(trace: TurnTrace, chunk: Chunk, at: number): void {
  const { spans } = trace
  if (chunk.type === 'text-delta') trace.firstWordAt ??= at
  const begun = beginsSpan(chunk, spans)
  if (begun) spans.push({ ...begun, from: at })
  for (const [kind, id] of endsSpans(chunk)) {
    const open = spans.findLast((span) => span.kind === kind && span.id === id)
    if (open) open.to ??= at
  }
}

function beginsSpan(chunk: Chunk, spans: readonly Span[]): Omit<Span, 'from' | 'to'> | undefined {
  if (chunk.type === 'text-start') return { kind: 'text', id: chunk.id, label: '' }
  if (chunk.type === 'reasoning-start') return { kind: 'reasoning', id: chunk.id, label: '' }
  const calls = spans.filter(({ kind }) => kind === 'call')
  if (chunk.type === 'tool-input-start' || chunk.type === 'tool-input-available') {
    const { toolCallId, toolName } = chunk
    // A call whose arguments come at once has no start of its own.
    const isKnown = calls.some(({ id }) => id === toolCallId)
    return isKnown ? undefined : { kind: 'call', id: toolCallId, label: toolName }
  }
  if (chunk.type !== 'tool-approval-request') return undefined
  const { toolCallId } = chunk
  const label = calls.find(({ id }) => id === toolCallId)?.label ?? ''
  return { kind: 'approval', id: toolCallId, label }
}

function endsSpans(chunk: Chunk): readonly (readonly [Span['kind'], string])[] {
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
