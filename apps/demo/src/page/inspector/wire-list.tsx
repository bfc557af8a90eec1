import { ArrowDown, ArrowUp } from 'lucide-react'
import { memo, useState } from 'react'

import { formatBytes } from './format.ts'
import { ScrolledText, useInspectorLabels } from './parts.tsx'
import type { SoundCount, WireLine } from './wire-log.ts'

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
          <time dateTime={new Date(at).toISOString()}>
            {new Date(at).toLocaleTimeString(labels.locale)}
          </time>
        </summary>
        {isOpen && (
          <ScrolledText>{JSON.stringify(content, undefined, 2).slice(0, 20_000)}</ScrolledText>
        )}
      </details>
    </li>
  )
})
