import { ActivityHandling, MediaModality, type LiveConnectConfig } from '@google/genai'
import { expect, test } from 'vitest'

import type { Speech } from '../src/emulator-core.ts'
import { concatPcm } from '../src/live/audio.ts'
import { createAutomaticSegmenter } from '../src/live/audio-input.ts'
import {
  audio,
  call,
  connect,
  INPUT_BYTES_PER_MS,
  INPUT_RATE,
  kinds,
  replies,
  say,
  silence,
  startLive,
  textOf,
  formatClose,
  turnComplete,
  voice,
  wait,
} from './support/live-server.ts'

const TRANSCRIBED: LiveConnectConfig = { inputAudioTranscription: {} }
const MANUAL: LiveConnectConfig = {
  ...TRANSCRIBED,
  realtimeInputConfig: { automaticActivityDetection: { disabled: true } },
}

test('[EL22] speech followed by silence is transcribed in pieces and gets a reply', async () => {
  await using server = await startLive()
  server.live.queueTranscript('How are you?')
  await using client = await connect(server, { config: TRANSCRIBED })
  client.session.sendRealtimeInput({ audio: audio(silence(200), voice(600), silence(600)) })
  const messages = await client.until(turnComplete)
  expect(
    messages.flatMap((message) => message.serverContent?.inputTranscription?.text ?? []),
  ).toEqual(['How ', 'are ', 'you?'])
  expect(textOf(messages)).toBe('You said: How are you?')
  expect(kinds(messages).lastIndexOf('inputTranscription')).toBeLessThan(
    kinds(messages).indexOf('modelTurn'),
  )
})

test('[EL22] a Japanese utterance is transcribed', async () => {
  await using server = await startLive()
  server.live.queueTranscript('東京の天気は?')
  await using client = await connect(server, { config: TRANSCRIBED })
  client.session.sendRealtimeInput({ audio: audio(voice(600), silence(600)) })
  expect(textOf(await client.until(turnComplete))).toBe('You said: 東京の天気は?')
})

test('[EL22] without inputAudioTranscription speech gets a reply but no transcript', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  client.session.sendRealtimeInput({ audio: audio(voice(600), silence(600)) })
  const messages = await client.until(turnComplete)
  expect(kinds(messages)).not.toContain('inputTranscription')
  expect(textOf(messages)).toBe('You said: Hello.')
})

test.each([1, 10, 37, 100, 1000])(
  '[EL23] time is counted in samples: frames of %d ms give the same utterances',
  async (frameMs) => {
    const speeches: Speech[] = []
    await using server = await startLive({
      core: {
        transcribe: (speech) => {
          speeches.push(speech)
          return `utterance ${speeches.length}`
        },
      },
    })
    await using client = await connect(server)
    const stream = Buffer.concat(
      // The pause of 400 ms is inside the first utterance, that of 600 ms between the two: 500 ms of it end the first,
      // and the rest precedes the second.
      [voice(300), silence(400), voice(300), silence(600), voice(500), silence(500)].map(
        (samples) => Buffer.from(samples.buffer),
      ),
    )
    const step = frameMs * INPUT_BYTES_PER_MS
    for (let at = 0; at < stream.length; at += step) {
      const data = stream.subarray(at, at + step).toString('base64')
      client.session.sendRealtimeInput({ audio: { mimeType: 'audio/pcm;rate=16000', data } })
    }
    await client.until((message) => textOf([message]) === '2')
    expect(speeches.map(({ pcm, sampleRate }) => pcm.length / 2 / sampleRate)).toEqual([1.5, 1.1])
  },
)

test('[EL23] the setup sets the silence that ends an utterance', async () => {
  await using server = await startLive()
  await using client = await connect(server, {
    config: { realtimeInputConfig: { automaticActivityDetection: { silenceDurationMs: 100 } } },
  })
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(100)) })
  expect(textOf(await client.until(turnComplete))).toBe('You said: Hello.')
})

test('[EL23] other sample rates are accepted', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  const { data } = audio(voice(1000), silence(1000))
  client.session.sendRealtimeInput({ audio: { mimeType: 'audio/pcm;rate=24000', data } })
  expect(textOf(await client.until(turnComplete))).toBe('You said: Hello.')
})

test('[EL24] a queued transcript is used first, then `transcribe`, then the default', async () => {
  await using server = await startLive({
    defaultTranscript: 'Default.',
    core: { transcribe: async () => 'Transcribed.' },
  })
  await using client = await connect(server)
  server.live.queueTranscript('Queued.')
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  expect(textOf(await client.until(turnComplete))).toBe('You said: Queued.')
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  expect(textOf(await client.until(turnComplete))).toBe('You said: Transcribed.')

  await using plain = await startLive({ defaultTranscript: 'Default.' })
  await using other = await connect(plain)
  other.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  expect(textOf(await other.until(turnComplete))).toBe('You said: Default.')
})

test('[EL24] an empty transcript is ignored as noise', async () => {
  await using server = await startLive({ core: { transcribe: () => '' } })
  await using client = await connect(server)
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  client.say('typed')
  expect(textOf(await client.until(turnComplete))).toBe('You said: typed')
  expect(server.prompts).toHaveLength(1)
})

test.each([
  ['rejects', () => Promise.reject(new Error('cannot transcribe'))],
  [
    'throws',
    () => {
      throw new Error('cannot transcribe')
    },
  ],
])('[EL24] if transcribe %s, the connection closes with 1011', async (_how, transcribe) => {
  await using server = await startLive({ core: { transcribe } })
  await using client = await connect(server)
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  expect(await client.closed).toEqual({ code: 1011, reason: 'cannot transcribe' })
})

test('[EL25] audioStreamEnd ends the utterance immediately', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  client.session.sendRealtimeInput({ audio: audio(voice(300)) })
  client.session.sendRealtimeInput({ audioStreamEnd: true })
  expect(textOf(await client.until(turnComplete))).toBe('You said: Hello.')
  client.session.sendRealtimeInput({ audioStreamEnd: true })
  client.say('still there?')
  await client.until(turnComplete)
  expect(server.prompts).toHaveLength(2)
})

test('[EL26] audio in media and mediaChunks is transcribed', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  client.session.sendRealtimeInput({ media: audio(voice(300), silence(600)) })
  await client.until(turnComplete)
  const session = await server.live.nextSession()
  expect(session.received.at(-1)).toMatchObject({ realtimeInput: { mediaChunks: [{}] } })
  expect(server.prompts).toHaveLength(1)
})

test('[EL26] images in mediaChunks are treated as video', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  client.session.sendRealtimeInput({ media: { mimeType: 'image/png', data: 'aW1n' } })
  client.session.sendRealtimeInput({ text: 'And?' })
  await client.until(turnComplete)
  expect(server.prompts[0]?.contents[0]?.parts?.[0]?.inlineData?.data).toBe('aW1n')
})

test('[EL27] audio that is not PCM closes the connection with 1007', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  client.session.sendRealtimeInput({ audio: { mimeType: 'audio/webm', data: 'AAAA' } })
  expect(formatClose(await client.closed)).toMatch(/^1007 .*audio\/webm/)
})

test('[EL28] with detection disabled, an utterance is the audio between the marks of the client', async () => {
  const speeches: Speech[] = []
  await using server = await startLive({
    core: {
      transcribe: (speech) => {
        speeches.push(speech)
        return 'Pressed to talk.'
      },
    },
  })
  await using client = await connect(server, { config: MANUAL })
  client.session.sendRealtimeInput({ audio: audio(voice(100), silence(900)) })
  client.session.sendRealtimeInput({ activityStart: {} })
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(900)) })
  client.session.sendRealtimeInput({ audio: audio(voice(100)) })
  client.session.sendRealtimeInput({ audioStreamEnd: true })
  client.session.sendRealtimeInput({ activityEnd: {} })
  client.session.sendRealtimeInput({ activityEnd: {} })
  expect(textOf(await client.until(turnComplete))).toBe('You said: Pressed to talk.')
  expect(speeches.map(({ pcm }) => pcm.length / INPUT_BYTES_PER_MS)).toEqual([1300])
  expect(server.prompts).toHaveLength(1)
})

test.each([{ activityStart: {} }, { activityEnd: {} }])(
  '[EL28] with detection enabled, %j closes the connection',
  async (input) => {
    await using server = await startLive()
    await using client = await connect(server)
    client.session.sendRealtimeInput(input)
    expect(await client.closed).toEqual({
      code: 1007,
      reason:
        'Explicit activity control is not supported when automatic activity detection is enabled.',
    })
  },
)

test('[EL29] the start of speech interrupts the model', async () => {
  const respond = replies({ story: [say('Once upon '), wait('never'), say('a time')] })
  await using server = await startLive({ respond })
  await using client = await connect(server)
  client.say('story')
  await client.until((message) => textOf([message]) === 'upon ')
  client.session.sendRealtimeInput({ audio: audio(voice(100)) })
  const messages = await client.until(turnComplete)
  expect(kinds(messages)).toEqual(['interrupted', 'turnComplete', 'usageMetadata'])
  server.live.queueTranscript('Wait.')
  client.session.sendRealtimeInput({ audio: audio(voice(100), silence(500)) })
  expect(textOf(await client.until(turnComplete))).toBe('You said: Wait.')
})

test('[EL29] activityStart interrupts the model', async () => {
  await using server = await startLive({
    respond: replies({ story: [say('Once'), wait('never')] }),
  })
  await using client = await connect(server, { config: MANUAL })
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once')
  client.session.sendRealtimeInput({ activityStart: {} })
  expect(kinds(await client.until(turnComplete))).toContain('interrupted')
})

test('[EL29] silence and short noise do not interrupt the model', async () => {
  const respond = replies({ story: [say('Once '), wait('on'), say('upon a time')] })
  await using server = await startLive({ respond })
  await using client = await connect(server)
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once ')
  client.session.sendRealtimeInput({ audio: audio(silence(300), voice(20), silence(300)) })
  client.session.sendRealtimeInput({ video: { mimeType: 'image/png', data: 'aW1n' } })
  await server.live.sessions[0]?.waitFor((frame) => JSON.stringify(frame).includes('image/png'))
  server.core.gates.release('on')
  const messages = await client.until(turnComplete)
  expect(textOf(messages)).toBe('upon a time')
  expect(kinds(messages)).not.toContain('interrupted')
})

test('[EL30] with NO_INTERRUPTION the model finishes its turn before it replies', async () => {
  const respond = replies({
    story: [say('Once '), wait('on'), say('upon a time')],
    pay: [call('pay')],
  })
  await using server = await startLive({ respond })
  await using client = await connect(server, {
    config: { realtimeInputConfig: { activityHandling: ActivityHandling.NO_INTERRUPTION } },
  })
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once ')
  server.live.queueTranscript('And then?')
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  await server.live.sessions[0]?.waitFor((frame) => 'realtimeInput' in frame)
  server.core.gates.release('on')
  expect(textOf(await client.until(turnComplete))).toBe('upon a time')
  expect(textOf(await client.until(turnComplete))).toBe('You said: And then?')
  client.say('pay')
  await client.until(turnComplete)
  client.session.sendRealtimeInput({ audio: audio(voice(300)) })
  client.session.sendRealtimeInput({ video: { mimeType: 'image/png', data: 'aW1n' } })
  await server.live.sessions[0]?.waitFor((frame) => JSON.stringify(frame).includes('image/png'))
  expect(server.live.sessions[0]?.pendingCalls).toHaveLength(1)
})

test('[EL17] input speech counts as audio tokens', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  client.session.sendRealtimeInput({ audio: audio(voice(1000), silence(1000)) })
  const usage = (await client.until(turnComplete)).at(-1)?.usageMetadata
  const audioTokens = usage?.promptTokensDetails?.find(
    ({ modality }) => modality === MediaModality.AUDIO,
  )
  // 1 s of speech and the 500 ms of silence that ended it, at 25 tokens a second.
  expect(audioTokens?.tokenCount).toBe(38)
})

/** Returns deterministic noise with a given level. */
function noise(seconds: number, loudness: number): Int16Array {
  let seed = 1
  return Int16Array.from({ length: INPUT_RATE * seconds }, () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    return (seed / 2 ** 31 - 1) * loudness * Math.sqrt(3)
  })
}

/** Returns five syllables per second with short gaps, over noise. */
function syllables(
  seconds: number,
  { loudness, noiseLevel }: { loudness: number; noiseLevel: number },
): Int16Array {
  return noise(seconds, noiseLevel).map((sample, at) => {
    const inSyllable = (at / INPUT_RATE) % 0.2 < 0.15
    const tone = inSyllable
      ? Math.sin((at / INPUT_RATE) * 2 * Math.PI * 180) * loudness * Math.SQRT2
      : 0
    return sample + tone
  })
}

/** Returns the events that the speech detection reports for each piece of audio. */
function detect(pieces: readonly Int16Array[]) {
  const segmenter = createAutomaticSegmenter({
    sampleRate: INPUT_RATE,
    onsetMs: 40,
    silenceMs: 500,
  })
  return pieces.map((piece) => segmenter.push(piece).map(({ type }) => type))
}

test('[EL58] continuous noise is classified as noise, and a voice above it is detected', () => {
  const [first, later, aboveNoise] = detect([
    noise(10, 1_000),
    noise(20, 1_000),
    concatPcm([syllables(2, { loudness: 6_000, noiseLevel: 1_000 }), noise(2, 1_000)]),
  ])
  // The noise level is unknown at first.
  expect(first).toEqual(['speech-start', 'speech-end'])
  expect(later).toEqual([])
  expect(aboveNoise).toEqual(['speech-start', 'speech-end'])
})

test('[EL58] a quiet room is silent, and a long sentence is one utterance', () => {
  const [room, sentence] = detect([
    noise(30, 150),
    concatPcm([syllables(20, { loudness: 2_500, noiseLevel: 150 }), noise(1, 150)]),
  ])
  expect(room).toEqual([])
  expect(sentence).toEqual(['speech-start', 'speech-end'])
})
