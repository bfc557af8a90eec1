/** Whether the user seems to speak, for display. The server detects speech for the model. */
export interface SpeechDetection {
  readonly speaking: boolean
  /** The number of consecutive frames that contradict `speaking`. */
  readonly against: number
  /** The level of the background noise. */
  readonly noise: number
}

export const SILENCE: SpeechDetection = { speaking: false, against: 0, noise: 0.002 }

// About −40 dBFS. Anything quieter is not speech, even in a silent room.
const QUIETEST_SPEECH = 0.01
const ABOVE_NOISE = 3
/** In frames of 20 ms. A click is shorter than the onset, a pause within a sentence shorter than the hangover. */
const ONSET = 3
const HANGOVER = 25
// The noise level falls at once and rises within seconds: speech has pauses, noise does not.
const RISE = 1.005

/** Takes the level of one more frame into account. */
export function detectSpeech(before: SpeechDetection, level: number): SpeechDetection {
  const noise = Math.min(Math.max(level, 0.0005), before.noise * RISE)
  const isLoud = level > Math.max(QUIETEST_SPEECH, noise * ABOVE_NOISE)
  if (isLoud === before.speaking) return { ...before, against: 0, noise }
  const against = before.against + 1
  const isChange = against >= (before.speaking ? HANGOVER : ONSET)
  return isChange
    ? { speaking: !before.speaking, against: 0, noise }
    : { speaking: before.speaking, against, noise }
}
