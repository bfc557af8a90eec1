import type { Speech } from '../world.ts'
import { concatPcm } from './pcm.ts'
import { detectVoice, SILENCE, WINDOW_MS, type VoiceSettings } from './voice-detector.ts'

export type Hearing =
  | { readonly type: 'speech-start' }
  | { readonly type: 'speech-end'; readonly speech: Speech }

// Longer utterances are heard, but only their first minute is kept for transcription.
const MAX_KEPT_MS = 60_000

// Kept from before the detector made up its mind, so that the first sound of a word is not lost.
const LEAD_MS = 200

/** Turns a stream of audio into utterances. */
export interface Ear {
  listen(samples: Int16Array): readonly Hearing[]
  /** The microphone was closed: what is being said ends here. */
  flush(): readonly Hearing[]
}

/** An ear that finds speech by itself. */
export function createAutomaticEar(settings: VoiceSettings): Ear {
  const windowLength = Math.round((settings.sampleRate * WINDOW_MS) / 1000)
  const lead = createTape(settings.sampleRate, LEAD_MS)
  const tape = createTape(settings.sampleRate, MAX_KEPT_MS)
  let voice = SILENCE
  let rest = new Int16Array(0)

  const take = (window: Int16Array): Hearing | undefined => {
    const [next, change] = detectVoice(voice, window, settings)
    voice = next
    if (voice.state === 'quiet' && change === undefined) lead.slide(window)
    else tape.append(window)
    if (change === 'speech-start') {
      tape.prepend(lead.take())
      return { type: 'speech-start' }
    }
    return change && { type: 'speech-end', speech: toSpeech(tape.take(), settings.sampleRate) }
  }

  return {
    listen(samples) {
      const all = concatPcm([rest, samples])
      const hearings: Hearing[] = []
      let at = 0
      for (; at + windowLength <= all.length; at += windowLength) {
        const hearing = take(all.subarray(at, at + windowLength))
        if (hearing) hearings.push(hearing)
      }
      rest = all.slice(at)
      return hearings
    },
    flush() {
      rest = new Int16Array(0)
      const speaking = voice.state === 'speech'
      voice = { ...SILENCE, noise: voice.noise }
      lead.take()
      return speaking
        ? [{ type: 'speech-end', speech: toSpeech(tape.take(), settings.sampleRate) }]
        : []
    },
  }
}

/** An ear that is told by `activityStart` and `activityEnd` when to listen. */
export interface ManualEar extends Ear {
  open(): readonly Hearing[]
  setRate(sampleRate: number): void
}

export function createManualEar(): ManualEar {
  let sampleRate = 16_000
  const tape = createTape(sampleRate, MAX_KEPT_MS)
  let open = false
  return {
    setRate(rate) {
      sampleRate = rate
    },
    open() {
      if (open) return []
      open = true
      return [{ type: 'speech-start' }]
    },
    listen(samples) {
      if (open) tape.append(samples)
      return []
    },
    flush() {
      if (!open) return []
      open = false
      return [{ type: 'speech-end', speech: toSpeech(tape.take(), sampleRate) }]
    },
  }
}

function createTape(sampleRate: number, maxMs: number) {
  const capacity = (sampleRate * maxMs) / 1000
  let pieces: Int16Array[] = []
  let length = 0
  return {
    append(samples: Int16Array) {
      if (length >= capacity) return
      pieces.push(samples.slice(0, capacity - length))
      length += samples.length
    },
    prepend(samples: Int16Array) {
      pieces.unshift(samples)
      length += samples.length
    },
    /** Keeps the newest samples instead of the oldest. */
    slide(samples: Int16Array) {
      pieces.push(samples.slice())
      length += samples.length
      while (length > capacity) length -= pieces.shift()?.length ?? length
    },
    take() {
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
