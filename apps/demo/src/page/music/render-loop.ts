import type { Loop, Voice } from './loops.ts'

const ATTACK_SECONDS = 0.02

/** Renders a loop to audio once. The browser then repeats it without a gap or a timer. */
export function renderLoop(loop: Loop, sampleRate: number): Promise<AudioBuffer> {
  const stepSeconds = 30 / loop.beatsPerMinute
  const seconds = loop.steps * stepSeconds
  const context = new OfflineAudioContext(1, Math.round(seconds * sampleRate), sampleRate)
  for (const voice of loop.voices) playVoice(context, voice, stepSeconds)
  return context.startRendering()
}

function playVoice(context: OfflineAudioContext, voice: Voice, stepSeconds: number): void {
  for (const [step, note] of voice.notes.entries()) {
    if (note === undefined) continue
    const from = step * stepSeconds
    const until = from + voice.length * stepSeconds
    const oscillator = new OscillatorNode(context, {
      type: voice.wave,
      frequency: 440 * 2 ** ((note - 69) / 12),
    })
    const envelope = new GainNode(context, { gain: 0 })
    envelope.gain.setValueAtTime(0, from)
    envelope.gain.linearRampToValueAtTime(voice.gain, from + ATTACK_SECONDS)
    envelope.gain.linearRampToValueAtTime(0, until)
    oscillator.connect(envelope).connect(context.destination)
    oscillator.start(from)
    oscillator.stop(until)
  }
}
