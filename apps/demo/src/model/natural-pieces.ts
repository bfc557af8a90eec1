/** Splits a text into the pieces a model streams: words with the blank behind them, one to three characters of Japanese. */
export function naturalPieces(text: string): string[] {
  const pieces: string[] = []
  let piece = ''
  let length = 0
  // Graphemes, so that neither a surrogate pair nor a combining sequence is torn.
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
  // White space and closing marks stay with what they follow.
  if (BLANK.test(next)) return false
  if (BLANK_END.test(piece)) return true
  if (CLOSING.test(next)) return false
  if (WIDE.test(next)) return !WIDE_END.test(piece) || length >= LONGEST_WIDE
  return WIDE_END.test(piece)
}
