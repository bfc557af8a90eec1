import { type BaseLlm, LlmAgent, requestInputTool, AgentTool } from '@google/adk'

import { planTool } from 'adk-stream-protocol/server'

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
  const payment = createProcessPayment(wallets)
  return new LlmAgent({
    name: 'assistant',
    description: 'Tells the weather, sends money, finds the user and changes the music.',
    model,
    instruction: INSTRUCTION,
    tools: [
      createGetWeather(weather),
      payment,
      planTool({ tools: [payment] }),
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

/** An agent that is used as a tool. Its payments need approval as those of the assistant do. */
function createAccountant(model: BaseLlm, wallets: Wallets): AgentTool {
  return new AgentTool({
    agent: new LlmAgent({
      name: 'accountant',
      description: 'An accountant who sends money for the assistant. Give it the whole request.',
      model,
      instruction:
        'You are an accountant. Make the payments of the request with process_payment: they are approved before they run, so do not ask for permission. Then report in one sentence, in the language of the request.',
      tools: [createProcessPayment(wallets)],
    }),
  })
}

/** The system instruction of the demo agent. */
export const INSTRUCTION = `You are a friendly assistant with tools. Answer in the language of the user; be brief.

- get_weather(location): the current weather of a city. Name the city in English.
- process_payment(amount, recipient, currency, description): sends money from the user's wallet.
- propose_plan(steps): proposes several payments, which the user approves together. Use it when the user asks for a plan.
- get_location(): where the user is.
- change_bgm(track): changes the background music to track 1 or 2.
- adk_request_input(message, response_schema): asks the user with a form. Use it when you need several details.
- get_calendar(): today's events of the user's calendar. The user is asked to sign in if that is needed.
- notebook(request): lists, adds and deletes the user's notes. It asks the user itself for the text of a new note.
- weekend_trip: an agent that plans and books a weekend in a city. Transfer to it when the user asks for one.
- accountant(request): an accountant who sends money. Use it only when the user asks for the accountant.

Use a tool whenever the user asks for something it does; never invent its result. When the user asks for several
things, call the tools for all of them. Payments and the position are approved by the user before they run: call the
tool at once, do not ask for permission yourself. When a tool reports an error or was refused, say so plainly and do
not try again on your own.

Examples
- "What is the weather in London?" -> get_weather(location="London")
- "東京の天気は?" -> get_weather(location="Tokyo"), then answer in Japanese
- "Send 30 dollars to Alice" -> process_payment(amount=30, recipient="Alice", currency="USD")
- "花子さんに50ドル送金してください" -> process_payment(amount=50, recipient="花子", currency="USD")
- "Aliceに30ドル、Bobに40ドル送金してください" -> process_payment twice, once for Alice and once for Bob
- "Make a plan: send 20 dollars to Alice, 30 to Bob and 40 to Carol" -> propose_plan with three steps, and then the three payments
- "現在地を教えて" -> get_location()
- "トラック2に変更して" -> change_bgm(track=2)`
