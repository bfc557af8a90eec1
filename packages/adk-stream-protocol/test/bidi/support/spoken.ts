const SAMPLES_PER_MS = 16

/** Half a second of a voice and a second of silence, in pieces of 100 ms, as a microphone gives them: base64 of 16 kHz PCM. */
export function spoken(): string[] {
  return Array.from({ length: 15 }, (_piece, index) => piece(index < 5 ? 8_000 : 0))
}

function piece(loudness: number): string {
  const samples = new Int16Array(100 * SAMPLES_PER_MS)
  for (const index of samples.keys()) samples[index] = Math.sin(index / 8) * loudness
  return Buffer.from(samples.buffer).toString('base64')
}
