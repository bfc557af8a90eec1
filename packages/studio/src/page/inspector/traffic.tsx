import { memo, useState } from 'react'
import { ArrowDown, ArrowUp } from 'lucide-react'

import { formatBytes, formatMs, formatTime } from './format.ts'
import type { Entry, Span, TurnTrace } from './trace.ts'
import { ScrolledText, useInspectorLabels } from './parts.tsx'
import type { SoundCount, WireLine } from './wire-log.ts'

/** The replies of the conversation, newest first, with their chunks and times. */
export function Streams({ turns }: { readonly turns: readonly TurnTrace[] }) {
  const labels = useInspectorLabels()
  if (turns.length === 0) return <p className="inspector-empty">{labels.nothingYet}</p>
  return (
    <ol className="turns" reversed>
      {turns.toReversed().map((turn, index) => (
        <li key={turn.request}>
          <details open={index === 0}>
            <TurnHead turn={turn} />
            <Lanes turn={turn} />
            <ol className="entries">
              {turn.entries.map((entry) => (
                <EntryLine
                  key={`${entry.at}-${entry.type}`}
                  entry={entry}
                  count={entry.count}
                  offset={entry.at - turn.startedAt}
                />
              ))}
            </ol>
          </details>
        </li>
      ))}
    </ol>
  )
}

function TurnHead({ turn }: { readonly turn: TurnTrace }) {
  const labels = useInspectorLabels()
  const { trigger, startedAt, firstAt, firstWordAt, endedAt, chunks, error } = turn
  const facts: [string, number | undefined][] = [
    [labels.firstChunk, firstAt],
    [labels.firstWord, firstWordAt],
    [labels.whole, endedAt],
  ]
  return (
    <summary>
      <span className="turn-trigger">{labels.triggers[trigger] ?? trigger}</span>
      <time dateTime={new Date(startedAt).toISOString()}>{formatTime(startedAt, labels)}</time>
      <span className="turn-facts">
        {facts.map(
          ([label, at]) =>
            at !== undefined && (
              <span key={label}>
                {label} <b>{formatMs(at - startedAt)}</b>
              </span>
            ),
        )}
        <span>{labels.chunks(chunks)}</span>
        {endedAt === undefined && <span className="turn-open">{labels.open}</span>}
        {error !== undefined && <span className="turn-error">{error}</span>}
      </span>
    </summary>
  )
}

/** The spans of a reply, drawn to scale. An image with one label, because the list below contains the same data. */
function Lanes({ turn }: { readonly turn: TurnTrace }) {
  const labels = useInspectorLabels()
  const { spans, startedAt } = turn
  const last = turn.entries.at(-1)
  const end = Math.max(turn.endedAt ?? last?.lastAt ?? startedAt, startedAt + 1)
  const percent = (at: number): string => `${((at - startedAt) / (end - startedAt)) * 100}%`
  const unfinished = turn.endedAt === undefined ? labels.open : labels.unfinished
  if (spans.length === 0) return null
  return (
    <figure className="lanes" role="img" aria-label={describeSpans(spans, labels.spans)}>
      {spans.map((span) => (
        <div className="lane" key={`${span.kind}-${span.id}`}>
          <span className="lane-label">{span.label || labels.spans[span.kind]}</span>
          <span className="lane-track">
            <span
              className="lane-bar"
              data-kind={span.kind}
              data-open={span.to === undefined || undefined}
              style={{
                insetInlineStart: percent(span.from),
                insetInlineEnd: `calc(100% - ${percent(span.to ?? end)})`,
              }}
            />
          </span>
          <span className="lane-time">
            {span.to === undefined ? unfinished : formatMs(span.to - span.from)}
          </span>
        </div>
      ))}
    </figure>
  )
}

function describeSpans(
  spans: readonly Span[],
  names: Readonly<Record<Span['kind'], string>>,
): string {
  const said = spans.map(
    ({ kind, label, from, to }) =>
      `${names[kind]} ${label} ${to === undefined ? '…' : formatMs(to - from)}`,
  )
  return said.join(', ')
}

interface EntryLineProps {
  readonly entry: Entry
  /** Changes when the entry grows, because the entry itself is mutated. */
  readonly count: number
  readonly offset: number
}

const EntryLine = memo(function EntryLine({ entry, count, offset }: EntryLineProps) {
  return (
    <li className="entry">
      <details>
        <summary>
          <span className="entry-time">+{formatMs(offset)}</span>
          <code>{entry.type}</code>
          {count > 1 && <span className="entry-count">×{count}</span>}
        </summary>
        <ScrolledText>{entry.detail}</ScrolledText>
      </details>
    </li>
  )
})

interface WireListProps {
  readonly lines: readonly WireLine[]
  readonly sound: SoundCount
}

/** The number of lines to show. Thousands would be slow to render. */
const SHOWN = 200

/** The frames and requests, newest first. */
export function WireList({ lines, sound }: WireListProps) {
  const labels = useInspectorLabels()
  const [filter, setFilter] = useState('')
  const found = lines.filter(({ type }) => type.toLowerCase().includes(filter.trim().toLowerCase()))
  return (
    <>
      <div className="wire-head">
        <label>
          {labels.filter}
          <input type="search" value={filter} onChange={({ target }) => setFilter(target.value)} />
        </label>
        {sound.in + sound.out > 0 && (
          <span>{labels.sound(formatBytes(sound.out), formatBytes(sound.in))}</span>
        )}
      </div>
      {found.length === 0 && (
        <p className="inspector-empty" role="status">
          {lines.length === 0 ? labels.nothingYet : labels.noMatch(filter.trim())}
        </p>
      )}
      <ol className="wire" reversed>
        {found
          .slice(-SHOWN)
          .toReversed()
          .map((line) => (
            <WireLineView key={line.number} line={line} />
          ))}
      </ol>
    </>
  )
}

const WireLineView = memo(function WireLineView({ line }: { readonly line: WireLine }) {
  const labels = useInspectorLabels()
  const [isOpen, setOpen] = useState(false)
  const { direction, type, at, content, count } = line
  const Arrow = direction === 'in' ? ArrowDown : ArrowUp
  return (
    <li className="wire-line" data-direction={direction}>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <Arrow size={14} aria-label={direction === 'in' ? labels.received : labels.sent} />
          <code>{type}</code>
          {count > 1 && <span className="entry-count">×{count}</span>}
          <time dateTime={new Date(at).toISOString()}>{formatTime(at, labels)}</time>
        </summary>
        {isOpen && (
          <ScrolledText>{JSON.stringify(content, undefined, 2).slice(0, 20_000)}</ScrolledText>
        )}
      </details>
    </li>
  )
})
