import type { AudioDevices } from './audio-devices.ts'
import { openMicrophone } from './open-microphone.ts'
import { openSpeaker } from './open-speaker.ts'
import { AudioError } from './voice-problem.ts'

/** How a browser's audio is used. */
export interface BrowserAudioOptions {
  /** Where `voice-worklet.js` of this package is served, for pages whose bundler does not follow `new URL(…, import.meta.url)`. */
  readonly workletUrl?: string | URL
  /** Sound that may wait to be played, in seconds; more is dropped. Default 300: 14 MB. */
  readonly maxBufferedSeconds?: number
}

/** The microphone and the speakers of the browser. */
export function browserAudio(options: BrowserAudioOptions = {}): AudioDevices {
  // Written out: bundlers look for exactly this.
  const workletUrl = options.workletUrl ?? new URL('./voice-worklet.js', import.meta.url)
  const { maxBufferedSeconds = 300 } = options
  return {
    openMicrophone: async (asked) => {
      checkPage()
      return openMicrophone(asked, workletUrl)
    },
    openSpeaker: async (asked) => {
      checkPage()
      return openSpeaker(asked, { workletUrl, maxBufferedSeconds })
    },
  }
}

/** A microphone that a person may choose. */
export interface MicrophoneChoice {
  readonly deviceId: string
  /** Empty until the person has allowed a microphone. */
  readonly label: string
}

/** The microphones to choose from. */
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
