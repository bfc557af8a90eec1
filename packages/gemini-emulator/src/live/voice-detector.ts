export interface VoiceSettings {
  readonly sampleRate: number
  /** Loud audio that counts as the beginning of speech. */
  readonly onsetMs: number
  /** Quiet audio that counts as its end. */
  readonly silenceMs: number
}

export type Voice = (
  | { readonly state: 'quiet'; readonly loudMs: number }
  | { readonly state: 'speech'; readonly quietMs: number }
) & {
  /** How loud it is when nobody speaks, as far as is known. */
  readonly noise: number
}

/** Before anything was heard. */
export const SILENCE: Voice = { state: 'quiet', loudMs: 0, noise: 0 }

export type VoiceChange = 'speech-start' | 'speech-end' | undefined

/** The detector looks at the audio in windows of this length. */
export const WINDOW_MS = 20

// About -36 dBFS: above the noise of a quiet room, below a calm voice at the microphone.
const LOUDNESS = 500
// A voice is so much louder than what is there without it.
const ABOVE_NOISE = 2.5
// The least noise of a room. From it, a fan that was turned on is known as noise after seconds; a voice has pauses that tell
// it from a fan.
const LEAST_NOISE = 150
const NOISE_RISE = 1.005

/**
 * Decides from one more window whether somebody began or ceased to speak. Time is counted in samples, never by a clock,
 * so the same audio always gives the same turns.
 */
export function detectVoice(
  voice: Voice,
  window: Int16Array,
  settings: VoiceSettings,
): [Voice, VoiceChange] {
  const loudness = measureLoudness(window)
  const noise = Math.max(LEAST_NOISE, Math.min(loudness, voice.noise * NOISE_RISE))
  const loud = loudness >= Math.max(LOUDNESS, noise * ABOVE_NOISE)
  if (voice.state === 'quiet') {
    const loudMs = loud ? voice.loudMs + WINDOW_MS : 0
    return loudMs >= settings.onsetMs
      ? [{ state: 'speech', quietMs: 0, noise }, 'speech-start']
      : [{ state: 'quiet', loudMs, noise }, undefined]
  }
  const quietMs = loud ? 0 : voice.quietMs + WINDOW_MS
  return quietMs >= settings.silenceMs
    ? [{ state: 'quiet', loudMs: 0, noise }, 'speech-end']
    : [{ state: 'speech', quietMs, noise }, undefined]
}

function measureLoudness(window: Int16Array): number {
  let sum = 0
  for (const sample of window) sum += sample * sample
  return Math.sqrt(sum / window.length)
}
