/** Whether somebody seems to speak into the microphone: for the page to show. The server decides for the model. */
export interface SpeechDetection {
  readonly speaking: boolean
  /** Frames in a row that speak against `speaking`. */
  readonly against: number
  /** How loud the room is. */
  readonly floor: number
}

export const SILENCE: SpeechDetection = { speaking: false, against: 0, floor: 0.002 }

// About −40 dBFS. No room is so quiet that less than this would be speech.
const QUIETEST_SPEECH = 0.01
const ABOVE_FLOOR = 3
/** In frames of 20 ms. A click is shorter than a syllable, and a pause within a sentence shorter than its end. */
const ONSET = 3
const HANGOVER = 25
// The floor follows a room that gets quieter at once, and one that gets louder within seconds: speech has pauses, noise has none.
const RISE = 1.005

/** One more frame, by its level. */
export function detectSpeech(before: SpeechDetection, level: number): SpeechDetection {
  const floor = Math.min(Math.max(level, 0.0005), before.floor * RISE)
  const isLoud = level > Math.max(QUIETEST_SPEECH, floor * ABOVE_FLOOR)
  if (isLoud === before.speaking) return { ...before, against: 0, floor }
  const against = before.against + 1
  const turns = against >= (before.speaking ? HANGOVER : ONSET)
  return turns
    ? { speaking: !before.speaking, against: 0, floor }
    : { speaking: before.speaking, against, floor }
}
