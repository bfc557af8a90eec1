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

/** One line of the timeline; deltas that follow each other are one line. */
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
  readonly kind: 'thoughts' | 'words' | 'call' | 'wait'
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
  const last = entries.at(-1)
  const delta = 'delta' in chunk ? chunk.delta : undefined
  if (delta !== undefined && last?.type === chunk.type) {
    last.lastAt = at
    last.count += 1
    if (last.detail.length < MAX_DETAIL) last.detail += delta
    return
  }
  if (entries.length >= MAX_ENTRIES) entries.shift()
  const detail = delta ?? JSON.stringify(chunk, undefined, 2)
  entries.push({ at, type: chunk.type, lastAt: at, count: 1, detail: detail.slice(0, MAX_DETAIL) })
}

function addSpans(trace: TurnTrace, chunk: Chunk, at: number): void {
  const { spans } = trace
  const begin = (span: Omit<Span, 'from' | 'to'>) => void spans.push({ ...span, from: at })
  const end = (kind: Span['kind'], id: string): void => {
    const open = spans.findLast((span) => span.kind === kind && span.id === id)
    if (open) open.to ??= at
  }
  switch (chunk.type) {
    case 'text-start':
      return begin({ kind: 'words', id: chunk.id, label: '' })
    case 'text-delta':
      trace.firstWordAt ??= at
      return
    case 'text-end':
      return end('words', chunk.id)
    case 'reasoning-start':
      return begin({ kind: 'thoughts', id: chunk.id, label: '' })
    case 'reasoning-end':
      return end('thoughts', chunk.id)
    case 'tool-input-start':
    case 'tool-input-available':
      // A call whose arguments come at once has no start of its own.
      if (spans.every(({ kind, id }) => kind !== 'call' || id !== chunk.toolCallId))
        begin({ kind: 'call', id: chunk.toolCallId, label: chunk.toolName })
      return
    case 'tool-approval-request':
      return begin({ kind: 'wait', id: chunk.toolCallId, label: labelOf(spans, chunk.toolCallId) })
    case 'data-approval':
      if (chunk.data.state !== 'requested') end('wait', chunk.data.toolCallId)
      return
    case 'tool-output-available':
    case 'tool-output-error':
    case 'tool-output-denied':
      end('wait', chunk.toolCallId)
      return end('call', chunk.toolCallId)
  }
}

function labelOf(spans: readonly Span[], toolCallId: string): string {
  return spans.find(({ kind, id }) => kind === 'call' && id === toolCallId)?.label ?? ''
}
