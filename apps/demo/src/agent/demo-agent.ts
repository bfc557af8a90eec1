import { type BaseLlm, LlmAgent } from '@google/adk'

import { INSTRUCTION } from './instruction.ts'
import { createChangeBgm, createGetLocation } from './tools/browser-tools.ts'
import { createGetWeather } from './tools/get-weather.ts'
import { createProcessPayment } from './tools/process-payment.ts'
import type { Wallets } from './wallet/wallets.ts'
import type { Weather } from './weather/weather.ts'

export interface DemoAgentOptions {
  readonly model: BaseLlm
  readonly wallets: Wallets
  readonly weather: Weather
}

/** An assistant with four tools. Two run on the server and two in the browser; two need approval. */
export function createDemoAgent({ model, wallets, weather }: DemoAgentOptions): LlmAgent {
  return new LlmAgent({
    name: 'assistant',
    description: 'Tells the weather, sends money, finds the user and changes the music.',
    model,
    instruction: INSTRUCTION,
    tools: [
      createGetWeather(weather),
      createProcessPayment(wallets),
      createGetLocation(),
      createChangeBgm(),
    ],
    ...(canThink(model.model) && {
      generateContentConfig: { thinkingConfig: { includeThoughts: true } },
    }),
  })
}

/** Returns whether a model supports thinking. Models before 2.5 reject `includeThoughts`. */
export function canThink(model: string): boolean {
  return /^gemini-(2\.5|[3-9])/.test(model)
}
