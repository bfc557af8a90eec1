import { ActivityHandling, MediaModality, type LiveConnectConfig } from '@google/genai'
import { expect, test } from 'vitest'

import type { Speech } from '../src/world.ts'
import {
  audio,
  call,
  connect,
  kinds,
  mindOf,
  say,
  silence,
  startLab,
  textOf,
  told,
  turnComplete,
  voice,
  wait,
} from './live-lab.ts'

const HEARD: LiveConnectConfig = { inputAudioTranscription: {} }
const MANUAL: LiveConnectConfig = {
  ...HEARD,
  realtimeInputConfig: { automaticActivityDetection: { disabled: true } },
}

test('[EL22] speech followed by silence is transcribed in pieces, then answered', async () => {
  await using lab = await startLab()
  lab.desk.hear('How are you?')
  await using client = await connect(lab, { config: HEARD })
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

test('[EL22] Japanese is heard too', async () => {
  await using lab = await startLab()
  lab.desk.hear('東京の天気は?')
  await using client = await connect(lab, { config: HEARD })
  client.session.sendRealtimeInput({ audio: audio(voice(600), silence(600)) })
  expect(textOf(await client.until(turnComplete))).toBe('You said: 東京の天気は?')
})

test('[EL22] without inputAudioTranscription nothing is transcribed, but it is answered', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  client.session.sendRealtimeInput({ audio: audio(voice(600), silence(600)) })
  const messages = await client.until(turnComplete)
  expect(kinds(messages)).not.toContain('inputTranscription')
  expect(textOf(messages)).toBe('You said: Hello.')
})

test.each([1, 10, 37, 100, 1000])(
  '[EL23] time is counted in samples: frames of %d ms give the same utterances',
  async (frameMs) => {
    const speeches: Speech[] = []
    await using lab = await startLab({
      world: {
        transcribe: (speech) => {
          speeches.push(speech)
          return `utterance ${speeches.length}`
        },
      },
    })
    await using client = await connect(lab)
    const stream = Buffer.concat(
      // The pause of 400 ms is within the first utterance, that of 600 ms between the two; 500 ms of it end the first,
      // and the rest leads into the second.
      [voice(300), silence(400), voice(300), silence(600), voice(500), silence(500)].map(
        (samples) => Buffer.from(samples.buffer),
      ),
    )
    const step = frameMs * 32
    for (let at = 0; at < stream.length; at += step) {
      const data = stream.subarray(at, at + step).toString('base64')
      client.session.sendRealtimeInput({ audio: { mimeType: 'audio/pcm;rate=16000', data } })
    }
    await client.until((message) => textOf([message]) === '2')
    expect(speeches.map(({ pcm, sampleRate }) => pcm.length / 2 / sampleRate)).toEqual([1.5, 1.1])
  },
)

test('[EL23] the setup decides how much silence ends an utterance', async () => {
  await using lab = await startLab()
  await using client = await connect(lab, {
    config: { realtimeInputConfig: { automaticActivityDetection: { silenceDurationMs: 100 } } },
  })
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(100)) })
  expect(textOf(await client.until(turnComplete))).toBe('You said: Hello.')
})

test('[EL23] other sample rates are understood', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  const { data } = audio(voice(1000), silence(1000))
  client.session.sendRealtimeInput({ audio: { mimeType: 'audio/pcm;rate=24000', data } })
  expect(textOf(await client.until(turnComplete))).toBe('You said: Hello.')
})

test('[EL24] hear() goes before transcribe, transcribe before the usual sentence', async () => {
  await using lab = await startLab({
    utterance: 'Usual.',
    world: { transcribe: async () => 'Transcribed.' },
  })
  await using client = await connect(lab)
  lab.desk.hear('Queued.')
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  expect(textOf(await client.until(turnComplete))).toBe('You said: Queued.')
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  expect(textOf(await client.until(turnComplete))).toBe('You said: Transcribed.')

  await using plain = await startLab({ utterance: 'Usual.' })
  await using other = await connect(plain)
  other.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  expect(textOf(await other.until(turnComplete))).toBe('You said: Usual.')
})

test('[EL24] what transcribes to nothing was noise and is not answered', async () => {
  await using lab = await startLab({ world: { transcribe: () => '' } })
  await using client = await connect(lab)
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  client.say('typed')
  expect(textOf(await client.until(turnComplete))).toBe('You said: typed')
  expect(lab.prompts).toHaveLength(1)
})

test.each([
  ['rejects', () => Promise.reject(new Error('no ears'))],
  [
    'throws',
    () => {
      throw new Error('no ears')
    },
  ],
])('[EL24] a transcriber that %s ends the connection with 1011', async (_how, transcribe) => {
  await using lab = await startLab({ world: { transcribe } })
  await using client = await connect(lab)
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  expect(await client.closed).toEqual({ code: 1011, reason: 'no ears' })
})

test('[EL25] audioStreamEnd ends the utterance at once', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  client.session.sendRealtimeInput({ audio: audio(voice(300)) })
  client.session.sendRealtimeInput({ audioStreamEnd: true })
  expect(textOf(await client.until(turnComplete))).toBe('You said: Hello.')
  client.session.sendRealtimeInput({ audioStreamEnd: true })
  client.say('still there?')
  await client.until(turnComplete)
  expect(lab.prompts).toHaveLength(2)
})

test('[EL26] audio in media and in the older mediaChunks is heard', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  client.session.sendRealtimeInput({ media: audio(voice(300), silence(600)) })
  await client.until(turnComplete)
  const session = await lab.desk.nextSession()
  expect(session.received.at(-1)).toMatchObject({ realtimeInput: { mediaChunks: [{}] } })
  expect(lab.prompts).toHaveLength(1)
})

test('[EL26] images in mediaChunks are seen', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  client.session.sendRealtimeInput({ media: { mimeType: 'image/png', data: 'aW1n' } })
  client.session.sendRealtimeInput({ text: 'And?' })
  await client.until(turnComplete)
  expect(lab.prompts[0]?.contents[0]?.parts?.[0]?.inlineData?.data).toBe('aW1n')
})

test('[EL27] audio that is not PCM closes the connection with 1007', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  client.session.sendRealtimeInput({ audio: { mimeType: 'audio/webm', data: 'AAAA' } })
  expect(told(await client.closed)).toMatch(/^1007 .*audio\/webm/)
})

test('[EL28] with detection disabled the client says when somebody speaks', async () => {
  const speeches: Speech[] = []
  await using lab = await startLab({
    world: {
      transcribe: (speech) => {
        speeches.push(speech)
        return 'Pressed to talk.'
      },
    },
  })
  await using client = await connect(lab, { config: MANUAL })
  client.session.sendRealtimeInput({ audio: audio(voice(100), silence(900)) })
  client.session.sendRealtimeInput({ activityStart: {} })
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(900)) })
  client.session.sendRealtimeInput({ audio: audio(voice(100)) })
  client.session.sendRealtimeInput({ audioStreamEnd: true })
  client.session.sendRealtimeInput({ activityEnd: {} })
  client.session.sendRealtimeInput({ activityEnd: {} })
  expect(textOf(await client.until(turnComplete))).toBe('You said: Pressed to talk.')
  expect(speeches.map(({ pcm }) => pcm.length / 32)).toEqual([1300])
  expect(lab.prompts).toHaveLength(1)
})

test.each([{ activityStart: {} }, { activityEnd: {} }])(
  '[EL28] with detection enabled, %j closes the connection',
  async (input) => {
    await using lab = await startLab()
    await using client = await connect(lab)
    client.session.sendRealtimeInput(input)
    expect(await client.closed).toEqual({
      code: 1007,
      reason:
        'Explicit activity control is not supported when automatic activity detection is enabled.',
    })
  },
)

test('[EL29] speech interrupts the model as soon as it begins', async () => {
  const mind = mindOf({ story: [say('Once upon '), wait('never'), say('a time')] })
  await using lab = await startLab({ mind })
  await using client = await connect(lab)
  client.say('story')
  await client.until((message) => textOf([message]) === 'upon ')
  client.session.sendRealtimeInput({ audio: audio(voice(100)) })
  const messages = await client.until(turnComplete)
  expect(kinds(messages)).toEqual(['interrupted', 'turnComplete', 'usageMetadata'])
  lab.desk.hear('Wait.')
  client.session.sendRealtimeInput({ audio: audio(voice(100), silence(500)) })
  expect(textOf(await client.until(turnComplete))).toBe('You said: Wait.')
})

test('[EL29] activityStart interrupts the model', async () => {
  await using lab = await startLab({ mind: mindOf({ story: [say('Once'), wait('never')] }) })
  await using client = await connect(lab, { config: MANUAL })
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once')
  client.session.sendRealtimeInput({ activityStart: {} })
  expect(kinds(await client.until(turnComplete))).toContain('interrupted')
})

test('[EL29] silence and short noise interrupt nothing', async () => {
  const mind = mindOf({ story: [say('Once '), wait('on'), say('upon a time')] })
  await using lab = await startLab({ mind })
  await using client = await connect(lab)
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once ')
  client.session.sendRealtimeInput({ audio: audio(silence(300), voice(20), silence(300)) })
  client.session.sendRealtimeInput({ video: { mimeType: 'image/png', data: 'aW1n' } })
  await lab.desk.sessions[0]?.waitFor((frame) => JSON.stringify(frame).includes('image/png'))
  lab.world.gates.release('on')
  const messages = await client.until(turnComplete)
  expect(textOf(messages)).toBe('upon a time')
  expect(kinds(messages)).not.toContain('interrupted')
})

test('[EL30] with NO_INTERRUPTION the model finishes first and answers then', async () => {
  const mind = mindOf({
    story: [say('Once '), wait('on'), say('upon a time')],
    pay: [call('pay')],
  })
  await using lab = await startLab({ mind })
  await using client = await connect(lab, {
    config: { realtimeInputConfig: { activityHandling: ActivityHandling.NO_INTERRUPTION } },
  })
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once ')
  lab.desk.hear('And then?')
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  await lab.desk.sessions[0]?.waitFor((frame) => 'realtimeInput' in frame)
  lab.world.gates.release('on')
  expect(textOf(await client.until(turnComplete))).toBe('upon a time')
  expect(textOf(await client.until(turnComplete))).toBe('You said: And then?')
  client.say('pay')
  await client.until(turnComplete)
  client.session.sendRealtimeInput({ audio: audio(voice(300)) })
  client.session.sendRealtimeInput({ video: { mimeType: 'image/png', data: 'aW1n' } })
  await lab.desk.sessions[0]?.waitFor((frame) => JSON.stringify(frame).includes('image/png'))
  expect(lab.desk.sessions[0]?.pendingCalls).toHaveLength(1)
})

test('[EL17] what was heard counts as audio tokens', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  client.session.sendRealtimeInput({ audio: audio(voice(1000), silence(1000)) })
  const usage = (await client.until(turnComplete)).at(-1)?.usageMetadata
  const heard = usage?.promptTokensDetails?.find(({ modality }) => modality === MediaModality.AUDIO)
  // 1 s of speech and the 500 ms of silence that ended it, at 25 tokens a second.
  expect(heard?.tokenCount).toBe(38)
})
