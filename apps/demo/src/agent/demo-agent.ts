import { type BaseLlm, LlmAgent } from '@google/adk'

import { INSTRUCTION } from './instruction.ts'
import { createChangeBgm, createGetLocation } from './tools/browser-tools.ts'
import { createGetWeather } from './tools/get-weather.ts'
import { createProcessPayment } from './tools/process-payment.ts'
import type { Wallets } from './wallet/wallets.ts'
import { createOpenWeather } from './weather/open-weather.ts'
import { sampleWeather } from './weather/sample-weather.ts'

export interface DemoAgentOptions {
  readonly model: BaseLlm
  readonly wallets: Wallets
  /** A key of OpenWeatherMap. Default: sample weather. */
  readonly weatherKey?: string | undefined
}

/** An assistant with four tools: two run on the server, two in the browser; two need a person's approval. */
export function createDemoAgent({ model, wallets, weatherKey }: DemoAgentOptions): LlmAgent {
  return new LlmAgent({
    name: 'assistant',
    description: 'Tells the weather, sends money, finds the user and changes the music.',
    model,
    instruction: INSTRUCTION,
    tools: [
      createGetWeather(weatherKey ? createOpenWeather({ apiKey: weatherKey }) : sampleWeather),
      createProcessPayment(wallets),
      createGetLocation(),
      createChangeBgm(),
    ],
    ...(thinks(model.model) && {
      generateContentConfig: { thinkingConfig: { includeThoughts: true } },
    }),
  })
}

/** Models before 2.5 refuse a request that asks for thoughts. */
function thinks(model: string): boolean {
  return /^gemini-(2\.5|[3-9])/.test(model)
}
