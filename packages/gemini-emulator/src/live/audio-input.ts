import type { Blob } from '../wire/content.ts'
import type { Setup } from '../wire/live-messages.ts'
import { decodePcm, readSampleRate } from './audio.ts'
import type { LiveSettings } from './live-options.ts'
import {
  createAutomaticSegmenter,
  createManualSegmenter,
  WINDOW_MS,
  type SpeechEvent,
  type SpeechSegmenter,
} from './speech-segmenter.ts'

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

const DEFAULT_ONSET_MS = 2 * WINDOW_MS

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
