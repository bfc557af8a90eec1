import { Modality, type LiveServerMessage } from '@google/genai'
import { expect, test } from 'vitest'

import { planTurn } from '../src/live/plan-turn.ts'
import { synthesizeTone } from '../src/live/audio.ts'
import type { Action } from '../src/responders/responder.ts'
import {
  connect,
  kinds,
  replies,
  say,
  startLive,
  turnComplete,
  type Client,
  TURN_SETTINGS,
} from './support/live-server.ts'

/** 16 bit samples at 24 kHz. */
const OUTPUT_BYTES_PER_MS = 48
const AUDIO = { responseModalities: [Modality.AUDIO] }

function soundOf(messages: readonly LiveServerMessage[]) {
  return messages.flatMap((message) => {
    const data = message.serverContent?.modelTurn?.parts?.[0]?.inlineData
    return data ? [data] : []
  })
}

test('[EL16] a spoken turn is 24 kHz PCM in frames of at most 100 ms', async () => {
  await using server = await startLive({ respond: replies({ hi: [say('Good morning, Hanako.')] }) })
  await using client = await connect(server, { config: AUDIO })
  client.say('hi')
  const sound = soundOf(await client.until(turnComplete))
  expect(new Set(sound.map(({ mimeType }) => mimeType))).toEqual(new Set(['audio/pcm;rate=24000']))
  const lengthsMs = sound.map(
    ({ data = '' }) => Buffer.from(data, 'base64').length / OUTPUT_BYTES_PER_MS,
  )
  expect(Math.max(...lengthsMs)).toBeLessThanOrEqual(100)
  expect(Math.min(...lengthsMs.slice(0, -1))).toBeGreaterThanOrEqual(40)
  const samples = new Int16Array(
    Uint8Array.from(Buffer.concat(sound.map(({ data = '' }) => Buffer.from(data, 'base64'))))
      .buffer,
  )
  expect(samples.some((sample) => Math.abs(sample) > 1000)).toBe(true)
})

test('[EL16] the transcript follows the audio word by word', async () => {
  const sentence = 'The train to Kyoto leaves at nine from platform four.'
  await using server = await startLive({ respond: replies({ when: [say(sentence)] }) })
  await using client = await connect(server, { config: { ...AUDIO, outputAudioTranscription: {} } })
  client.say('when')
  const messages = await client.until(turnComplete)
  const words = messages.flatMap(
    (message) => message.serverContent?.outputTranscription?.text ?? [],
  )
  expect(words.join('')).toBe(sentence)
  expect(words).toHaveLength(10)
  // No word arrives before its audio, and the audio has not ended in the middle of the sentence.
  const order = kinds(messages).filter((kind) => kind.endsWith('Turn') || kind.endsWith('ption'))
  expect(order[0]).toBe('modelTurn')
  const half = order.indexOf('outputTranscription', order.length / 2)
  expect(order.slice(half).filter((kind) => kind === 'modelTurn').length).toBeGreaterThan(2)
  expect(order.slice(0, half).filter((kind) => kind === 'modelTurn').length).toBeGreaterThan(2)
})

test('[EL16] the transcript of a word follows the frame in which it starts', () => {
  const sounds = [1000, 2000, 1000, 0].map((length) => new Int16Array(length))
  const voiced = {
    ...TURN_SETTINGS,
    modality: 'AUDIO',
    transcribe: true,
    synthesize: () => sounds,
  } as const
  const action: Action = { type: 'say', text: 'a b c!', pieces: ['a ', 'b ', 'c', '!'] }
  const steps = planTurn([action], voiced)
  const order = [...steps].flatMap((step) =>
    step.type === 'content' ? (step.samples ?? step.part?.text ?? []) : [],
  )
  expect(order).toEqual([1920, 'a ', 'b ', 1920, 'c', 160, '!'])
})

const secondsOf = (samples: Int16Array | undefined) => (samples?.length ?? 0) / 24_000

test('[EL220] by default, letters are tones and everything else is silence', () => {
  const [word, pause, japanese] = synthesizeTone(['abc ', '... ', '東京'])
  expect(secondsOf(word)).toBeCloseTo(0.3)
  expect(secondsOf(japanese)).toBeCloseTo(0.26)
  expect(word?.some((sample) => Math.abs(sample) > 1000)).toBe(true)
  expect(word?.slice(-1800).every((sample) => sample === 0)).toBe(true)
  expect(pause?.every((sample) => sample === 0)).toBe(true)
  const [long, rest] = synthesizeTone(['a'.repeat(10_000), 'b'])
  expect([secondsOf(long), secondsOf(rest)]).toEqual([60, 0])
})

test('[EL220] `synthesize` replaces the tone', async () => {
  await using server = await startLive({
    core: { synthesize: (pieces) => pieces.map(() => new Int16Array(24).fill(7)) },
  })
  await using client = await connect(server, { config: AUDIO })
  client.say('hi')
  const sound = soundOf(await client.until(turnComplete))
  const bytes = Buffer.concat(sound.map(({ data = '' }) => Buffer.from(data, 'base64')))
  // Three words: "You said: hi".
  expect(bytes).toEqual(Buffer.from(new Int16Array(72).fill(7).buffer))
})

test('[EL16] without outputAudioTranscription there is audio only', async () => {
  await using server = await startLive()
  await using client = await connect(server, { config: AUDIO })
  client.say('hi')
  expect(kinds(await client.until(turnComplete))).not.toContain('outputTranscription')
  expect(server.live.sessions[0]?.history.at(-1)).toEqual({
    role: 'model',
    parts: [{ text: 'You said: hi' }],
  })
})

async function usageOf(client: Client) {
  client.say('hi')
  const { usageMetadata } = (await client.until(turnComplete)).at(-1) ?? {}
  if (!usageMetadata) throw new Error('the turn ended without usage')
  return usageMetadata
}

test('[EL17] usage counts text output as TEXT', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  const { responseTokensDetails = [], promptTokensDetails = [] } = await usageOf(client)
  expect(responseTokensDetails.map(({ modality }) => modality)).toEqual(['TEXT'])
  expect(promptTokensDetails.map(({ modality }) => modality)).toEqual(['TEXT'])
})

test('[EL17] usage counts spoken output as AUDIO', async () => {
  await using server = await startLive()
  await using client = await connect(server, { config: AUDIO })
  const usage = await usageOf(client)
  const { promptTokenCount = 0, responseTokenCount = 0, totalTokenCount } = usage
  expect(usage.responseTokensDetails).toEqual([
    { modality: 'AUDIO', tokenCount: responseTokenCount },
  ])
  expect(responseTokenCount).toBeGreaterThan(0)
  expect(totalTokenCount).toBe(promptTokenCount + responseTokenCount)
})

test('[EL20] with real-time playback a turn can be interrupted after its last audio was sent', async () => {
  await using server = await startLive({
    playback: 'real-time',
    respond: replies({ story: [say('A very long story. '.repeat(40))] }),
  })
  await using client = await connect(server, { config: AUDIO })
  client.say('story')
  await client.until((message) => message.serverContent?.generationComplete)
  const [session] = server.live.sessions
  expect(session?.speaking).toBe(true)
  session?.interrupt()
  expect(kinds(await client.until(turnComplete))).toEqual([
    'interrupted',
    'turnComplete',
    'usageMetadata',
  ])
})
