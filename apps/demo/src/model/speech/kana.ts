import { consonant, rest, type Sound, type Utterance, vowel, type Vowel } from './sounds.ts'

/** Returns the sounds at this position of a Japanese text, or undefined if it has neither kana nor kanji. */
export function readKana(text: string, at: number): Utterance | undefined {
  const character = toHiragana(text.charAt(at))
  if (character === 'っ') return { sounds: [rest(MORA_MS)], length: 1 }
  if (character === 'ん') return { sounds: consonant('n', MORA_MS), length: 1 }
  if (character === 'ー') return { sounds: [vowel(vowelBefore(text, at), MORA_MS)], length: 1 }
  const mora = MORAE.get(character)
  if (mora !== undefined) return withSmallKana(mora, toHiragana(text.charAt(at + 1)))
  const code = text.codePointAt(at) ?? 0
  const written = String.fromCodePoint(code)
  return KANJI.test(written) ? { sounds: readKanji(code), length: written.length } : undefined
}

/** Seven and a half morae a second. */
const MORA_MS = 133
const CONSONANT_SHARE = 0.35

type Mora = readonly [consonant: string, vowel: Vowel]

const VOWELS: readonly Vowel[] = ['a', 'i', 'u', 'e', 'o']
// Rows of the kana table: five kana in the order a i u e o, and their consonant. A dot is a gap.
const ROWS: readonly (readonly [kana: string, consonants: string])[] = [
  ['あいうえお', '- - - - -'],
  ['かきくけこ', 'k k k k k'],
  ['がぎぐげご', 'g g g g g'],
  ['さしすせそ', 's sh s s s'],
  ['ざじずぜぞ', 'z j z z z'],
  ['たちつてと', 't ch ts t t'],
  ['だぢづでど', 'd j z d d'],
  ['なにぬねの', 'n n n n n'],
  ['はひふへほ', 'h h f h h'],
  ['ばびぶべぼ', 'b b b b b'],
  ['ぱぴぷぺぽ', 'p p p p p'],
  ['まみむめも', 'm m m m m'],
  ['や.ゆ.よ', 'y - y - y'],
  ['らりるれろ', 'r r r r r'],
  ['わゐ.ゑを', 'w - - - -'],
  ['..ゔ..', '- - v - -'],
]
const SMALL = new Map<string, Vowel>([
  ['ゃ', 'a'],
  ['ゅ', 'u'],
  ['ょ', 'o'],
  ['ぁ', 'a'],
  ['ぃ', 'i'],
  ['ぅ', 'u'],
  ['ぇ', 'e'],
  ['ぉ', 'o'],
])
const MORAE: ReadonlyMap<string, Mora> = new Map([
  ...ROWS.flatMap(([kana, consonants]) => {
    const names = consonants.split(' ')
    return VOWELS.map((name, index): [string, Mora] => [
      kana.charAt(index),
      [names[index] ?? '-', name],
    ])
  }).filter(([kana]) => kana !== '.'),
  ...[...SMALL].map(([kana, name]): [string, Mora] => [kana, ['-', name]]),
])

/** 「しゃ」 is one mora. The small kana determines the vowel. */
function withSmallKana([name, ownVowel]: Mora, next: string): Utterance {
  const small = SMALL.get(next)
  return { sounds: soundsOf([name, small ?? ownVowel]), length: small === undefined ? 1 : 2 }
}

function soundsOf([name, vowelName]: Mora): Sound[] {
  const start = consonant(name, MORA_MS * CONSONANT_SHARE)
  return [...start, vowel(vowelName, MORA_MS * (start.length === 0 ? 1 : 1 - CONSONANT_SHARE))]
}

function vowelBefore(text: string, at: number): Vowel {
  const before = toHiragana(text.charAt(at - 1))
  return SMALL.get(before) ?? MORAE.get(before)?.[1] ?? 'a'
}

const KANJI = /^[\p{Script=Han}]$/u
const KANJI_CONSONANTS = ['k', 's', 't', 'n', 'h', 'm', 'r', 'g', 'd', 'sh', 'j', '-']
const KANJI_ENDINGS: readonly Mora[] = [
  ['-', 'i'],
  ['-', 'u'],
  ['k', 'u'],
  ['n', 'a'],
  ['ts', 'u'],
  ['r', 'i'],
]

/** There is no dictionary: each kanji is two morae derived from its code point. */
function readKanji(code: number): Sound[] {
  const pick = <Item>(items: readonly Item[], shift: number): Item | undefined =>
    items[(code >>> shift) % items.length]
  const first: Mora = [pick(KANJI_CONSONANTS, 0) ?? 'k', pick(VOWELS, 2) ?? 'a']
  return [...soundsOf(first), ...soundsOf(pick(KANJI_ENDINGS, 4) ?? ['-', 'i'])]
}

function toHiragana(character: string): string {
  const code = character.charCodeAt(0)
  // Katakana code points are 0x60 above hiragana.
  return code >= 0x30a1 && code <= 0x30f4 ? String.fromCharCode(code - 0x60) : character
}
