import {
  FunctionTool,
  Gemini,
  InMemoryRunner,
  LiveRequestQueue,
  LlmAgent,
  LongRunningFunctionTool,
  LogLevel,
  setLogLevel,
  type BaseTool,
  type Event,
  type RunConfig,
} from '@google/adk'
import { Modality } from '@google/genai'
import { expect, test } from 'vitest'
import { z } from 'zod'

import {
  audio,
  call,
  connect,
  FLASH_LIVE,
  mindOf,
  NATIVE_AUDIO,
  say,
  silence,
  startLab,
  turnComplete,
  voice,
  wait,
  type Lab,
} from './live-lab.ts'

setLogLevel(LogLevel.ERROR)

/** ADK's own Gemini model, pointed at the lab by the hooks it offers. */
class LabGemini extends Gemini {
  readonly #baseUrl: string

  constructor(baseUrl: string, model: string) {
    super({ model, apiKey: 'key' })
    this.#baseUrl = baseUrl
  }

  protected override getLiveHttpOptions() {
    return { ...super.getLiveHttpOptions(), baseUrl: this.#baseUrl }
  }
}

interface LiveRunOptions {
  readonly model?: string
  readonly tools?: BaseTool[]
  readonly runConfig?: Partial<RunConfig>
  readonly handle?: string | undefined
}

/** One `runLive` of the real runner; disposing it closes the queue and waits for the end. */
async function runLive(lab: Lab, options: LiveRunOptions = {}) {
  const { model = NATIVE_AUDIO, tools = [], runConfig, handle } = options
  const agent = new LlmAgent({ name: 'assistant', model: new LabGemini(lab.baseUrl, model), tools })
  const runner = new InMemoryRunner({ agent, appName: 'lab' })
  const { id: sessionId } = await runner.sessionService.createSession({
    appName: 'lab',
    userId: 'u',
  })
  const queue = new LiveRequestQueue()
  const events = runner.runLive({
    userId: 'u',
    sessionId,
    liveRequestQueue: queue,
    runConfig: { responseModalities: [Modality.TEXT], ...runConfig },
    ...(handle && { liveSessionResumptionHandle: handle }),
  })
  return {
    queue,
    say: (text: string) => queue.sendContent({ role: 'user', parts: [{ text }] }),
    /** The events up to and with the first that matches. */
    async until(matches: (event: Event) => unknown) {
      const read: Event[] = []
      for (;;) {
        const { value, done } = await events.next()
        if (done) throw new Error(`runLive ended; read ${JSON.stringify(read)}`)
        read.push(value)
        if (matches(value)) return read
      }
    },
    async [Symbol.asyncDispose]() {
      queue.close()
      while (!(await events.next()).done);
    },
  }
}

const isTurnComplete = (event: Event) => event.turnComplete

function textOf(events: readonly Event[]): string {
  const whole = events.filter((event) => event.partial === false)
  return whole
    .flatMap((event) => event.content?.parts ?? [])
    .map((part) => part.text)
    .join('')
}

function lookTool(looked: unknown[]) {
  return new FunctionTool({
    name: 'look',
    description: 'Looks somewhere.',
    parameters: z.object({ at: z.string() }),
    execute: (input) => {
      looked.push(input)
      return { seen: 'a cat' }
    },
  })
}

test.each([NATIVE_AUDIO, FLASH_LIVE])('[EL54] ADK writes and reads with %s', async (model) => {
  await using lab = await startLab()
  await using run = await runLive(lab, { model })
  run.say('花子さん')
  expect(textOf(await run.until(isTurnComplete))).toBe('You said: 花子さん')
})

test.each([
  [NATIVE_AUDIO, 'by-model'],
  [FLASH_LIVE, 'by-model'],
  [FLASH_LIVE, true],
] as const)(
  '[EL54] ADK runs a tool with %s, toolTurnComplete %s',
  async (model, toolTurnComplete) => {
    const mind = mindOf({
      look: [call('look', { args: { at: 'the door' } })],
      '(look answered)': [say('I see a cat.')],
    })
    await using lab = await startLab({ mind, toolTurnComplete })
    const looked: unknown[] = []
    await using run = await runLive(lab, { model, tools: [lookTool(looked)] })
    run.say('look')
    const events = await run.until((event) => textOf([event]) === 'I see a cat.')
    expect(looked).toEqual([{ at: 'the door' }])
    const parts = events.flatMap((event) => event.content?.parts ?? [])
    expect(parts.find((part) => part.functionResponse)?.functionResponse).toMatchObject({
      id: 'look',
      response: { seen: 'a cat' },
    })
    const session = await lab.desk.nextSession()
    expect(session.setup?.tools?.[0]?.functionDeclarations?.[0]?.name).toBe('look')
    expect(session.pendingCalls).toEqual([])
  },
)

test('[EL55] ADK speaks and is spoken to', async () => {
  await using lab = await startLab()
  lab.desk.hear('Good morning.')
  await using run = await runLive(lab, {
    runConfig: {
      responseModalities: [Modality.AUDIO],
      inputAudioTranscription: {},
      outputAudioTranscription: {},
    },
  })
  run.queue.sendRealtime(audio(voice(400), silence(600)))
  const events = await run.until(isTurnComplete)
  const finals = events.filter((event) => !event.partial)
  expect(finals.flatMap((event) => event.inputTranscription ?? [])).toEqual([
    { text: 'Good morning.', finished: true },
  ])
  expect(finals.flatMap((event) => event.outputTranscription ?? [])).toEqual([
    { text: 'You said: Good morning.', finished: true },
  ])
  const sound = events.flatMap((event) => event.content?.parts?.[0]?.inlineData?.mimeType ?? [])
  expect(new Set(sound)).toEqual(new Set(['audio/pcm;rate=24000']))
  expect(
    events.find((event) => event.usageMetadata)?.usageMetadata?.totalTokenCount,
  ).toBeGreaterThan(0)
})

test('[EL55] ADK’s older models send mediaChunks, which are heard', async () => {
  await using lab = await startLab()
  await using run = await runLive(lab, { model: 'gemini-2.0-flash-live-001' })
  run.queue.sendRealtime(audio(voice(400), silence(600)))
  expect(textOf(await run.until(isTurnComplete))).toBe('You said: Hello.')
})

test('[EL55] ADK sees a barge-in as interrupted', async () => {
  const mind = mindOf({ story: [say('Once upon a time'), wait('never')] })
  await using lab = await startLab({ mind })
  await using run = await runLive(lab, { runConfig: { responseModalities: [Modality.AUDIO] } })
  run.say('story')
  await run.until((event) => event.content)
  run.queue.sendRealtime(audio(voice(200)))
  const events = await run.until(isTurnComplete)
  expect(events.some((event) => event.interrupted)).toBe(true)
})

test('[EL56] ADK takes a session up again with a handle', async () => {
  await using lab = await startLab()
  let handle: string | undefined
  {
    // ADK 2.0.0 asks for handles only when it has one already, so the first comes from the SDK.
    await using client = await connect(lab, { config: { sessionResumption: {} } })
    client.say('My name is Hanako.')
    await client.until(turnComplete)
    const messages = await client.until((message) => message.sessionResumptionUpdate)
    handle = messages.at(-1)?.sessionResumptionUpdate?.newHandle
  }
  await using run = await runLive(lab, { handle })
  const events = await run.until((event) => event.liveSessionResumptionUpdate)
  expect(events.at(-1)?.liveSessionResumptionUpdate?.newHandle).not.toBe(handle)
  run.say('Who am I?')
  await run.until(isTurnComplete)
  expect(lab.prompts.at(-1)?.contents[0]?.parts?.[0]?.text).toBe('My name is Hanako.')
})

test('[EL56] ADK reconnects on goAway and finds its call still open', async () => {
  const mind = mindOf({
    look: [call('look', { args: { at: 'x' } })],
    '(look answered)': [say('A cat.')],
  })
  await using lab = await startLab({ mind })
  let handle: string | undefined
  {
    await using client = await connect(lab, { config: { sessionResumption: {} } })
    handle = (await client.until((message) => message.sessionResumptionUpdate)).at(-1)
      ?.sessionResumptionUpdate?.newHandle
  }
  const gate = new LongRunningFunctionTool({
    name: 'look',
    description: 'Looks, some time.',
    parameters: z.object({ at: z.string() }),
    execute: () => undefined,
  })
  await using run = await runLive(lab, { model: FLASH_LIVE, handle, tools: [gate] })
  run.say('look')
  await run.until((event) => event.content?.parts?.[0]?.functionCall)
  await run.until((event) => event.liveSessionResumptionUpdate)
  const first = lab.desk.sessions[1]
  first?.goAway(60_000)
  await lab.desk.nextSession()
  await lab.desk.nextSession()
  const afterwards = lab.desk.nextSession()
  const answered = run.until((event) => textOf([event]) === 'A cat.')
  const second = await afterwards
  expect(second.pendingCalls.map(({ id }) => id)).toEqual(['look'])
  run.queue.sendContent({
    role: 'user',
    parts: [{ functionResponse: { id: 'look', name: 'look', response: { seen: 'a cat' } } }],
  })
  await answered
  await first?.ended
})
