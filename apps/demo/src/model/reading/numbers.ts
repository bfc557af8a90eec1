/** The characters of a number, for a character class of a regular expression. */
export const NUMBER_CHARACTERS = '0-9〇零一二三四五六七八九十百千万億'

/** Reads `1,200`, `12.50`, `12,50`, `五十`, `3万5千`. Returns undefined if the text is not a number. */
export function parseNumber(written: string): number | undefined {
  if (DECIMAL_COMMA.test(written)) return Number(written.replace(',', '.'))
  const plain = written.replaceAll(',', '')
  if (!written.includes(',') || THOUSANDS.test(written)) {
    if (PLAIN.test(plain)) return Number(plain)
    if (WITH_KANJI.test(plain)) return parseKanji(plain)
  }
  return undefined
}

/** Reads English number words: `['twenty', 'five']`, `['two', 'hundred']`. Returns undefined if a word is not one. */
export function parseWords(words: readonly string[]): number | undefined {
  let total = 0
  let group = 0
  for (const word of words) {
    const value = WORDS.get(word)
    if (value === undefined) return undefined
    if (value < 100) group += value
    else if (value === 100) group = Math.max(group, 1) * 100
    else {
      total += Math.max(group, 1) * value
      group = 0
    }
  }
  return words.length === 0 ? undefined : total + group
}

/** Returns whether the lower-case word is a number word. */
export function isNumberWord(word: string): boolean {
  return WORDS.has(word)
}

const PLAIN = /^\d+(?:\.\d+)?$/
const DECIMAL_COMMA = /^\d+,\d{1,2}$/
const THOUSANDS = /^\d{1,3}(?:,\d{3})+(?![\d,])/
const WITH_KANJI = /^[\d.〇零一二三四五六七八九十百千万億]+$/

const KANJI_DIGITS = '〇一二三四五六七八九'
const SMALL_UNITS = new Map([
  ['十', 10],
  ['百', 100],
  ['千', 1_000],
])
const LARGE_UNITS = new Map([
  ['万', 10_000],
  ['億', 100_000_000],
])

/** Adds up `3万5千`: digits are multiplied by a small unit (千), the group by a large one (万). */
function parseKanji(written: string): number | undefined {
  let total = 0
  let group = 0
  let digits = ''
  for (const character of written) {
    const small = SMALL_UNITS.get(character)
    const large = LARGE_UNITS.get(character)
    if (small !== undefined) {
      group += (digits === '' ? 1 : Number(digits)) * small
      digits = ''
    } else if (large !== undefined) {
      total += Math.max(group + Number(digits), digits === '' && group === 0 ? 1 : 0) * large
      group = 0
      digits = ''
    } else digits += digitOf(character)
  }
  const value = total + group + Number(digits)
  // 3.5万 is 35000, not 35000.000000000004.
  return Number.isFinite(value) ? Math.round(value * 100) / 100 : undefined
}

function digitOf(character: string): string {
  const digit = KANJI_DIGITS.indexOf(character === '零' ? '〇' : character)
  return digit === -1 ? character : String(digit)
}

const WORDS: ReadonlyMap<string, number> = new Map(
  Object.entries({
    ...counted(
      'zero one two three four five six seven eight nine ten eleven twelve thirteen',
      0,
      1,
    ),
    ...counted('fourteen fifteen sixteen seventeen eighteen nineteen', 14, 1),
    ...counted('twenty thirty forty fifty sixty seventy eighty ninety', 20, 10),
    hundred: 100,
    thousand: 1_000,
    million: 1_000_000,
  }),
)

function counted(words: string, first: number, step: number): Record<string, number> {
  return Object.fromEntries(words.split(' ').map((word, index) => [word, first + index * step]))
}
