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

/** Splits a text into pieces: words with their trailing space, or up to two Japanese characters with the punctuation after them. */
export function naturalPieces(text: string): string[] {
  const pieces: string[] = []
  let piece = ''
  let length = 0
  // Graphemes keep surrogate pairs and combining sequences together.
  for (const { segment } of GRAPHEMES.segment(text)) {
    if (piece !== '' && startsPiece(piece, length, segment)) {
      pieces.push(piece)
      piece = ''
      length = 0
    }
    piece += segment
    length += 1
  }
  return piece === '' ? pieces : [...pieces, piece]
}

const BLANK = /^\s/u
const BLANK_END = /\s$/u
const WIDE = /^[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}ー]/u
const WIDE_END = /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}ー]\p{M}*$/u
const CLOSING = /^[、。！？!?,.）」』)\]]/u
const LONGEST_WIDE = 2

function startsPiece(piece: string, length: number, next: string): boolean {
  // Whitespace and closing punctuation stay with the previous piece.
  if (BLANK.test(next)) return false
  if (BLANK_END.test(piece)) return true
  if (CLOSING.test(next)) return false
  if (WIDE.test(next)) return !WIDE_END.test(piece) || length >= LONGEST_WIDE
  return WIDE_END.test(piece)
}
