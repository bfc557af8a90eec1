import type { Speech } from '../emulator-core.ts'
import type { Blob } from '../wire/content.ts'
import type { Setup } from '../wire/live-messages.ts'
import { concatPcm, decodePcm, readSampleRate } from './audio.ts'
import type { LiveSettings } from './live-options.ts'

/** Reads the audio messages of a client. A string is the reason to close the connection. */
export interface AudioInput {
  push(blob: Blob): readonly SpeechEvent[] | string
  /** `activityStart` */
  start(): readonly SpeechEvent[] | string
  /** `activityEnd` */
  end(): readonly SpeechEvent[] | string
  /** `audioStreamEnd` */
  flush(): readonly SpeechEvent[]
}

export function createAudioInput(setup: Setup, settings: LiveSettings): AudioInput {
  const detection = setup.realtimeInputConfig?.automaticActivityDetection
  return detection?.disabled
    ? createManualInput()
    : createAutomaticInput({
        onsetMs: detection?.prefixPaddingMs ?? DEFAULT_ONSET_MS,
        silenceMs: detection?.silenceDurationMs ?? settings.silenceMs,
      })
}

const DETECTION_IS_ENABLED =
  'Explicit activity control is not supported when automatic activity detection is enabled.'

function createAutomaticInput(timing: { onsetMs: number; silenceMs: number }): AudioInput {
  let rate = 0
  let segmenter: SpeechSegmenter | undefined
  return {
    push(blob) {
      const sampleRate = readSampleRate(blob.mimeType)
      if (!sampleRate) return describeUnsupported(blob)
      if (!segmenter || sampleRate !== rate) {
        segmenter = createAutomaticSegmenter({ ...timing, sampleRate })
      }
      rate = sampleRate
      return segmenter.push(decodePcm(blob.data ?? ''))
    },
    start: () => DETECTION_IS_ENABLED,
    end: () => DETECTION_IS_ENABLED,
    flush: () => segmenter?.flush() ?? [],
  }
}

function createManualInput(): AudioInput {
  const segmenter = createManualSegmenter()
  return {
    push(blob) {
      const sampleRate = readSampleRate(blob.mimeType)
      if (!sampleRate) return describeUnsupported(blob)
      segmenter.setRate(sampleRate)
      return segmenter.push(decodePcm(blob.data ?? ''))
    },
    start: () => segmenter.start(),
    end: () => segmenter.flush(),
    // Only `activityEnd` ends an utterance.
    flush: () => [],
  }
}

function describeUnsupported(blob: Blob): string {
  return `Audio of type "${blob.mimeType}" is not supported. Send audio/pcm;rate=16000.`
}

export type SpeechEvent =
  | { readonly type: 'speech-start' }
  | { readonly type: 'speech-end'; readonly speech: Speech }

/** Splits a stream of audio into utterances. */
interface SpeechSegmenter {
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
interface ManualSegmenter extends SpeechSegmenter {
  start(): readonly SpeechEvent[]
  setRate(sampleRate: number): void
}

function createManualSegmenter(): ManualSegmenter {
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

interface VoiceSettings {
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
const WINDOW_MS = 20
const DEFAULT_ONSET_MS = 2 * WINDOW_MS

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
