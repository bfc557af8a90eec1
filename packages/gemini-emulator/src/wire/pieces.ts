// A character of a script that is written without spaces, with its marks, or a run of anything else; each with the
// space that follows. The pieces joined are the text.
const PIECE =
  /^\s+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uffef]\p{M}*\s*|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uffef]+\s*/gu

/** Splits a text as the model streams it: by words, and by characters where there are no spaces. */
export function splitPieces(text: string): readonly string[] {
  return text.match(PIECE) ?? []
}
