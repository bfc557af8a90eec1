import {
  FunctionTool,
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

import { EmulatedGemini } from '../../../test/support/emulated-gemini.ts'
import {
  audio,
  call,
  connect,
  FLASH_LIVE,
  replies,
  NATIVE_AUDIO,
  say,
  silence,
  startLive,
  turnComplete,
  voice,
  wait,
  type LiveServer,
} from './support/live-server.ts'

setLogLevel(LogLevel.ERROR)

interface LiveAgentOptions {
  readonly model?: string
  readonly tools?: BaseTool[]
  readonly runConfig?: Partial<RunConfig>
  readonly handle?: string | undefined
}

/** Starts `runLive` of ADK's runner. Disposing it closes the queue and waits for its end. */
async function runLive(server: LiveServer, options: LiveAgentOptions = {}) {
  const { model = NATIVE_AUDIO, tools = [], runConfig, handle } = options
  const agent = new LlmAgent({
    name: 'assistant',
    model: new EmulatedGemini(server.baseUrl, model),
    tools,
  })
  const runner = new InMemoryRunner({ agent, appName: 'test' })
  const { id: sessionId } = await runner.sessionService.createSession({
    appName: 'test',
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
    /** Returns the events up to and including the first match. */
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

test.each([NATIVE_AUDIO, FLASH_LIVE])(
  '[EL54] ADK sends and receives text with %s',
  async (model) => {
    await using server = await startLive()
    await using run = await runLive(server, { model })
    run.say('花子さん')
    expect(textOf(await run.until(isTurnComplete))).toBe('You said: 花子さん')
  },
)

test.each([
  [NATIVE_AUDIO, 'by-model'],
  [FLASH_LIVE, 'by-model'],
  [FLASH_LIVE, true],
] as const)(
  '[EL54] ADK runs a tool with %s, toolTurnComplete %s',
  async (model, toolTurnComplete) => {
    const respond = replies({
      look: [call('look', { args: { at: 'the door' } })],
      '(look answered)': [say('I see a cat.')],
    })
    await using server = await startLive({ respond, toolTurnComplete })
    const looked: unknown[] = []
    await using run = await runLive(server, { model, tools: [lookTool(looked)] })
    run.say('look')
    const events = await run.until((event) => textOf([event]) === 'I see a cat.')
    expect(looked).toEqual([{ at: 'the door' }])
    const parts = events.flatMap((event) => event.content?.parts ?? [])
    expect(parts.find((part) => part.functionResponse)?.functionResponse).toMatchObject({
      id: 'look',
      response: { seen: 'a cat' },
    })
    const session = await server.live.nextSession()
    expect(session.setup?.tools?.[0]?.functionDeclarations?.[0]?.name).toBe('look')
    expect(session.pendingCalls).toEqual([])
  },
)

test('[EL55] ADK sends and receives audio', async () => {
  await using server = await startLive()
  server.live.queueTranscript('Good morning.')
  await using run = await runLive(server, {
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

test('[EL55] ADK’s older models send mediaChunks, which are transcribed', async () => {
  await using server = await startLive()
  await using run = await runLive(server, { model: 'gemini-2.0-flash-live-001' })
  run.queue.sendRealtime(audio(voice(400), silence(600)))
  expect(textOf(await run.until(isTurnComplete))).toBe('You said: Hello.')
})

test('[EL55] ADK reports a barge-in as `interrupted`', async () => {
  const respond = replies({ story: [say('Once upon a time'), wait('never')] })
  await using server = await startLive({ respond })
  await using run = await runLive(server, { runConfig: { responseModalities: [Modality.AUDIO] } })
  run.say('story')
  await run.until((event) => event.content)
  run.queue.sendRealtime(audio(voice(200)))
  const events = await run.until(isTurnComplete)
  expect(events.some((event) => event.interrupted)).toBe(true)
})

test('[EL56] ADK resumes a session with a handle', async () => {
  await using server = await startLive()
  let handle: string | undefined
  {
    // ADK 2.0.0 asks for handles only when it has one already, so the first comes from the SDK.
    await using client = await connect(server, { config: { sessionResumption: {} } })
    client.say('My name is Hanako.')
    await client.until(turnComplete)
    const messages = await client.until((message) => message.sessionResumptionUpdate)
    handle = messages.at(-1)?.sessionResumptionUpdate?.newHandle
  }
  await using run = await runLive(server, { handle })
  const events = await run.until((event) => event.liveSessionResumptionUpdate)
  expect(events.at(-1)?.liveSessionResumptionUpdate?.newHandle).not.toBe(handle)
  run.say('Who am I?')
  await run.until(isTurnComplete)
  expect(server.prompts.at(-1)?.contents[0]?.parts?.[0]?.text).toBe('My name is Hanako.')
})

test('[EL56] ADK reconnects after goAway and finds its call still pending', async () => {
  const respond = replies({
    look: [call('look', { args: { at: 'x' } })],
    '(look answered)': [say('A cat.')],
  })
  await using server = await startLive({ respond })
  let handle: string | undefined
  {
    await using client = await connect(server, { config: { sessionResumption: {} } })
    handle = (await client.until((message) => message.sessionResumptionUpdate)).at(-1)
      ?.sessionResumptionUpdate?.newHandle
  }
  // Its result arrives later.
  const look = new LongRunningFunctionTool({
    name: 'look',
    description: 'Looks somewhere.',
    parameters: z.object({ at: z.string() }),
    execute: () => undefined,
  })
  await using run = await runLive(server, { model: FLASH_LIVE, handle, tools: [look] })
  run.say('look')
  await run.until((event) => event.content?.parts?.[0]?.functionCall)
  await run.until((event) => event.liveSessionResumptionUpdate)
  const first = server.live.sessions[1]
  first?.goAway(60_000)
  // The connections of the SDK and of ADK so far.
  await server.live.nextSession()
  await server.live.nextSession()
  const reconnected = server.live.nextSession()
  const reply = run.until((event) => textOf([event]) === 'A cat.')
  const second = await reconnected
  expect(second.pendingCalls.map(({ id }) => id)).toEqual(['look'])
  run.queue.sendContent({
    role: 'user',
    parts: [{ functionResponse: { id: 'look', name: 'look', response: { seen: 'a cat' } } }],
  })
  await reply
  await first?.ended
})
