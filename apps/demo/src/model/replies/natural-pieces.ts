/** Splits a text into pieces: words with their trailing space, or one to three Japanese characters. */
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

const GRAPHEMES = new Intl.Segmenter('ja', { granularity: 'grapheme' })
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
