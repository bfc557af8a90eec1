/** Samples of a base64 string of signed 16-bit little-endian audio; a trailing half sample is dropped. */
export function decodePcm(base64: string): Int16Array {
  const bytes = Buffer.from(base64, 'base64')
  const samples = new Int16Array(bytes.length >> 1)
  for (let index = 0; index < samples.length; index++) samples[index] = bytes.readInt16LE(index * 2)
  return samples
}

export function encodePcm(samples: Int16Array): string {
  return Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength).toString('base64')
}

/** The rate in `audio/pcm;rate=16000`; 16000 if there is none, nothing if it is not PCM. */
export function readSampleRate(mimeType: string | undefined): number | undefined {
  if (mimeType === undefined) return 16_000
  if (!/^audio\/(pcm|l16)\b/i.test(mimeType)) return undefined
  return Number(/rate=(\d+)/.exec(mimeType)?.[1] ?? 16_000)
}

export function concatPcm(pieces: readonly Int16Array[]): Int16Array<ArrayBuffer> {
  const all = new Int16Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}
