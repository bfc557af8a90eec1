import type { Speech } from '../emulator-core.ts'
import { concatPcm } from './audio.ts'

export type SpeechEvent =
  | { readonly type: 'speech-start' }
  | { readonly type: 'speech-end'; readonly speech: Speech }

/** Splits a stream of audio into utterances. */
export interface SpeechSegmenter {
  push(samples: Int16Array): readonly SpeechEvent[]
  /** Ends the current utterance, because the stream ended. */
  flush(): readonly SpeechEvent[]
}

/** Creates a segmenter that detects speech by its loudness. */
export function createAutomaticSegmenter(settings: VoiceSettings): SpeechSegmenter {
  const { sampleRate } = settings
  const windowLength = Math.round((sampleRate * WINDOW_MS) / 1000)
  const beforeSpeech = createSampleBuffer(sampleRate, LEAD_MS)
  const speech = createSampleBuffer(sampleRate, MAX_SPEECH_MS)
  let voice = NO_VOICE
  let rest = new Int16Array(0)

  const pushWindow = (window: Int16Array): SpeechEvent | undefined => {
    const [next, change] = detectVoice(voice, window, settings)
    voice = next
    if (voice.state === 'quiet' && change === undefined) beforeSpeech.pushLatest(window)
    else speech.push(window)
    if (change === 'speech-start') {
      speech.prepend(beforeSpeech.drain())
      return { type: 'speech-start' }
    }
    return change && { type: 'speech-end', speech: toSpeech(speech.drain(), sampleRate) }
  }

  return {
    push(samples) {
      const all = concatPcm([rest, samples])
      const events: SpeechEvent[] = []
      let at = 0
      for (; at + windowLength <= all.length; at += windowLength) {
        const event = pushWindow(all.subarray(at, at + windowLength))
        if (event) events.push(event)
      }
      rest = all.slice(at)
      return events
    },
    flush() {
      rest = new Int16Array(0)
      const isSpeaking = voice.state === 'speech'
      voice = { ...NO_VOICE, noise: voice.noise }
      beforeSpeech.drain()
      return isSpeaking
        ? [{ type: 'speech-end', speech: toSpeech(speech.drain(), sampleRate) }]
        : []
    },
  }
}

/** A segmenter for clients that mark their speech with `activityStart` and `activityEnd`. */
export interface ManualSegmenter extends SpeechSegmenter {
  start(): readonly SpeechEvent[]
  setRate(sampleRate: number): void
}

export function createManualSegmenter(): ManualSegmenter {
  let sampleRate = 16_000
  const speech = createSampleBuffer(sampleRate, MAX_SPEECH_MS)
  let isStarted = false
  return {
    setRate(rate) {
      sampleRate = rate
    },
    start() {
      if (isStarted) return []
      isStarted = true
      return [{ type: 'speech-start' }]
    },
    push(samples) {
      if (isStarted) speech.push(samples)
      return []
    },
    flush() {
      if (!isStarted) return []
      isStarted = false
      return [{ type: 'speech-end', speech: toSpeech(speech.drain(), sampleRate) }]
    },
  }
}

// Only the first minute of a longer utterance is kept for transcription.
const MAX_SPEECH_MS = 60_000

// Audio kept from before the detection, so that the start of the first word is not lost.
const LEAD_MS = 200

function createSampleBuffer(sampleRate: number, maxMs: number) {
  const capacity = (sampleRate * maxMs) / 1000
  let pieces: Int16Array[] = []
  let length = 0
  return {
    /** Drops the samples that do not fit. */
    push(samples: Int16Array) {
      if (length >= capacity) return
      pieces.push(samples.slice(0, capacity - length))
      length += samples.length
    },
    /** Drops the oldest samples instead. */
    pushLatest(samples: Int16Array) {
      pieces.push(samples.slice())
      length += samples.length
      while (length > capacity) length -= pieces.shift()?.length ?? length
    },
    prepend(samples: Int16Array) {
      pieces.unshift(samples)
      length += samples.length
    },
    drain() {
      const all = concatPcm(pieces)
      pieces = []
      length = 0
      return all
    },
  }
}

function toSpeech(samples: Int16Array, sampleRate: number): Speech {
  return { pcm: new Uint8Array(samples.buffer), sampleRate }
}

export interface VoiceSettings {
  readonly sampleRate: number
  /** The duration of loud audio that starts an utterance. */
  readonly onsetMs: number
  /** The duration of quiet audio that ends it. */
  readonly silenceMs: number
}

type VoiceState = (
  | { readonly state: 'quiet'; readonly loudMs: number }
  | { readonly state: 'speech'; readonly quietMs: number }
) & {
  /** The estimated loudness of the background noise. */
  readonly noise: number
}

const NO_VOICE: VoiceState = { state: 'quiet', loudMs: 0, noise: 0 }

/** The length of the windows that the detection examines. */
export const WINDOW_MS = 20

// About -36 dBFS: above the noise of a quiet room, below a calm voice at the microphone.
const MIN_LOUDNESS = 500
// A voice is at least this many times louder than the noise.
const VOICE_TO_NOISE = 2.5
// The minimum noise estimate. From here it rises to the level of a fan within seconds. Pauses in speech reset it.
const MIN_NOISE = 150
const NOISE_RISE = 1.005

/**
 * Examines the next window and reports whether speech started or ended. Counts time in samples instead of using a clock, so
 * that the same audio always gives the same utterances.
 */
function detectVoice(
  voice: VoiceState,
  window: Int16Array,
  settings: VoiceSettings,
): [VoiceState, SpeechEvent['type'] | undefined] {
  const loudness = measureLoudness(window)
  const noise = Math.max(MIN_NOISE, Math.min(loudness, voice.noise * NOISE_RISE))
  const isLoud = loudness >= Math.max(MIN_LOUDNESS, noise * VOICE_TO_NOISE)
  if (voice.state === 'quiet') {
    const loudMs = isLoud ? voice.loudMs + WINDOW_MS : 0
    return loudMs >= settings.onsetMs
      ? [{ state: 'speech', quietMs: 0, noise }, 'speech-start']
      : [{ state: 'quiet', loudMs, noise }, undefined]
  }
  const quietMs = isLoud ? 0 : voice.quietMs + WINDOW_MS
  return quietMs >= settings.silenceMs
    ? [{ state: 'quiet', loudMs: 0, noise }, 'speech-end']
    : [{ state: 'speech', quietMs, noise }, undefined]
}

function measureLoudness(window: Int16Array): number {
  let sum = 0
  for (const sample of window) sum += sample * sample
  return Math.sqrt(sum / window.length)
}
