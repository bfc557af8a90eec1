import type { Blob } from '../wire/content.ts'
import type { Setup } from '../wire/live-messages.ts'
import { createAutomaticEar, createManualEar, type Ear, type Hearing } from './ear.ts'
import type { LiveSettings } from './live-options.ts'
import { decodePcm, readSampleRate } from './pcm.ts'
import { WINDOW_MS } from './voice-detector.ts'

/** The way from audio on the wire to utterances; a string is the reason why the client is refused. */
export interface Microphone {
  listen(blob: Blob): readonly Hearing[] | string
  start(): readonly Hearing[] | string
  end(): readonly Hearing[] | string
  flush(): readonly Hearing[]
}

const DETECTION_IS_ON =
  'Explicit activity control is not supported when automatic activity detection is enabled.'

// How much speech Gemini wants to hear before it believes it, unless the setup says otherwise.
const ONSET_MS = 2 * WINDOW_MS

export function createMicrophone(setup: Setup, settings: LiveSettings): Microphone {
  const detection = setup.realtimeInputConfig?.automaticActivityDetection
  return detection?.disabled
    ? createManualMicrophone()
    : createAutomaticMicrophone({
        onsetMs: detection?.prefixPaddingMs ?? ONSET_MS,
        silenceMs: detection?.silenceDurationMs ?? settings.silenceMs,
      })
}

function createAutomaticMicrophone(timing: { onsetMs: number; silenceMs: number }): Microphone {
  let rate = 0
  let ear: Ear | undefined
  return {
    listen(blob) {
      const sampleRate = readSampleRate(blob.mimeType)
      if (!sampleRate) return unsupported(blob)
      if (!ear || sampleRate !== rate) ear = createAutomaticEar({ ...timing, sampleRate })
      rate = sampleRate
      return ear.listen(decodePcm(blob.data ?? ''))
    },
    start: () => DETECTION_IS_ON,
    end: () => DETECTION_IS_ON,
    flush: () => ear?.flush() ?? [],
  }
}

function createManualMicrophone(): Microphone {
  const ear = createManualEar()
  return {
    listen(blob) {
      const sampleRate = readSampleRate(blob.mimeType)
      if (!sampleRate) return unsupported(blob)
      ear.setRate(sampleRate)
      return ear.listen(decodePcm(blob.data ?? ''))
    },
    start: () => ear.open(),
    end: () => ear.flush(),
    // The end of an activity is announced; the end of the stream says nothing more.
    flush: () => [],
  }
}

function unsupported(blob: Blob): string {
  return `Audio of type "${blob.mimeType}" is not supported. Send audio/pcm;rate=16000.`
}
