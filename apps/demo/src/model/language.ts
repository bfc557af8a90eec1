export type Language = 'en' | 'ja'

/** Tells the language of a text: Japanese as soon as hiragana shows up, otherwise by weight of the letters. */
export function detectLanguage(text: string): Language {
  if (hasHiragana(text)) return 'ja'
  const japanese = text.match(JAPANESE_LETTER)?.length ?? 0
  const latin = text.match(LATIN_LETTER)?.length ?? 0
  // One kanji carries about as much as half an English word: 「weather in 東京」 stays English.
  return japanese * 2 > latin ? 'ja' : 'en'
}

/** Particles and endings are written in hiragana, so its presence means Japanese grammar. */
export function hasHiragana(text: string): boolean {
  return HIRAGANA.test(text)
}

/** Folds full-width digits, letters and signs (５０、＄、？) into their plain forms, so that every reader sees one spelling. */
export function normalise(text: string): string {
  return text.normalize('NFKC').replaceAll('−', '-').replaceAll('’', "'")
}

/** Splits into sentences; a full stop ends one only before white space, so that 12.50 and a@b.c stay whole. */
export function splitSentences(text: string): string[] {
  return text
    .split(SENTENCE_END)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '')
}

const HIRAGANA = /\p{Script=Hiragana}/u
const JAPANESE_LETTER = /[\p{Script=Katakana}\p{Script=Han}]/gu
const LATIN_LETTER = /\p{Script=Latin}/gu
// Titles keep their stop: "Mr. Smith" is one name.
const SENTENCE_END = /[。!?\n]+|(?<!\b(?:Mr|Mrs|Ms|Dr|St))\.(?=\s|$)/u
