import { writeFile } from 'node:fs/promises'

export interface Tone {
  /** 0 is silence. */
  readonly hertz: number
  readonly ms: number
}

const RATE = 48_000

/** Returns one tone with short pauses, like syllables. Browsers remove a continuous tone as noise. */
export function syllables(hertz: number, ms: number): Tone[] {
  return Array.from({ length: Math.ceil(ms / 250) }, () => [
    { hertz, ms: 180 },
    { hertz: 0, ms: 70 },
  ]).flat()
}

/** Writes tones to a WAV file, which Chromium can use as the microphone. */
export async function writeWav(file: string, tones: readonly Tone[]): Promise<void> {
  const samples = Buffer.concat(tones.map(toSamples))
  const header = Buffer.alloc(44)
  header.write('RIFF', 0)
  header.writeUInt32LE(36 + samples.byteLength, 4)
  header.write('WAVEfmt ', 8)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(RATE, 24)
  header.writeUInt32LE(RATE * 2, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36)
  header.writeUInt32LE(samples.byteLength, 40)
  await writeFile(file, Buffer.concat([header, samples]))
}

function toSamples({ hertz, ms }: Tone): Uint8Array {
  const length = (RATE * ms) / 1000
  const samples = new Int16Array(length)
  if (hertz === 0) return new Uint8Array(samples.buffer)
  for (let at = 0; at < length; at += 1) {
    const envelope = Math.min(1, at / 480, (length - at) / 480)
    samples[at] = Math.round(12_000 * envelope * Math.sin((2 * Math.PI * hertz * at) / RATE))
  }
  return new Uint8Array(samples.buffer)
}

/** Returns the strongest frequency in 16 bit PCM at 16 kHz, and the level of its loudest 20 ms, from 0 to 1. */
export function measurePcm(pcm: Buffer): { hertz: number; level: number } {
  const all = new Int16Array(pcm.buffer.slice(pcm.byteOffset, pcm.byteOffset + pcm.length))
  const frames = Array.from({ length: Math.floor(all.length / FRAME) }, (_none, index) => {
    const samples = all.subarray(index * FRAME, (index + 1) * FRAME)
    const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / FRAME
    return { samples, level: Math.sqrt(power) / 32_768 }
  })
  const loudest = frames.toSorted((first, second) => second.level - first.level).slice(0, 25)
  const strength = (hertz: number): number =>
    loudest.reduce((sum, { samples }) => sum + powerAt(samples, hertz), 0)
  const tones = Array.from({ length: 195 }, (_none, index) => 50 + index * 10)
  const [best = { hertz: 0 }] = tones
    .map((hertz) => ({ hertz, power: strength(hertz) }))
    .toSorted((first, second) => second.power - first.power)
  return { hertz: best.hertz, level: loudest[0]?.level ?? 0 }
}

const FRAME = 320

function powerAt(samples: Int16Array, hertz: number): number {
  let [real, imaginary] = [0, 0]
  for (const [at, sample] of samples.entries()) {
    real += sample * Math.cos((2 * Math.PI * hertz * at) / 16_000)
    imaginary += sample * Math.sin((2 * Math.PI * hertz * at) / 16_000)
  }
  return real * real + imaginary * imaginary
}
