import { type BaseLlm, LlmAgent, requestInputTool } from '@google/adk'

import { createAccountant } from './accountant.ts'
import { INSTRUCTION } from './instruction.ts'
import { createChangeBgm, createGetLocation } from './tools/browser-tools.ts'
import { type CalendarOptions, createGetCalendar } from './tools/get-calendar.ts'
import { createGetWeather } from './tools/get-weather.ts'
import { createProcessPayment } from './tools/process-payment.ts'
import { createNotebook } from './notebook/notebook.ts'
import type { Wallets } from './wallet/wallets.ts'
import type { Weather } from './weather/weather.ts'

export interface DemoAgentOptions {
  readonly model: BaseLlm
  readonly wallets: Wallets
  readonly weather: Weather
  /** The file with the user's notes. */
  readonly notesFile: string
  /** Without it, the agent has no calendar. */
  readonly calendar?: CalendarOptions
}

/**
 * An assistant with four tools, of which two run in the browser and two need approval. It can also ask the user with a form, and let
 * an accountant pay, which is an agent used as a tool. It reads the user's calendar after
 * a sign-in, and lets another agent use an MCP server with notes.
 */
export function createDemoAgent(options: DemoAgentOptions): LlmAgent {
  const { model, wallets, weather, notesFile, calendar } = options
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
      ...(calendar ? [createGetCalendar(calendar)] : []),
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
