import type { Playback } from '../../../src/client/voice/audio-devices.ts'

interface Processor {
  readonly port: Port
  process(inputs: Float32Array[][], outputs: Float32Array[][]): boolean
}

/** The port of a worklet, as the worklet sees it. */
class Port {
  onmessage: ((message: { data: unknown }) => void) | undefined
  readonly posted: { readonly message: unknown; readonly transferred: readonly unknown[] }[] = []

  postMessage(message: unknown, transferred: readonly unknown[] = []): void {
    this.posted.push({ message, transferred })
  }
}

type ProcessorClass = new (options: { processorOptions: object }) => Processor

const processors = new Map<string, ProcessorClass>()

/** A processor of the package's worklet, as the browser creates it. */
export async function openProcessor(name: string, processorOptions: object): Promise<Processor> {
  Object.assign(globalThis, {
    AudioWorkletProcessor: class {
      readonly port = new Port()
    },
    registerProcessor: (known: string, processor: ProcessorClass) =>
      processors.set(known, processor),
  })
  await import('../../../src/client/voice/voice-worklet.js')
  const found = processors.get(name)
  if (!found) throw new Error(`The worklet has no ${name}.`)
  return new found({ processorOptions })
}

/** The number of samples that a processor is called for. */
export const QUANTUM = 128

/** A speaker, and everything that it has played. */
export class SpeakerProbe {
  readonly heard: number[] = []
  readonly #processor: Processor

  static async open(maxSamples = 24_000 * 300): Promise<SpeakerProbe> {
    return new SpeakerProbe(await openProcessor('adk-speaker', { maxSamples }))
  }

  private constructor(processor: Processor) {
    this.#processor = processor
  }

  add(samples: Int16Array): void {
    this.#processor.port.onmessage?.({ data: samples })
  }

  drop(): void {
    this.#processor.port.onmessage?.({ data: 'drop' })
  }

  /** Lets time pass. Returns the samples that were played. */
  run(ms: number): number[] {
    const heard: number[] = []
    for (let passed = 0; passed < ms * 24; passed += QUANTUM) {
      const channel = new Float32Array(QUANTUM)
      this.#processor.process([], [[channel]])
      heard.push(...channel)
    }
    this.heard.push(...heard)
    return heard
  }

  get reports(): Playback[] {
    return this.#processor.port.posted.map(({ message }) => message as Playback)
  }

  /** The newest report. */
  get playback(): Playback | undefined {
    return this.reports.at(-1)
  }
}
