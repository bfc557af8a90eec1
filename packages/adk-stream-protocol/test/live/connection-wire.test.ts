import { Modality, type Content } from '@google/genai'
import { startEmulator } from 'gemini-emulator'
import { expect, test } from 'vitest'

import { AUDIO_END } from '../../src/modules/live/gemini/reconnecting-model.ts'
import { describeHistory } from '../../src/modules/live/gemini/replay-buffer.ts'
import { takesNonBlockingCalls } from '../../src/modules/live/gemini/live-models.ts'
import {
  allClosed,
  FLASH_LIVE,
  isTurnComplete,
  memoryOf,
  NATIVE_AUDIO,
  openSockets,
  runReconnecting,
  textOf,
} from './support/reconnecting-run.ts'

const SILENCE = { mimeType: 'audio/pcm;rate=16000', data: Buffer.alloc(3200).toString('base64') }
const VOICE = {
  mimeType: 'audio/pcm;rate=16000',
  data: Buffer.from(
    new Int16Array(6400).map((_, index) => Math.sin(index / 5) * 8000).buffer,
  ).toString('base64'),
}
const DOT = { mimeType: 'image/png', data: 'iVBORw0KGgo=' }

test('[LC16] frames that are not messages are reported, and the run continues', async () => {
  await using emulator = await startEmulator()
  await using run = await runReconnecting(emulator)
  const session = await emulator.live.nextSession()
  const odd = ['{"half":', 'null', '[]', '"text"', '\u0000\uFFFF', '']
  for (const text of odd) session.sendText(text)
  session.send({ serverContent: { modelTurn: { parts: 'not a list' } } })
  session.send({ serverContent: { modelTurn: { parts: [null] } } })
  session.send({ toolCall: { functionCalls: [null] } })
  session.send({ somethingNew: { from: 'the future' } })
  run.say('[[say Still here.]]')
  expect(textOf(await run.until(isTurnComplete))).toBe('Still here.')
  expect(run.reported.errors).toHaveLength(odd.length + 3)
  expect(run.reported.errors[0]).toMatchObject({
    name: 'LiveConnectionError',
    code: 'invalid-frame',
  })
})

const HISTORY: Content[] = [
  { role: 'user', parts: [{ text: 'What is the weather?' }] },
  { role: 'model', parts: [{ functionCall: { id: 'w', name: 'look', args: { at: 'Tokyo' } } }] },
  {
    role: 'user',
    parts: [{ functionResponse: { id: 'w', name: 'look', response: { sky: 'clear' } } }],
  },
  { role: 'model', parts: [{ text: 'Clear.' }] },
  { role: 'user', parts: [{ text: 'And tomorrow?' }] },
]

test.each([NATIVE_AUDIO, FLASH_LIVE])(
  '[LC17] the model knows the history with its calls, and does not reply to it (%s)',
  async (model) => {
    await using emulator = await startEmulator()
    await using run = await runReconnecting(emulator, { model, history: HISTORY })
    const session = await emulator.live.nextSession()
    await session.waitFor((frame) => 'clientContent' in frame)
    expect(memoryOf(session)).toEqual([
      'user: What is the weather?',
      'model: [called look({"at":"Tokyo"})]',
      'user: [look returned {"sky":"clear"}]',
      'model: Clear.',
      'user: And tomorrow?',
    ])
    expect(session.speaking).toBe(false)
    run.say('[[say Rain.]]')
    expect(textOf(await run.until(isTurnComplete))).toBe('Rain.')
  },
)

test('[LC17] the history also reaches a second connection if no handle covers it yet', async () => {
  await using emulator = await startEmulator()
  await using run = await runReconnecting(emulator, { history: HISTORY })
  const first = await emulator.live.nextSession()
  await first.waitFor((frame) => 'clientContent' in frame)
  first.drop()
  run.say('[[say Rain.]]')
  expect(textOf(await run.until(isTurnComplete))).toBe('Rain.')
  const second = await emulator.live.nextSession()
  expect(memoryOf(second)).toHaveLength(HISTORY.length + 2)
})

test('[LC17] the history omits thoughts, names media, and drops the oldest parts if it is too long', () => {
  const described = describeHistory([
    { role: 'model', parts: [{ text: 'hm', thought: true }] },
    { role: 'user', parts: [{ inlineData: DOT }, { text: 'What is this?' }] },
    { role: 'model', parts: [{ executableCode: {} }] },
  ])
  expect(described).toEqual([
    { role: 'user', parts: [{ text: '[sent image/png]\nWhat is this?' }] },
  ])
  const long = Array.from({ length: 9 }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'model',
    parts: [{ text: `${index}`.repeat(100) }],
  }))
  const cut = describeHistory(long, 250)
  expect(cut.map(({ parts }) => parts?.[0]?.text?.slice(0, 8))).toEqual([
    '[Earlier',
    '77777777',
    '88888888',
  ])
  // A second truncation does not repeat the note.
  expect(describeHistory(cut, 1000)).toEqual(cut)
  expect(describeHistory([{ role: 'user', parts: [{ text: 'x'.repeat(500) }] }], 100)).toHaveLength(
    2,
  )
  expect(describeHistory([])).toEqual([])
})

test('[LC18] closing the queue closes the socket', async () => {
  await using emulator = await startEmulator()
  {
    await using run = await runReconnecting(emulator)
    await emulator.live.nextSession()
    run.say('[[say Bye.]]')
    await run.until(isTurnComplete)
  }
  await allClosed(emulator)
  expect(openSockets(emulator)).toBe(0)
})

test('[LC18] a reader that stops closes the socket', async () => {
  await using emulator = await startEmulator()
  const run = await runReconnecting(emulator, { unread: true })
  run.say('[[say One two three four.]] [[wait never]]')
  await run.events.next()
  await run.events.return(undefined)
  await allClosed(emulator)
  expect(run.reported.statuses.at(-1)).toBe('closed')
  run.queue.close()
})

test('[LC18] an abort closes the socket, also between two connections', async () => {
  await using emulator = await startEmulator()
  const life = new AbortController()
  await using run = await runReconnecting(emulator, { signal: life.signal, retryDelayMs: 60_000 })
  const first = await emulator.live.nextSession()
  first.drop()
  const second = await emulator.live.nextSession()
  // The second attempt failed, so the third would start after a minute.
  second.drop()
  while (run.reported.errors.length < 2) await new Promise(setImmediate)
  life.abort()
  expect(await run.ended).toBeUndefined()
  expect(run.reported.statuses.at(-1)).toBe('closed')
  await allClosed(emulator)
})

test.each([
  [NATIVE_AUDIO, 'audio'],
  [FLASH_LIVE, 'audio'],
  ['gemini-3.8-live', 'audio'],
  ['gemini-2.0-flash-live-001', 'mediaChunks'],
])('[LC19] %s receives audio as %s', async (model, field) => {
  await using emulator = await startEmulator()
  await using run = await runReconnecting(emulator, { model })
  run.queue.sendRealtime(SILENCE)
  const session = await emulator.live.nextSession()
  const frame = await session.waitFor((each) => 'realtimeInput' in each)
  expect(Object.keys(frame['realtimeInput'] ?? {})).toEqual([field])
})

test('[LC19] an image with text reaches a model that takes no content', async () => {
  await using emulator = await startEmulator()
  await using run = await runReconnecting(emulator, { model: FLASH_LIVE })
  run.queue.sendContent({
    role: 'user',
    parts: [{ inlineData: DOT }, { text: '[[say A dot.]]' }],
  })
  expect(textOf(await run.until(isTurnComplete))).toBe('A dot.')
  const session = await emulator.live.nextSession()
  expect(session.history[0]?.parts).toHaveLength(2)
  expect(session.received.some((frame) => 'clientContent' in frame)).toBe(false)
})

test('[LC19] muting the microphone ends the utterance', async () => {
  await using emulator = await startEmulator({ live: { defaultTranscript: '[[say I heard.]]' } })
  await using run = await runReconnecting(emulator)
  // Sent at once: the end must not overtake the audio.
  run.queue.sendRealtime(VOICE)
  run.queue.sendRealtime(AUDIO_END)
  expect(textOf(await run.until(isTurnComplete))).toBe('I heard.')
})

test('[LC19] an activity continues after a lost connection', async () => {
  await using emulator = await startEmulator({ live: { defaultTranscript: '[[say I heard.]]' } })
  await using run = await runReconnecting(emulator, {
    runConfig: { realtimeInputConfig: { automaticActivityDetection: { disabled: true } } },
  })
  run.queue.sendActivityStart()
  const first = await emulator.live.nextSession()
  await first.waitFor((frame) => 'realtimeInput' in frame)
  first.drop()
  const second = await emulator.live.nextSession()
  await second.waitFor((frame) => 'realtimeInput' in frame)
  run.queue.sendRealtime(VOICE)
  run.queue.sendActivityEnd()
  expect(textOf(await run.until(isTurnComplete))).toBe('I heard.')
})

test.each([Modality.TEXT, Modality.AUDIO])(
  '[LC20] an interruption is reported at once (%s)',
  async (modality) => {
    await using emulator = await startEmulator()
    await using run = await runReconnecting(emulator, {
      runConfig: { responseModalities: [modality] },
    })
    run.say('[[say Once upon a time]] [[wait never]]')
    await run.until((event) => event.content)
    expect(run.reported.interruptions).toBe(0)
    run.queue.sendRealtime(VOICE)
    await run.until(isTurnComplete)
    expect(run.reported.interruptions).toBe(1)
  },
)

test.each([
  [NATIVE_AUDIO, true],
  ['gemini-live-2.5-flash-preview', true],
  ['gemini-2.0-flash-live-001', true],
  ['projects/p/locations/l/publishers/google/models/gemini-live-2.5-flash-native-audio', true],
  ['models/gemini-3.8-live', true],
  [FLASH_LIVE, false],
  ['gemini-2.5-flash', false],
  ['something-else', false],
])('[LV42] %s supports non-blocking calls: %s', (model, expected) => {
  expect(takesNonBlockingCalls(model)).toBe(expected)
})
