import {
  type Event,
  FunctionTool,
  InMemoryRunner,
  LlmAgent,
  LogLevel,
  setLogLevel,
  StreamingMode,
} from '@google/adk'
import { GoogleGenAI } from '@google/genai'
import { afterEach, expect, test, vi } from 'vitest'
import { z } from 'zod'

import { EmulatedGemini } from '../../../test/support/emulated-gemini.ts'
import { startEmulator } from '../src/index.ts'
import { MODEL } from './support/rest-client.ts'

setLogLevel(LogLevel.ERROR)

afterEach(() => {
  vi.unstubAllEnvs()
})

const weather = new FunctionTool({
  name: 'get_weather',
  description: 'The weather of a place.',
  parameters: z.object({ location: z.string() }),
  execute: ({ location }) => ({ location, sky: '晴れ' }),
})

/** Runs an agent with one tool, and returns its events. */
async function run(model: EmulatedGemini | string, text: string, signal?: AbortSignal) {
  const agent = new LlmAgent({ name: 'assistant', model, tools: [weather] })
  const runner = new InMemoryRunner({ agent, appName: 'test' })
  const session = await runner.sessionService.createSession({ appName: 'test', userId: 'u' })
  const events: Event[] = []
  for await (const event of runner.runAsync({
    userId: 'u',
    sessionId: session.id,
    newMessage: { role: 'user', parts: [{ text }] },
    runConfig: { streamingMode: StreamingMode.SSE },
    ...(signal && { abortSignal: signal }),
  })) {
    events.push(event)
  }
  return events
}

function partialText(events: readonly Event[]): string {
  return events
    .filter((event) => event.partial)
    .map((event) => event.content?.parts?.[0]?.text ?? '')
    .join('')
}

test.each([MODEL, 'gemini-3-pro-preview'])(
  '[EM56] ADK’s Runner streams text, runs tools and continues, with %s',
  async (model) => {
    await using emulator = await startEmulator()
    const events = await run(
      new EmulatedGemini(emulator.baseUrl, model),
      '[[say 調べます。]] [[call get_weather {"location": "東京"}]] [[call get_weather {"location": "大阪"}]] [[then]] [[say どちらも晴れです。]]',
    )
    expect(events.filter((event) => event.errorCode)).toEqual([])
    const responses = events.flatMap((event) =>
      (event.content?.parts ?? []).flatMap((part) => part.functionResponse?.response ?? []),
    )
    expect(responses).toEqual([
      { location: '東京', sky: '晴れ' },
      { location: '大阪', sky: '晴れ' },
    ])
    expect(partialText(events)).toBe('調べます。どちらも晴れです。')
    expect(events.filter((event) => event.partial).length).toBeGreaterThan(8)
    expect(emulator.requests.map((request) => request.method)).toEqual([
      'streamGenerateContent',
      'streamGenerateContent',
    ])
  },
)

test('[EM56] ADK’s Runner reports a quota and an error in an open stream as error events', async () => {
  await using emulator = await startEmulator()
  const quota = await run(new EmulatedGemini(emulator.baseUrl), '[[fail 429 retry=5 Slow down.]]')
  expect(quota.at(-1)?.errorCode).toBe('429')
  expect(quota.at(-1)?.errorMessage).toContain('Slow down.')
  const broken = await run(new EmulatedGemini(emulator.baseUrl), '[[say half a]] [[fail 503]]')
  expect(partialText(broken)).toBe('half a')
  expect(broken.some((event) => event.errorMessage?.includes('The model is overloaded'))).toBe(true)
})

test('[EM56] an aborted run stops the generation', async () => {
  await using emulator = await startEmulator()
  const controller = new AbortController()
  const running = run(
    new EmulatedGemini(emulator.baseUrl),
    '[[say one]] [[wait never]] [[say two]]',
    controller.signal,
  )
  const request = await emulator.nextRequest()
  controller.abort()
  await running
  await request.done
  expect(request.aborted).toBe(true)
})

test('[EM46] a script continues in the agent that it transfers to', async () => {
  await using emulator = await startEmulator()
  const model = new EmulatedGemini(emulator.baseUrl)
  const helper = new LlmAgent({ name: 'helper', description: 'Helps.', model })
  const agent = new LlmAgent({ name: 'root', model, subAgents: [helper] })
  const runner = new InMemoryRunner({ agent, appName: 'test' })
  const session = await runner.sessionService.createSession({ appName: 'test', userId: 'u' })
  const said: string[] = []
  for await (const event of runner.runAsync({
    userId: 'u',
    sessionId: session.id,
    newMessage: {
      role: 'user',
      parts: [
        {
          text: '[[call transfer_to_agent {"agentName": "helper"}]] [[then]] [[say I am the helper.]]',
        },
      ],
    },
  })) {
    for (const part of event.content?.parts ?? []) {
      if (part.text) said.push(`${event.author}: ${part.text}`)
    }
  }
  expect(said).toEqual(['helper: I am the helper.'])
  expect(emulator.requests).toHaveLength(2)
})

test('[EM57] GOOGLE_GEMINI_BASE_URL directs both clients to the emulator', async () => {
  await using emulator = await startEmulator()
  vi.stubEnv('GOOGLE_GEMINI_BASE_URL', emulator.baseUrl)
  vi.stubEnv('GOOGLE_API_KEY', 'any')
  const response = await new GoogleGenAI({}).models.generateContent({
    model: MODEL,
    contents: '[[say from genai]]',
  })
  expect(response.text).toBe('from genai')
  expect(partialText(await run(MODEL, '[[say from adk]]'))).toBe('from adk')
  expect(emulator.requests).toHaveLength(2)
})
