/** A segment of speech with constant articulation. */
export interface Sound {
  readonly ms: number
  /** Amplitude of the voiced source, 0 to 1. */
  readonly voice: number
  /** Amplitude of the noise source, 0 to 1, and its frequency in Hz. */
  readonly noise: number
  readonly hiss: number
  /** The three lowest formants in Hz. They determine the vowel. */
  readonly formants: Formants
}

export type Formants = readonly [first: number, second: number, third: number]

export type Vowel = 'a' | 'e' | 'i' | 'o' | 'u'

/** The sounds at one position of a text, and its length in UTF-16 units. */
export interface Utterance {
  readonly sounds: readonly Sound[]
  readonly length: number
}

/** Silence with neutral formants. */
export function rest(ms: number): Sound {
  return { ms, voice: 0, noise: 0, hiss: 1_000, formants: NEUTRAL }
}

/** An open vowel. */
export function vowel(name: Vowel, ms: number): Sound {
  return { ms, voice: 1, noise: 0, hiss: 1_000, formants: VOWELS[name] }
}

/** Returns a consonant of one or two segments that last `ms` in total. Returns an empty array for an unknown one. */
export function consonant(name: string, ms: number): Sound[] {
  const known = CONSONANTS.get(name)
  if (known === undefined) return []
  const { voice = 0, noise = 0, hiss = 1_000, formants = NEUTRAL, closed = 0 } = known
  const sound = { ms: ms * (1 - closed), voice, noise, hiss, formants }
  return closed === 0 ? [sound] : [{ ...rest(ms * closed), voice: voice * 0.3, formants }, sound]
}

const NEUTRAL: Formants = [500, 1_500, 2_500]

const VOWELS: Readonly<Record<Vowel, Formants>> = {
  a: [760, 1_300, 2_500],
  e: [520, 1_850, 2_550],
  i: [300, 2_250, 2_950],
  o: [480, 880, 2_450],
  u: [340, 1_150, 2_300],
}

interface Posture {
  readonly voice?: number
  readonly noise?: number
  readonly hiss?: number
  readonly formants?: Formants
  /** The fraction of silence before the burst. */
  readonly closed?: number
}

const CONSONANTS: ReadonlyMap<string, Posture> = new Map<string, Posture>([
  ['p', { noise: 0.35, hiss: 900, closed: 0.6 }],
  ['b', { noise: 0.15, hiss: 900, voice: 0.5, formants: [300, 900, 2_300], closed: 0.6 }],
  ['t', { noise: 0.5, hiss: 4_200, closed: 0.6 }],
  ['d', { noise: 0.2, hiss: 3_800, voice: 0.5, formants: [300, 1_700, 2_600], closed: 0.6 }],
  ['k', { noise: 0.45, hiss: 2_000, closed: 0.6 }],
  ['g', { noise: 0.2, hiss: 1_900, voice: 0.5, formants: [300, 1_900, 2_400], closed: 0.6 }],
  ['s', { noise: 0.45, hiss: 6_500 }],
  ['z', { noise: 0.3, hiss: 6_000, voice: 0.4, formants: [300, 1_700, 2_600] }],
  ['sh', { noise: 0.5, hiss: 3_200 }],
  ['j', { noise: 0.35, hiss: 3_000, voice: 0.4, formants: [300, 1_900, 2_600], closed: 0.3 }],
  ['ch', { noise: 0.5, hiss: 3_400, closed: 0.4 }],
  ['ts', { noise: 0.45, hiss: 5_800, closed: 0.4 }],
  ['f', { noise: 0.25, hiss: 4_500 }],
  ['v', { noise: 0.15, hiss: 4_200, voice: 0.5, formants: [300, 1_100, 2_400] }],
  ['th', { noise: 0.2, hiss: 5_200, voice: 0.2, formants: [300, 1_400, 2_600] }],
  ['h', { noise: 0.3, hiss: 1_600 }],
  ['m', { voice: 0.5, formants: [250, 1_100, 2_200] }],
  ['n', { voice: 0.5, formants: [250, 1_500, 2_500] }],
  ['l', { voice: 0.6, formants: [350, 1_100, 2_700] }],
  ['r', { voice: 0.6, formants: [380, 1_200, 1_700] }],
  ['w', { voice: 0.6, formants: [300, 650, 2_300] }],
  ['y', { voice: 0.6, formants: [280, 2_200, 2_950] }],
])
