import type { BaseTool, LlmAgentConfig, LlmRequest, LlmResponse } from '@google/adk'
import { BaseLlm, FunctionTool, LlmAgent, setLogger } from '@google/adk'
import { z } from 'zod'

import { EmulatedGemini } from '../../../../test/support/emulated-gemini.ts'
import { defer } from '../../src/shared/async.ts'

export { defer, EmulatedGemini }

// ADK prints every failure that a test provokes.
setLogger(null)

/** An agent that follows the scripts of the emulator. */
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

export interface FloodOptions {
  readonly pieces: number
  /** The number of characters in a piece. */
  readonly length: number
  /** Ends the output early. */
  readonly enough?: () => boolean
  /** The model waits for this before it ends its reply. */
  readonly hold?: Promise<void>
  /** Whether all pieces arrive in the same turn of the event loop. */
  readonly atOnce?: true
}

/** A model that writes pieces of text as fast as the bridge reads them, and counts them. */
export class FloodModel extends BaseLlm {
  produced = 0
  readonly #options: FloodOptions
  readonly #aborted = defer()
  /** Resolves when the run has aborted the model. */
  readonly aborted = this.#aborted.promise

  constructor(options: FloodOptions) {
    super({ model: 'flood' })
    this.#options = options
  }

  override async *generateContentAsync(
    _request: LlmRequest,
    _stream?: boolean,
    signal?: AbortSignal,
  ): AsyncGenerator<LlmResponse, void> {
    const { pieces, length, enough = () => false, hold, atOnce = false } = this.#options
    const text = 'x'.repeat(length)
    signal?.addEventListener('abort', () => this.#aborted.resolve(), { once: true })
    for (; this.produced < pieces && !enough(); this.produced += 1) {
      if (signal?.aborted === true) return
      yield { content: { role: 'model', parts: [{ text }] }, partial: true }
      // Real models send pieces over a socket, so the process does other work between two pieces.
      if (!atOnce) await new Promise(setImmediate)
    }
    await Promise.race([hold, this.aborted])
    if (signal?.aborted === true) return
    yield { content: { role: 'model', parts: [{ text: '!' }] } }
  }

  /** Resolves when the started model has written nothing for many turns of the event loop. Returns the number of pieces so far. */
  async paused(): Promise<number> {
    let last = -1
    let quiet = 0
    while (quiet < QUIET_TURNS) {
      quiet = this.produced > 0 && this.produced === last ? quiet + 1 : 0
      last = this.produced
      await new Promise(setImmediate)
    }
    return last
  }

  override connect(): Promise<never> {
    return Promise.reject(new Error('not used'))
  }
}

const QUIET_TURNS = 2_000
