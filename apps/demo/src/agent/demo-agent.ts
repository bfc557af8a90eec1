import { type BaseLlm, LlmAgent, requestInputTool } from '@google/adk'

import { createAccountant } from './accountant.ts'
import { INSTRUCTION } from './instruction.ts'
import { createChangeBgm, createGetLocation } from './tools/browser-tools.ts'
import { createGetCalendar } from './tools/get-calendar.ts'
import { createGetWeather } from './tools/get-weather.ts'
import { createProcessPayment } from './tools/process-payment.ts'
import { createNotebook } from './notebook/notebook.ts'
import { createTrip } from './trip.ts'
import type { Wallets } from './wallet/wallets.ts'
import type { Weather } from './weather/weather.ts'

export interface DemoAgentOptions {
  readonly model: BaseLlm
  readonly wallets: Wallets
  readonly weather: Weather
  /** The file with the user's notes. */
  readonly notesFile: string
  /** The URL of the calendar's API. Without it, the agent has no calendar. */
  readonly eventsUrl?: string | undefined
  /** The language of a user, for the texts of the tools. */
  readonly languageOf: (userId: string) => string
}

/**
 * An assistant with tools of every kind: some run in the browser, some need approval or a sign-in, one asks with a form, two are agents
 * with tools of their own, of which one has an MCP server. It transfers to an agent that works in steps.
 */
export function createDemoAgent(options: DemoAgentOptions): LlmAgent {
  const { model, wallets, weather, notesFile, eventsUrl, languageOf } = options
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
      requestInputTool,
      createAccountant(model, wallets),
      createNotebook(model, notesFile),
      ...(eventsUrl === undefined ? [] : [createGetCalendar({ eventsUrl, languageOf })]),
    ],
    subAgents: [createTrip(model, languageOf)],
    ...(canThink(model.model) && {
      generateContentConfig: { thinkingConfig: { includeThoughts: true } },
    }),
  })
}

/** Returns whether a model supports thinking. Models before 2.5 reject `includeThoughts`. */
export function canThink(model: string): boolean {
  return /^gemini-(2\.5|[3-9])/.test(model)
}
