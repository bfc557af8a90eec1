import type { Language } from '../../demo-info.ts'

/** Detects the language: Japanese if the text has hiragana, otherwise by the number of letters of each script. */
export function detectLanguage(text: string): Language {
  if (hasHiragana(text)) return 'ja'
  const japanese = text.match(JAPANESE_LETTER)?.length ?? 0
  const latin = text.match(LATIN_LETTER)?.length ?? 0
  // One kanji counts as half an English word: 「weather in 東京」 is English.
  return japanese * 2 > latin ? 'ja' : 'en'
}

/** Japanese particles and endings are written in hiragana. */
export function hasHiragana(text: string): boolean {
  return HIRAGANA.test(text)
}

/** Converts full-width digits, letters and signs (５０、＄、？) to their half-width forms. */
export function normalise(text: string): string {
  return text.normalize('NFKC').replaceAll('−', '-').replaceAll('’', "'")
}

/** Splits a text into sentences. A full stop ends a sentence only before whitespace: 12.50 and a@b.c are not split. */
export function splitSentences(text: string): string[] {
  return text
    .split(SENTENCE_END)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '')
}

const HIRAGANA = /\p{Script=Hiragana}/u
const JAPANESE_LETTER = /[\p{Script=Katakana}\p{Script=Han}]/gu
const LATIN_LETTER = /\p{Script=Latin}/gu
// The stop of a title does not end a sentence: "Mr. Smith".
const SENTENCE_END = /[。!?\n]+|(?<!\b(?:Mr|Mrs|Ms|Dr|St))\.(?=\s|$)/u
