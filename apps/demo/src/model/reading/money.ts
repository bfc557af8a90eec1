import { isNumberWord, NUMBER_CHARACTERS, parseNumber, parseWords } from './numbers.ts'

/** An amount in a text. `currency` is absent for a plain number. */
export interface Money {
  readonly amount: number
  readonly currency?: string
  readonly start: number
  readonly end: number
}

/** Finds all amounts in a text, from left to right. */
export function findMoney(text: string): Money[] {
  const found: Money[] = []
  POSSIBLE_START.lastIndex = 0
  for (let hit = POSSIBLE_START.exec(text); hit; hit = POSSIBLE_START.exec(text)) {
    const money = writtenAt(text, hit.index) ?? spelledAt(text, hit.index)
    if (money === undefined) continue
    found.push(money)
    POSSIBLE_START.lastIndex = money.end
  }
  return found
}

interface Currency {
  readonly code: string
  readonly symbol: string
  readonly japanese: string
  /** Other spellings in lower case, separated by spaces. */
  readonly names: string
}

const CURRENCIES: readonly Currency[] = [
  { code: 'USD', symbol: '$', japanese: 'ドル', names: 'us$ dollar dollars buck bucks 米ドル' },
  { code: 'JPY', symbol: '¥', japanese: '円', names: 'yen' },
  { code: 'EUR', symbol: '€', japanese: 'ユーロ', names: 'euro euros' },
  { code: 'GBP', symbol: '£', japanese: 'ポンド', names: 'pound pounds quid' },
  { code: 'CNY', symbol: '', japanese: '元', names: 'yuan 人民元' },
  { code: 'KRW', symbol: '₩', japanese: 'ウォン', names: 'won' },
  { code: 'CHF', symbol: '', japanese: 'スイスフラン', names: 'francs franc' },
  { code: 'AUD', symbol: '', japanese: '豪ドル', names: 'a$' },
  { code: 'CAD', symbol: '', japanese: 'カナダドル', names: 'c$' },
]

interface Unit {
  readonly code: string
  readonly worth: number
}

const UNITS: ReadonlyMap<string, Unit> = new Map<string, Unit>([
  ...CURRENCIES.flatMap(({ code, symbol, japanese, names }) =>
    [code.toLowerCase(), symbol, japanese, ...names.split(' ')]
      .filter((name) => name !== '')
      .map((name) => [name, { code, worth: 1 }] as const),
  ),
  ...['cent', 'cents', 'セント'].map((name) => [name, { code: 'USD', worth: 0.01 }] as const),
])

const MULTIPLIERS: ReadonlyMap<string, number> = new Map([
  ['k', 1_000],
  ['thousand', 1_000],
  ['million', 1_000_000],
])

const UNIT_NAMES = alternatives([...UNITS.keys()])
// A currency word must follow its number: "I won 5 dollars" is not Korean won.
const UNIT_SIGNS = alternatives([
  ...CURRENCIES.flatMap(({ code, symbol }) => (symbol === '' ? [code] : [code, symbol])),
  'us$',
])
// A sign, a digit or the first letter of a word, but not inside a word ("track2" has no amount).
const POSSIBLE_START = new RegExp(
  String.raw`(?<![a-z.,${NUMBER_CHARACTERS}])[a-z$€£¥₩${NUMBER_CHARACTERS}-]|(?<=[.,\d])[$€£¥₩]`,
  'gi',
)
const UNIT_BEFORE = new RegExp(String.raw`(${UNIT_SIGNS})\s?`, 'iy')
const UNIT_AFTER = new RegExp(String.raw`\s?(${UNIT_NAMES})(?![a-z])`, 'iy')
// The length is bounded, so that a page of digits takes linear time.
const DIGITS = new RegExp(
  `([${NUMBER_CHARACTERS}](?:[${NUMBER_CHARACTERS}]|[,.](?=[${NUMBER_CHARACTERS}])){0,23})`,
  'y',
)
const MULTIPLIER = /\s?(k|thousand|million)(?![a-z])/iy
const MINUS = /(-)\s?/y

/** `$30`, `USD 30`, `-5 dollars`, `3万円`, `$1.5k`, or a plain `30`. */
function writtenAt(text: string, start: number): Money | undefined {
  const reader = { text, at: start }
  const sign = take(reader, MINUS) === '' ? 1 : -1
  const before = take(reader, UNIT_BEFORE)
  const digits = take(reader, DIGITS)
  const number = parseNumber(digits)
  if (number === undefined) return undefined
  const factor = MULTIPLIERS.get(take(reader, MULTIPLIER)) ?? 1
  const unit = UNITS.get(before === '' ? take(reader, UNIT_AFTER) : before)
  // Kanji digits without a unit are usually parts of names: 一郎, 三田.
  if (unit === undefined && !/^[\d.,]+$/.test(digits)) return undefined
  return {
    amount: sign * cents(number * factor * (unit?.worth ?? 1)),
    ...(unit && { currency: unit.code }),
    start,
    end: reader.at,
  }
}

const WORD = /([a-z]+)[\s-]*/iy
const LONGEST_SPELLING = 8

/** `twenty five dollars`, `a hundred yen`. The unit is required: "one" alone is not an amount. */
function spelledAt(text: string, start: number): Money | undefined {
  const reader = { text, at: start }
  const words: string[] = []
  for (let count = 0; count < LONGEST_SPELLING; count += 1) {
    const back = reader.at
    const word = take(reader, WORD)
    if (isNumberWord(word)) words.push(word)
    else if (word !== (count === 0 ? 'a' : 'and')) {
      reader.at = back
      break
    }
  }
  const amount = parseWords(words)
  const unit = UNITS.get(take(reader, UNIT_AFTER))
  if (amount === undefined || unit === undefined) return undefined
  return { amount: cents(amount * unit.worth), currency: unit.code, start, end: reader.at }
}

/** Longest first: 米ドル before ドル, dollars before dollar. */
function alternatives(names: readonly string[]): string {
  return names
    .toSorted((one, other) => other.length - one.length)
    .map((name) => name.replaceAll('$', String.raw`\$`))
    .join('|')
}

interface Reader {
  readonly text: string
  at: number
}

/** Returns the match of the sticky expression in lower case, or an empty string. */
function take(reader: Reader, sticky: RegExp): string {
  sticky.lastIndex = reader.at
  const match = sticky.exec(reader.text)
  if (match === null) return ''
  reader.at = sticky.lastIndex
  return (match[1] ?? '').toLowerCase()
}

function cents(amount: number): number {
  return Math.round(amount * 100) / 100
}
