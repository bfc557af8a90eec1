import { englishPlace, findKnownPlaces, type FoundPlace } from './places.ts'

/** Returns whether the text asks about the weather. */
export function wantsWeather(text: string): boolean {
  return WEATHER.test(text)
}

/** Reads the places in a weather question: English names, in order of appearance, without duplicates. */
export function readWeatherPlaces(text: string): string[] {
  const known = findKnownPlaces(text).slice(0, MAX_FOUND)
  const found = [
    ...known,
    ...newTo(known, namedPlaces(text).slice(0, MAX_FOUND)),
    ...newTo(known, japanesePlaces(text).slice(0, MAX_FOUND)),
  ]
  const inOrder = found.toSorted((one, other) => one.start - other.start)
  return [...new Set(inOrder.map(({ name }) => name))].slice(0, MAX_PLACES)
}

const MAX_PLACES = 10
// The list is short, so a quadratic comparison is fast.
const MAX_FOUND = 50

const WEATHER =
  /\b(?:weather|forecast|temperature|umbrella|rain(?:ing|y)?|snow(?:ing|y)?|sunny|(?:how|is it) (?:hot|cold|warm)(?= is\b| in\b| at\b))|天気|気温|天候|予報|雨が?降|雪が?降|傘|暑い(?:です)?か|寒い(?:です)?か/i

function newTo(known: readonly FoundPlace[], others: readonly FoundPlace[]): FoundPlace[] {
  return others.filter(
    ({ start, end }) => !known.some((place) => start < place.end && place.start < end),
  )
}

// One to three capitalised words at a word boundary, bounded in length to keep this linear.
const NAME = String.raw`(?<![\p{L}'-])\p{Lu}[\p{L}'-]{0,30}(?: \p{Lu}[\p{L}'-]{0,30}){0,2}`
const NAME_LIST = new RegExp(
  // "in Springfield, Shelbyville and Ogdenville", at most ten names.
  String.raw`\b(?:in|for|at|of|about|around)\s+(${NAME}(?:(?:,\s*and\s+|,\s*|\s+and\s+|\s*&\s*)${NAME}(?!\s+[$€£¥\d])){0,9})`,
  'gu',
)
// "Springfield weather", "Springfield's weather".
const NAME_BEFORE = new RegExp(String.raw`(${NAME})\s+(?:weather|forecast|temperature)\b`, 'gu')
const NAME_IN_LIST = new RegExp(NAME, 'gu')
const NOT_A_PLACE =
  /^(?:I|And|Is|The|What|What's|Whats|How|How's|Today|Today's|Tomorrow|Tell|Show|Send|Pay|Check|Get|Please|Current|Celsius|Fahrenheit|English|Japanese|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|Weather)$/

function namedPlaces(text: string): FoundPlace[] {
  const lists = [...text.matchAll(NAME_LIST), ...text.matchAll(NAME_BEFORE)]
  return lists.flatMap(({ 0: whole, 1: list = '', index }) => {
    const offset = index + whole.indexOf(list)
    return [...list.matchAll(NAME_IN_LIST)].flatMap(({ 0: words, index: at }) => {
      const name = words
        .split(' ')
        .filter((word) => !NOT_A_PLACE.test(word))
        .join(' ')
        .replace(/'s$/, '')
      return name === '' ? [] : [{ name, start: offset + at, end: offset + at + words.length }]
    })
  })
}

// 「軽井沢と箱根の天気」: names in kanji, katakana or Latin letters before の天気. Hiragana would match the whole sentence, so
// names in hiragana must be known places.
const JAPANESE_LIST =
  /((?:[\p{Script=Han}\p{Script=Katakana}ー\p{Script=Latin}]{1,20}[と、や,・]\s?){0,9}[\p{Script=Han}\p{Script=Katakana}ー\p{Script=Latin}]{1,20})(?:で)?の(?:今日の|明日の|現在の|今の)?(?:天気|気温|天候|予報)/gu
const NO_JAPANESE_PLACE =
  /^(?:今日|明日|明後日|本日|今週|来週|週末|今|現在|現在地|世界|全国|最近|今朝|今夜)$/

function japanesePlaces(text: string): FoundPlace[] {
  return [...text.matchAll(JAPANESE_LIST)].flatMap(({ 1: list = '', index }) =>
    [...list.matchAll(/[^と、や,・\s]+/gu)].flatMap(({ 0: name, index: at }) =>
      NO_JAPANESE_PLACE.test(name)
        ? []
        : [{ name: englishPlace(name), start: index + at, end: index + at + name.length }],
    ),
  )
}
