import type {
  AudioDevices,
  Microphone,
  MicrophoneOptions,
  Playback,
  Speaker,
  SpeakerOptions,
} from './audio-devices.ts'
import { INPUT_RATE, PcmFrames, Resampler } from './resampler.ts'
import { AudioError } from './voice-problem.ts'

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
export interface MicrophoneChoice {
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
  { deviceId, onSound, onLost }: MicrophoneOptions,
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
  const close = (): void => {
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
  track.addEventListener('ended', onLost)
  return {
    deviceId: track.getSettings().deviceId,
    setMuted: (muted) => {
      // The browser and the operating system show that the microphone is off.
      track.enabled = !muted
    },
    close: () => {
      track.removeEventListener('ended', onLost)
      close()
    },
  }
}

function createMicrophoneNode(
  context: AudioContext,
  onSound: MicrophoneOptions['onSound'],
): AudioWorkletNode {
  const resampler = new Resampler(context.sampleRate, INPUT_RATE)
  const frames = new PcmFrames(onSound)
  const node = new AudioWorkletNode(context, 'adk-microphone', {
    channelCount: 1,
    channelCountMode: 'explicit',
    processorOptions: { frameSamples: Math.round(context.sampleRate / 50) },
  })
  node.port.onmessage = ({ data }: MessageEvent<Float32Array>) => frames.push(resampler.push(data))
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
  // This fails only if the context is closed already.
  const close = (): void => void context.close().catch(() => undefined)
  try {
    await Promise.all([context.audioWorklet.addModule(workletUrl), context.resume()])
    const node = new AudioWorkletNode(context, 'adk-speaker', {
      numberOfInputs: 0,
      outputChannelCount: [1],
      processorOptions: { maxSamples: maxBufferedSeconds * OUTPUT_RATE },
    })
    node.port.onmessage = ({ data }: MessageEvent<Playback>) => onPlayback(data)
    node.connect(context.destination)
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
