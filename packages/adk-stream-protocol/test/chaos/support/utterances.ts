import type { Transcribe } from 'gemini-emulator'

/** The number of samples of a frame of 20 ms. */
const FRAME = 320
const LOUD = 8_000
/** Marks the start of a frame. Tones do not have this value. */
const MARK = 12_345

export const SILENT_FRAME = new Uint8Array(FRAME * 2)

/** What people say to the emulated model. The audio contains the number of its utterance and of its frame. */
export class Utterances {
  /** Frames that the model heard twice. */
  readonly repeated: string[] = []
  readonly #texts: string[] = []
  readonly #heard = new Set<string>()

  /** Returns the number of the utterance. */
  add(text: string): number {
    return this.#texts.push(text)
  }

  /** If the beginning of an utterance was lost, its transcript is not the text. */
  readonly transcribe: Transcribe = ({ pcm }) => {
    const frames = readFrames(pcm)
    for (const { utterance, index } of frames) {
      const frame = `frame ${index} of utterance ${utterance}`
      if (this.#heard.has(frame)) this.repeated.push(frame)
      this.#heard.add(frame)
    }
    const [first] = frames
    const text = this.#texts[(first?.utterance ?? 0) - 1] ?? 'Noise.'
    return first?.index === 0 ? text : `The rest of utterance ${first?.utterance}.`
  }
}

/** A frame of speech. */
export function toFrame(utterance: number, index: number): Uint8Array<ArrayBuffer> {
  const samples = Int16Array.from({ length: FRAME }, (_zero, at) => (at % 40 < 20 ? LOUD : -LOUD))
  samples.set([MARK, utterance, index])
  return new Uint8Array(samples.buffer)
}

function readFrames(pcm: Uint8Array): { readonly utterance: number; readonly index: number }[] {
  const samples = new Int16Array(pcm.slice().buffer)
  const frames: { utterance: number; index: number }[] = []
  for (const [at, sample] of samples.entries()) {
    const [utterance, index] = [samples[at + 1], samples[at + 2]]
    if (sample === MARK && utterance !== undefined && index !== undefined)
      frames.push({ utterance, index })
  }
  return frames
}
