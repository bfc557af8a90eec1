import type { BaseTool, LlmAgentConfig, LlmRequest, LlmResponse } from '@google/adk'
import { BaseLlm, FunctionTool, Gemini, LlmAgent, setLogger } from '@google/adk'
import { z } from 'zod'

// ADK prints every failure that a test provokes.
setLogger(null)

/** ADK's own Gemini, pointed at an emulator. */
export class EmulatedGemini extends Gemini {
  readonly #baseUrl: string

  constructor(baseUrl: string, model = 'gemini-2.5-flash') {
    super({ model, apiKey: 'a key' })
    this.#baseUrl = baseUrl
  }

  protected override getHttpOptions() {
    return { ...super.getHttpOptions(), baseUrl: this.#baseUrl }
  }
}

/** An agent that does what the emulator's scripts tell it. */
export function assistant(model: BaseLlm, config: Partial<LlmAgentConfig> = {}): LlmAgent {
  return new LlmAgent({ name: 'assistant', model, instruction: 'Be brief.', ...config })
}

type Execute = ConstructorParameters<typeof FunctionTool>[0]['execute']

/** A tool of the given name that takes any arguments of text. */
export function tool(name: string, execute: Execute): BaseTool {
  return new FunctionTool({ name, description: `The tool ${name}.`, execute })
}

export const weather = new FunctionTool({
  name: 'get_weather',
  description: 'The weather at a place.',
  parameters: z.object({ place: z.string() }),
  execute: ({ place }) => ({ place, celsius: 18 }),
})

/** A promise with its ends outside. */
export function defer<T = void>(): {
  promise: Promise<T>
  resolve: (value: T) => void
} {
  let resolve: (value: T) => void = () => undefined
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

/** A model that talks without end and as fast as it is let; it counts what it said. */
export class FloodModel extends BaseLlm {
  produced = 0
  readonly #pieces: number
  readonly #piece: string
  readonly #aborted = defer()
  /** Resolves when the run has given the model up. */
  readonly aborted = this.#aborted.promise
  readonly #watchers = new Set<() => void>()

  constructor({ pieces, length }: { pieces: number; length: number }) {
    super({ model: 'flood' })
    this.#pieces = pieces
    this.#piece = 'x'.repeat(length)
  }

  override async *generateContentAsync(
    _request: LlmRequest,
    _stream?: boolean,
    signal?: AbortSignal,
  ): AsyncGenerator<LlmResponse, void> {
    signal?.addEventListener('abort', () => this.#aborted.resolve(), { once: true })
    for (let index = 0; index < this.#pieces && signal?.aborted !== true; index += 1) {
      this.produced += 1
      for (const watch of this.#watchers) watch()
      yield { content: { role: 'model', parts: [{ text: this.#piece }] }, partial: true }
      // A model's pieces come from a socket: between two of them the process does other things.
      await new Promise(setImmediate)
    }
    if (signal?.aborted !== true) yield { content: { role: 'model', parts: [{ text: 'end' }] } }
  }

  /** Resolves when the model has said so many pieces. */
  until(count: number): Promise<void> {
    return new Promise((resolve) => {
      const watch = (): void => {
        if (this.produced < count) return
        this.#watchers.delete(watch)
        resolve()
      }
      this.#watchers.add(watch)
      watch()
    })
  }

  override connect(): Promise<never> {
    return Promise.reject(new Error('not used'))
  }
}
