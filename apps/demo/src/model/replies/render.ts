import { isRecord } from '../schema.ts'

/** Truncates a text with an ellipsis. Collapses whitespace. */
export function clip(text: string, most: number): string {
  // Limits the work for very long texts.
  const head = text
    .slice(0, most * 8)
    .replaceAll(/\s+/gu, ' ')
    .trim()
  let clipped = ''
  let count = 0
  for (const { segment } of GRAPHEMES.segment(head)) {
    if (count === most) return `${clipped}…`
    clipped += segment
    count += 1
  }
  return text.length > most * 8 ? `${clipped}…` : clipped
}

const GRAPHEMES = new Intl.Segmenter('ja', { granularity: 'grapheme' })

/** Formats a JSON value in compact form: `id: 5, status: shipped, items: [a, b]`. */
export function renderValue(value: unknown): string {
  const rendering = isRecord(value) ? renderEntries(value, 0) : renderNested(value, 0)
  return clip(rendering, LONGEST)
}

const LONGEST = 400
const DEEPEST = 4
const MAX_ENTRIES = 24

function renderEntries(value: Readonly<Record<string, unknown>>, depth: number): string {
  return Object.entries(value)
    .slice(0, MAX_ENTRIES)
    .map(([key, each]) => `${key}: ${renderNested(each, depth + 1)}`)
    .join(', ')
}

function renderNested(value: unknown, depth: number): string {
  if (typeof value === 'string') return clip(value, LONGEST)
  if (typeof value !== 'object' || value === null) return String(value)
  if (depth >= DEEPEST) return '…'
  if (!Array.isArray(value)) return isRecord(value) ? `{${renderEntries(value, depth)}}` : '…'
  return `[${value
    .slice(0, MAX_ENTRIES)
    .map((each) => renderNested(each, depth + 1))
    .join(', ')}]`
}
