import type { Playback, Speaker, SpeakerOptions } from './audio-devices.ts'

/** The rate that the model speaks in. */
const SPOKEN_RATE = 24_000

interface Making {
  readonly workletUrl: string | URL
  readonly maxBufferedSeconds: number
}

/** Speakers for sound that is still coming. */
export async function openSpeaker(
  { onPlayback }: SpeakerOptions,
  { workletUrl, maxBufferedSeconds }: Making,
): Promise<Speaker> {
  // A context of the sound's own rate is resampled as a whole by the browser; pieces would be, each for itself, with clicks.
  const context = new AudioContext({ sampleRate: SPOKEN_RATE, latencyHint: 'interactive' })
  // It fails only where it is closed already.
  const close = (): void => void context.close().catch(() => undefined)
  try {
    await Promise.all([context.audioWorklet.addModule(workletUrl), context.resume()])
    const node = new AudioWorkletNode(context, 'adk-speaker', {
      numberOfInputs: 0,
      outputChannelCount: [1],
      processorOptions: { maxSamples: maxBufferedSeconds * SPOKEN_RATE },
    })
    node.port.onmessage = ({ data }: MessageEvent<Playback>) => onPlayback(data)
    node.connect(context.destination)
    return {
      play: (bytes) => {
        // A call on the phone, or a locked screen, leaves the context suspended.
        if (context.state !== 'running') context.resume().catch(() => undefined)
        // Others listen to the same bytes.
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
