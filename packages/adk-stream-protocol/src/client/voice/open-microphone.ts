import type { Microphone, MicrophoneOptions } from './audio-devices.ts'
import { PcmFrames } from './pcm-frames.ts'
import { HEARD_RATE, Resampler } from './resampler.ts'
import { AudioError } from './voice-problem.ts'

/** Asks the person for the microphone, and listens to it. */
export async function openMicrophone(
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
  // At the device's own rate: Firefox connects no stream to a context of another one.
  const context = new AudioContext({ latencyHint: 'interactive' })
  const close = (): void => {
    for (const each of stream.getTracks()) each.stop()
    // It fails only where it is closed already.
    context.close().catch(() => undefined)
  }
  try {
    await Promise.all([context.audioWorklet.addModule(workletUrl), context.resume()])
    const node = listen(context, onSound)
    context.createMediaStreamSource(stream).connect(node)
    // It may have been pulled out while the rest was made ready.
    if (track?.readyState !== 'live') throw new AudioError({ code: 'lost', what: 'microphone' })
  } catch (error) {
    close()
    throw error
  }
  track.addEventListener('ended', onLost)
  return {
    deviceId: track.getSettings().deviceId,
    setMuted: (muted) => {
      // The browser shows, and the system knows, that nothing is heard.
      track.enabled = !muted
    },
    close: () => {
      track.removeEventListener('ended', onLost)
      close()
    },
  }
}

function listen(context: AudioContext, onSound: MicrophoneOptions['onSound']): AudioWorkletNode {
  const resampler = new Resampler(context.sampleRate, HEARD_RATE)
  const frames = new PcmFrames(onSound)
  const node = new AudioWorkletNode(context, 'adk-microphone', {
    channelCount: 1,
    channelCountMode: 'explicit',
    processorOptions: { frameSamples: Math.round(context.sampleRate / 50) },
  })
  node.port.onmessage = ({ data }: MessageEvent<Float32Array>) => frames.push(resampler.push(data))
  // Silent; but what leads nowhere is not computed by every browser.
  node.connect(context.destination)
  return node
}
