export type Track = 1 | 2

/** A short looping piece: tempo and voices, in steps of an eighth note. */
export interface Loop {
  readonly beatsPerMinute: number
  readonly steps: number
  readonly voices: readonly Voice[]
}

export interface Voice {
  readonly wave: OscillatorType
  readonly gain: number
  /** How long a note sounds, in steps. */
  readonly length: number
  /** One entry per step: the MIDI number of a note, or a rest. */
  readonly notes: readonly (number | undefined)[]
}

/** Two loops: a calm one in C major and a lively one in A minor. */
export const LOOPS: Readonly<Record<Track, Loop>> = {
  1: {
    beatsPerMinute: 72,
    steps: 32,
    voices: [
      { wave: 'sine', gain: 0.5, length: 8, notes: sparse('48 - - - - - - - 45 - - - - - - -', 2) },
      {
        wave: 'triangle',
        gain: 0.3,
        length: 3,
        notes: score(
          '64 - 67 - 72 - 67 - 64 - 69 - 72 - 69 - 65 - 69 - 72 - 69 - 62 - 67 - 71 - 67 -',
        ),
      },
    ],
  },
  2: {
    beatsPerMinute: 132,
    steps: 32,
    voices: [
      {
        wave: 'triangle',
        gain: 0.5,
        length: 0.9,
        notes: score(
          '45 45 57 45 45 57 45 57 41 41 53 41 41 53 41 53 48 48 60 48 48 60 48 60 43 43 55 43 43 55 43 55',
        ),
      },
      {
        wave: 'square',
        gain: 0.12,
        length: 0.8,
        notes: score(
          '69 - 72 76 - 74 72 - 69 - 72 77 - 76 72 - 67 - 72 76 - 74 72 - 71 - 74 79 - 77 74 71',
        ),
      },
    ],
  },
}

function score(written: string): (number | undefined)[] {
  return written.split(' ').map((note) => (note === '-' ? undefined : Number(note)))
}

function sparse(written: string, times: number): (number | undefined)[] {
  return Array.from({ length: times }, () => score(written)).flat()
}
