import { readKana } from './kana.ts'
import { consonant, rest, type Sound, type Utterance, vowel, type Vowel } from './sounds.ts'

/** A sound with its position in the text and its pitch in Hz. */
export interface SpokenSound extends Sound {
  readonly at: number
  readonly pitch: number
}

/** Converts a text to sounds with duration and pitch. */
export function readSounds(text: string, longestMs: number): SpokenSound[] {
  const spoken: SpokenSound[] = []
  let phrase: PlacedSound[] = []
  let spentMs = 0
  let at = 0
  while (at < text.length && spentMs < longestMs) {
    const { sounds, length } = readAt(text, at)
    for (const sound of sounds) {
      phrase.push({ ...sound, at })
      spentMs += sound.ms
    }
    if (PHRASE_END.test(text.charAt(at))) {
      spoken.push(...intone(phrase, QUESTION.test(text.charAt(at))))
      phrase = []
    }
    at += length
  }
  return [...spoken, ...intone(phrase, false)]
}

type PlacedSound = Sound & { readonly at: number }

const PHRASE_END = /[.。!！?？\n]/
const QUESTION = /[?？]/
const BASE_PITCH = 150

/** The pitch declines over a phrase. At its end it falls, or rises for a question. */
function intone(phrase: readonly PlacedSound[], isQuestion: boolean): SpokenSound[] {
  return phrase.map((sound, index) => {
    const progress = phrase.length === 1 ? 1 : index / (phrase.length - 1)
    const ending = Math.max(0, (progress - 0.7) / 0.3)
    const slope = isQuestion
      ? 1.05 - 0.1 * progress + 0.5 * ending
      : 1.15 - 0.2 * progress - 0.2 * ending
    return { ...sound, pitch: BASE_PITCH * slope }
  })
}

function readAt(text: string, at: number): Utterance {
  const character = String.fromCodePoint(text.codePointAt(at) ?? 0)
  const pauseMs = PAUSES.get(character)
  if (pauseMs !== undefined)
    return { sounds: [rest(isInsideNumber(text, at) ? 60 : pauseMs)], length: 1 }
  const kana = readKana(text, at)
  if (kana !== undefined) return kana
  const pair = PAIRS.get(text.slice(at, at + 2).toLowerCase())
  if (pair !== undefined) return { sounds: pair, length: 2 }
  return { sounds: readCharacter(character), length: character.length }
}

/** Milliseconds of silence. */
const PAUSES: ReadonlyMap<string, number> = new Map([
  [' ', 45],
  ['　', 90],
  ['\t', 45],
  ['\n', 220],
  ...[...new Set(',、;:；：，')].map((mark): [string, number] => [mark, 140]),
  ...[...new Set('.。!！?？．')].map((mark): [string, number] => [mark, 200]),
])

function isInsideNumber(text: string, at: number): boolean {
  return /^\d[.,:]\d$/.test(text.slice(Math.max(at - 1, 0), at + 2))
}

// English is spoken letter by letter, about 13 letters a second.
const VOWEL_MS = 85
const CONSONANT_MS = 65

const LETTER_SOUNDS: ReadonlyMap<string, string> = new Map([
  ['c', 'k'],
  ['q', 'k'],
  ['x', 's'],
])

function letter(name: string): readonly Sound[] {
  if (isVowel(name)) return [vowel(name, VOWEL_MS)]
  return consonant(LETTER_SOUNDS.get(name) ?? name, CONSONANT_MS)
}

function isVowel(name: string): name is Vowel {
  return 'aeiou'.includes(name) && name.length === 1
}

/** Letters that form one sound. */
const PAIRS: ReadonlyMap<string, readonly Sound[]> = new Map<string, readonly Sound[]>([
  ...['sh', 'ch', 'th'].map((pair) => [pair, consonant(pair, 2 * CONSONANT_MS)] as const),
  ['ph', consonant('f', 2 * CONSONANT_MS)],
  ['ck', consonant('k', 2 * CONSONANT_MS)],
  ['wh', consonant('w', 2 * CONSONANT_MS)],
  ['ng', consonant('n', 2 * CONSONANT_MS)],
  ['ee', [vowel('i', 2 * VOWEL_MS)]],
  ['ea', [vowel('i', 2 * VOWEL_MS)]],
  ['oo', [vowel('u', 2 * VOWEL_MS)]],
  ['ou', [vowel('a', VOWEL_MS), vowel('u', VOWEL_MS)]],
])

/** Digits sound like the start of their English names. */
const DIGITS = ['ze', 'wa', 'tu', 'ri', 'fo', 'fa', 'si', 'se', 'ei', 'na']
const SYMBOL_MS = 40

function readCharacter(character: string): readonly Sound[] {
  const digit = DIGITS[/^\d$/.test(character) ? Number(character) : -1]
  if (digit !== undefined) return digit.split('').flatMap(letter)
  const base = character.normalize('NFD').charAt(0).toLowerCase()
  if (/^[a-z]$/.test(base)) return letter(base)
  if (/^\p{M}$/u.test(character)) return []
  return /^\p{L}$/u.test(character) ? anySyllable(character) : [rest(SYMBOL_MS)]
}

const SYLLABLE_CONSONANTS = ['k', 's', 't', 'n', 'm', 'r', 'd', 'b']
const VOWELS: readonly Vowel[] = ['a', 'i', 'u', 'e', 'o']

/** A letter of another script: a fixed syllable. */
function anySyllable(character: string): readonly Sound[] {
  const code = character.codePointAt(0) ?? 0
  return [
    ...consonant(SYLLABLE_CONSONANTS[code % SYLLABLE_CONSONANTS.length] ?? 'k', CONSONANT_MS),
    vowel(VOWELS[code % VOWELS.length] ?? 'a', VOWEL_MS),
  ]
}
