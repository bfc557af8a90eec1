import { createResampler, cutFrames, INPUT_RATE } from './resampler.ts'

/** The microphone and the speaker that a `Voice` uses. `browserAudio()` returns those of the browser. */
export interface AudioDevices {
  /** Opens a microphone. Throws an error that `toProblem` can convert. */
  openMicrophone(options: MicrophoneOptions): Promise<Microphone>
  /** Must be called in a user gesture: without one, a page may not play audio. */
  openSpeaker(options: SpeakerOptions): Promise<Speaker>
}

/**
 * Options of `openMicrophone`.
 *
 * @inline
 */
export interface MicrophoneOptions {
  readonly deviceId?: string
  /** Called with 20 ms of audio (16 bit PCM at 16 kHz) and its level, from 0 to 1. */
  readonly onSound: (bytes: Uint8Array<ArrayBuffer>, level: number) => void
  /** Called when the microphone is unplugged or the permission is withdrawn. */
  readonly onLost: () => void
  /** Called when the system silences the microphone, as for a phone call or for another page, and when it is heard again. */
  readonly onSilenced?: (silenced: boolean) => void
}

/**
 * An open microphone.
 *
 * @inline
 */
export interface Microphone {
  readonly deviceId: string | undefined
  setMuted(muted: boolean): void
  close(): void
}

/**
 * Options of `openSpeaker`.
 *
 * @inline
 */
export interface SpeakerOptions {
  readonly onPlayback: (playback: Playback) => void
}

/** The state of the playback. Counts are samples at 24 kHz. */
export interface Playback {
  readonly playing: boolean
  /** The level, from 0 to 1. */
  readonly level: number
  readonly played: number
  /** Samples that wait to be played. */
  readonly buffered: number
  /** Samples that were never played: interrupted, or more than the buffer holds. */
  readonly dropped: number
  /** How often audio arrived too late. */
  readonly underruns: number
}

/**
 * Plays the model's speech.
 *
 * @inline
 */
export interface Speaker {
  /** 16 bit PCM at 24 kHz. */
  play(bytes: ArrayBuffer): void
  /** Stops at once and drops what is buffered. */
  drop(): void
  close(): void
}

/**
 * Options of `browserAudio`.
 *
 * @inline
 */
export interface BrowserAudioOptions {
  /** The URL of this package's `voice-worklet.js`, for bundlers that do not follow `new URL(…, import.meta.url)`. */
  readonly workletUrl?: string | URL
  /** The audio that may wait to be played, in seconds. More is dropped. Default 300, which is 14 MB. */
  readonly maxBufferedSeconds?: number
}

/** Returns the microphone and the speaker of the browser. */
export function browserAudio(options: BrowserAudioOptions = {}): AudioDevices {
  // Bundlers look for exactly this expression.
  const workletUrl = options.workletUrl ?? new URL('./voice-worklet.js', import.meta.url)
  const { maxBufferedSeconds = 300 } = options
  return {
    openMicrophone: async (wanted) => {
      checkPage()
      return openMicrophone(wanted, workletUrl)
    },
    openSpeaker: async (wanted) => {
      checkPage()
      return openSpeaker(wanted, { workletUrl, maxBufferedSeconds })
    },
  }
}

/** A microphone that the user can choose. */
interface MicrophoneChoice {
  readonly deviceId: string
  /** Empty until the user has allowed access to a microphone. */
  readonly label: string
}

/** Lists the microphones. */
export async function listMicrophones(): Promise<MicrophoneChoice[]> {
  checkPage()
  const devices = await navigator.mediaDevices.enumerateDevices()
  return devices
    .filter(({ kind }) => kind === 'audioinput')
    .map(({ deviceId, label }) => ({ deviceId, label }))
}

function checkPage(): void {
  if (!globalThis.isSecureContext) throw new AudioError({ code: 'insecure-page' })
  const { mediaDevices } = navigator as { mediaDevices?: MediaDevices }
  if (!mediaDevices || !('AudioWorkletNode' in globalThis))
    throw new AudioError({ code: 'unsupported' })
}

/** Requests access to a microphone and starts to read it. */
async function openMicrophone(
  { deviceId, onSound, onLost, onSilenced }: MicrophoneOptions,
  workletUrl: string | URL,
): Promise<Microphone> {
  const stream = await navigator.mediaDevices.getUserMedia({
    audio: {
      channelCount: 1,
      echoCancellation: true,
      noiseSuppression: true,
      autoGainControl: true,
      ...(deviceId !== undefined && { deviceId: { exact: deviceId } }),
    },
  })
  const track = stream.getAudioTracks().at(0)
  // At the device's sample rate: Firefox cannot connect a stream to a context with another rate.
  const context = new AudioContext({ latencyHint: 'interactive' })
  let stopResuming: (() => void) | undefined
  const close = (): void => {
    stopResuming?.()
    for (const each of stream.getTracks()) each.stop()
    // This fails only if the context is closed already.
    context.close().catch(() => undefined)
  }
  try {
    await Promise.all([context.audioWorklet.addModule(workletUrl), context.resume()])
    const node = createMicrophoneNode(context, onSound)
    context.createMediaStreamSource(stream).connect(node)
    // The microphone may have been unplugged meanwhile.
    if (track?.readyState !== 'live') throw new AudioError({ code: 'lost', what: 'microphone' })
  } catch (error) {
    close()
    throw error
  }
  const onMute = (): void => onSilenced?.(track.muted)
  track.addEventListener('ended', onLost)
  track.addEventListener('mute', onMute)
  track.addEventListener('unmute', onMute)
  stopResuming = keepRunning(context)
  return {
    deviceId: track.getSettings().deviceId,
    setMuted: (muted) => {
      // The browser and the operating system show that the microphone is off.
      track.enabled = !muted
    },
    close: () => {
      track.removeEventListener('ended', onLost)
      track.removeEventListener('mute', onMute)
      track.removeEventListener('unmute', onMute)
      close()
    },
  }
}

/** Resumes a context that a phone call or a locked screen suspends. Returns a function that ends this. */
function keepRunning(context: AudioContext): () => void {
  const resume = (): void => {
    if (context.state !== 'running' && context.state !== 'closed')
      context.resume().catch(() => undefined)
  }
  context.addEventListener('statechange', resume)
  // The browser may refuse to resume it while the page is hidden.
  document.addEventListener('visibilitychange', resume)
  return () => {
    context.removeEventListener('statechange', resume)
    document.removeEventListener('visibilitychange', resume)
  }
}

function createMicrophoneNode(
  context: AudioContext,
  onSound: MicrophoneOptions['onSound'],
): AudioWorkletNode {
  const resample = createResampler(context.sampleRate, INPUT_RATE)
  const pushFrames = cutFrames(onSound)
  const node = new AudioWorkletNode(context, 'adk-microphone', {
    channelCount: 1,
    channelCountMode: 'explicit',
    processorOptions: { frameSamples: Math.round(context.sampleRate / 50) },
  })
  node.port.onmessage = ({ data }: MessageEvent<Float32Array>) => pushFrames(resample(data))
  // The output is silent, but not every browser runs a node that is not connected.
  node.connect(context.destination)
  return node
}

/** The sample rate of the model's speech. */
const OUTPUT_RATE = 24_000

interface PlayerOptions {
  readonly workletUrl: string | URL
  readonly maxBufferedSeconds: number
}

/** Opens a speaker that plays audio while it arrives. */
async function openSpeaker(
  { onPlayback }: SpeakerOptions,
  { workletUrl, maxBufferedSeconds }: PlayerOptions,
): Promise<Speaker> {
  // The browser resamples the output of the context as a whole. If each piece were resampled by itself, there would be clicks.
  const context = new AudioContext({ sampleRate: OUTPUT_RATE, latencyHint: 'interactive' })
  let stopResuming: (() => void) | undefined
  const close = (): void => {
    stopResuming?.()
    // This fails only if the context is closed already.
    context.close().catch(() => undefined)
  }
  try {
    await Promise.all([context.audioWorklet.addModule(workletUrl), context.resume()])
    const node = new AudioWorkletNode(context, 'adk-speaker', {
      numberOfInputs: 0,
      outputChannelCount: [1],
      processorOptions: { maxSamples: maxBufferedSeconds * OUTPUT_RATE },
    })
    node.port.onmessage = ({ data }: MessageEvent<Playback>) => onPlayback(data)
    node.connect(context.destination)
    stopResuming = keepRunning(context)
    return {
      play: (bytes) => {
        // A phone call or a locked screen suspends the context.
        if (context.state !== 'running') context.resume().catch(() => undefined)
        // Copied: other listeners get the same bytes.
        const samples = new Int16Array(bytes.slice(0, bytes.byteLength & ~1))
        node.port.postMessage(samples, [samples.buffer])
      },
      drop: () => node.port.postMessage('drop', []),
      close,
    }
  } catch (error) {
    close()
    throw error
  }
}

/**
 * Why the voice does not work, so that a page can say what to do.
 *
 * @inline
 */
export type VoiceProblem =
  /** The user or the browser denied access to the microphone. */
  | { readonly code: 'permission-denied'; readonly cause?: unknown }
  | { readonly code: 'no-microphone'; readonly cause?: unknown }
  /** Another program uses the microphone. */
  | { readonly code: 'in-use'; readonly cause?: unknown }
  /** Browsers allow the microphone on HTTPS and localhost only. */
  | { readonly code: 'insecure-page' }
  /** The browser does not support it, or the worklet could not be loaded. */
  | { readonly code: 'unsupported'; readonly cause?: unknown }
  /** The voice of the chat was started in another tab, or on another device. */
  | { readonly code: 'taken-over' }
  /** The microphone was unplugged, or the connection did not come back. */
  | { readonly code: 'lost'; readonly what: 'microphone' | 'connection' }

/** An error of an audio device. */
class AudioError extends Error {
  override readonly name = 'AudioError'
  readonly problem: VoiceProblem

  constructor(problem: VoiceProblem) {
    super(
      `The voice is not available: ${problem.code}`,
      'cause' in problem ? { cause: problem.cause } : {},
    )
    this.problem = problem
  }
}

// The names of `getUserMedia`'s errors, in the specification and in browsers.
const CODES: Readonly<Record<string, 'permission-denied' | 'no-microphone' | 'in-use'>> = {
  NotAllowedError: 'permission-denied',
  SecurityError: 'permission-denied',
  NotFoundError: 'no-microphone',
  OverconstrainedError: 'no-microphone',
  NotReadableError: 'in-use',
  AbortError: 'in-use',
}

export function toProblem(error: unknown): VoiceProblem {
  if (error instanceof AudioError) return error.problem
  // `OverconstrainedError` is not an `Error` in every browser.
  const name = typeof error === 'object' && error !== null && 'name' in error ? error.name : ''
  return { code: CODES[String(name)] ?? 'unsupported', cause: error }
}
