import { BasePlugin, type Event } from '@google/adk'
import type { LiveSession } from 'gemini-emulator'
import { expect, test } from 'vitest'

import { textParts } from './support/conversation.ts'
import { beginToSpeak, speak, speakInJson, speakUpTo } from './support/voice.ts'
import {
  finishOf,
  framesOf,
  joinLive,
  lastSession,
  nextUnasked,
  openLiveTestBridge,
  unasked,
  whole,
} from './support/live-test-bridge.ts'
import type { SocketClient } from '../sockets/support/socket-client.ts'
import { FREE_MODEL } from '../approvals/support/test-bridge.ts'
import { defer } from '../support/agents.ts'

/** Bytes of audio in the messages. */
function soundIn(client: SocketClient, requestId: string): number {
  return client
    .chunks(requestId)
    .filter(({ type }) => type === 'data-pcm')
    .reduce(
      (sum, { data }) => sum + Buffer.from((data as { content: string }).content, 'base64').length,
      0,
    )
}

const bytesOf = (pieces: readonly Buffer[]) => pieces.reduce((sum, { length }) => sum + length, 0)

test('[LV880] of two devices of one person, the model hears the newer one, and the older one learns that it was taken over', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using older = await joinLive(testBridge)
  await using newer = await joinLive(testBridge)
  for (const client of [older, newer]) client.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  beginToSpeak(older)
  await older.sync()
  expect(takeovers(newer)).toBe(0)
  testBridge.emulator.live.queueTranscript('[[say Hello, newer one.]]')
  beginToSpeak(newer)
  await newer.sync()
  await older.next(() => takeovers(older) === 1)
  // The microphone of the older device stays open. Neither its audio nor its end reaches the model.
  beginToSpeak(older)
  older.send({ type: 'audio-end', id: 'chat-1' })
  await older.sync()
  speak(newer)
  expect(await whole(newer, await nextUnasked(newer))).toBe('Hello, newer one.')
  // The beginning of each, and the whole utterance of the newer one.
  const heard = JSON.stringify(lastSession(testBridge).received)
  expect(heard.match(/"mimeType":"audio\/pcm/g)).toHaveLength(4 + 4 + 12)
  expect(heard).not.toContain('audioStreamEnd')
  expect([takeovers(older), takeovers(newer)]).toEqual([1, 0])
  // A person who starts the voice again takes over.
  older.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  beginToSpeak(older)
  await newer.next(() => takeovers(newer) === 1)
  // A device that has left is not told.
  await newer[Symbol.asyncDispose]()
  await using third = await joinLive(testBridge)
  third.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  older.send({ type: 'audio-end', id: 'chat-1' })
  await older.sync()
  beginToSpeak(third)
  await third.sync()
  expect(takeovers(older)).toBe(1)
})

function takeovers(client: SocketClient): number {
  return framesOf(client, 'status').filter(({ status }) => status === 'taken-over').length
}

test.each([
  ['binary', speak],
  ['base64', speakInJson],
] as const)(
  '[LV3] speech becomes a user message, and the reply an assistant message (%s)',
  async (audio, utter) => {
    await using testBridge = await openLiveTestBridge({ spoken: true })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1', audio })
    testBridge.emulator.live.queueTranscript('[[say Good morning, Hanako.]]')
    utter(client)
    const turn = await nextUnasked(client)
    expect(await whole(client, turn)).toBe('Good morning, Hanako.')
    const [heard] = framesOf(client, 'user-message')
    expect(heard).toMatchObject({
      id: 'chat-1',
      message: { role: 'user', parts: [{ type: 'text', text: '[[say Good morning, Hanako.]]' }] },
    })
    // The turn carries the transcript, so that a client shows it before the reply.
    const [begun] = framesOf(client, 'turn')
    expect(begun?.['userMessage']).toEqual(heard?.['message'])
    expect(client.frames.findIndex(({ type }) => type === 'turn')).toBeLessThan(
      client.frames.findIndex(({ type, requestId }) => type === 'chunk' && requestId === turn),
    )
    const pieces = framesOf(client, 'transcript').filter(({ final }) => final !== true)
    expect(pieces.map(({ text }) => text).join('')).toBe('[[say Good morning, Hanako.]]')
    expect(await client.faults(turn)).toEqual([])
    const sent = audio === 'binary' ? bytesOf(client.binary) : soundIn(client, turn)
    const other = audio === 'binary' ? soundIn(client, turn) : bytesOf(client.binary)
    expect(other).toBe(0)
    expect(finishOf(client, turn)).toMatchObject({
      messageMetadata: { audio: { bytes: sent, sampleRate: 24_000, seconds: sent / 48_000 } },
    })
    expect(sent).toBeGreaterThan(24_000)
    expect(await textParts(testBridge)).toEqual([
      ['user', '[[say Good morning, Hanako.]]'],
      ['assistant', 'Good morning, Hanako.'],
    ])
    const [user, assistant] = await testBridge.page().messages()
    // LV16: the stored message has the same count as the stream.
    expect(assistant?.metadata).toMatchObject({
      audio: { bytes: sent, sampleRate: 24_000, seconds: sent / 48_000 },
    })
    expect(heard).toMatchObject({ message: { id: user?.id } })
    expect(assistant?.id).toBe(framesOf(client, 'turn')[0]?.['messageId'])
  },
)

test('[LV4] a client that requests no audio receives none', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1', audio: 'none' })
  client.say('[[say Good morning.]]')
  expect(await whole(client)).toBe('Good morning.')
  expect(bytesOf(client.binary) + soundIn(client, 'r1')).toBe(0)
})

test('[LV4] audio is not stored: a later client receives the text', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using client = await joinLive(testBridge)
  client.say('[[say Good morning.]] [[wait gate]] [[say Hanako.]]')
  await client.next(() => client.text() === 'Good morning.')
  await using late = await joinLive(testBridge)
  late.resume('late')
  await late.next(() => late.text('late') === 'Good morning.')
  expect(soundIn(late, 'late')).toBe(0)
  testBridge.emulator.release('gate')
  expect(await whole(late, 'late')).toBe('Good morning.Hanako.')
  expect(soundIn(late, 'late')).toBeGreaterThan(0)
  expect(soundIn(client, 'r1')).toBeGreaterThan(soundIn(late, 'late'))
})

test('[LV5] a binary frame without a chat is rejected', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using client = await joinLive(testBridge)
  beginToSpeak(client)
  expect(await client.nextOf('refused')).toMatchObject({ frame: 'binary', code: 'bad-request' })
})

test('[LV6] an image reaches the model when it is sent', async () => {
  await using testBridge = await openLiveTestBridge()
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  await client.next((frame) => frame['status'] === 'open')
  const data = Buffer.from('a picture').toString('base64')
  client.send({ type: 'image', id: 'chat-1', data, mimeType: 'image/jpeg' })
  const frame = await lastSession(testBridge).waitFor((sent) => 'realtimeInput' in sent)
  expect(JSON.stringify(frame)).toContain('image/jpeg')
})

test('[LV7] barge-in ends the reply at once, and the next one starts', async () => {
  await using testBridge = await openLiveTestBridge({
    spoken: true,
    liveModel: FREE_MODEL,
    emulator: { live: { playback: 'real-time' } },
  })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  client.say('[[say One.]] [[wait never]] [[say Two.]]')
  await client.untilText('One.')
  testBridge.emulator.live.queueTranscript('[[say Three.]]')
  beginToSpeak(client)
  await client.nextOf('interrupted')
  expect(await whole(client)).toBe('One.')
  expect(unasked(client)).toEqual([])
  speak(client)
  const turn = await nextUnasked(client)
  expect(await whole(client, turn)).toBe('Three.')
  expect(await client.faults('r1')).toEqual([])
  expect(await client.faults(turn)).toEqual([])
  expect(await textParts(testBridge)).toEqual([
    ['user', '[[say One.]] [[wait never]] [[say Two.]]'],
    ['assistant', 'One.'],
    ['user', '[[say Three.]]'],
    ['assistant', 'Three.'],
  ])
  const [, first] = await testBridge.page().messages()
  expect(first).not.toHaveProperty('metadata.stopped')
})

test('[LV1] usage, audio, sources and text of a turn do not appear in the next', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using client = await joinLive(testBridge)
  client.say(
    '[[say A long sentence about everything.]] [[ground https://example.com Source]]',
    'r1',
  )
  await whole(client, 'r1')
  client.say('[[say Short.]]', 'r2')
  await whole(client, 'r2')
  client.say('[[say Short.]]', 'r3')
  await whole(client, 'r3')
  const [first, second, third] = ['r1', 'r2', 'r3'].map(
    (id) => finishOf(client, id)?.['messageMetadata'] as Record<string, unknown>,
  )
  expect(second?.['audio']).toEqual(third?.['audio'])
  expect(soundIn(client, 'r1')).toBeGreaterThan(soundIn(client, 'r2'))
  expect(second).toMatchObject({ audio: { bytes: soundIn(client, 'r2') } })
  expect(client.chunks('r1').some(({ type }) => type === 'source-url')).toBe(true)
  expect(client.chunks('r2').some(({ type }) => type === 'source-url')).toBe(false)
  expect(first?.['usage']).toBeDefined()
  expect(second?.['usage']).toBeDefined()
})

test('[LV40] `audio-end` arrives after the audio, and the model replies at once', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  for (const [index, words] of ['One.', 'Two.', 'Three.'].entries()) {
    testBridge.emulator.live.queueTranscript(`[[say ${words}]]`)
    speakUpTo(client)
    // Each message is sent after the reply to the previous one.
    expect(await whole(client, await nextUnasked(client, index))).toBe(words)
  }
})

test('[LV40] `audio-end` starts no conversation', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using client = await joinLive(testBridge)
  client.send({ type: 'audio-end', id: 'chat-1' })
  // The same way to the model, later: a conversation in the first chat would exist before the reply in the second one is complete.
  client.send({ type: 'watch', id: 'chat-2', audio: 'binary' })
  testBridge.emulator.live.queueTranscript('[[say One.]]')
  speakUpTo(client, 'chat-2')
  expect(await whole(client, await nextUnasked(client))).toBe('One.')
  expect(testBridge.emulator.live.sessions).toHaveLength(1)
})

/** A host plugin that delays audio, so that it waits in ADK's queue. */
class Slow extends BasePlugin {
  readonly met = defer()
  readonly gate = defer()
  isSlow = false

  override async onEventCallback({ event }: { event: Event }): Promise<Event | undefined> {
    if (this.isSlow && event.content?.parts?.some(({ inlineData }) => inlineData)) {
      this.met.resolve()
      await this.gate.promise
    }
    return undefined
  }
}

test.each([
  ['the model is interrupted', (session: LiveSession) => session.interrupt(), 0],
  [
    'its connection is lost, and the answer begun anew',
    (session: LiveSession) => session.drop(),
    1,
  ],
])(
  '[LV41] audio that is still queued when %s is not sent after `interrupted`; later audio is',
  async (_name, breakOff, answers) => {
    const slow = new Slow('slow')
    await using testBridge = await openLiveTestBridge({
      spoken: true,
      liveModel: FREE_MODEL,
      plugins: [slow],
    })
    await using client = await joinLive(testBridge)
    /** Bytes of audio since the last interruption. */
    let heard = 0
    client.socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) heard += data.length
      else if (String(data).startsWith('{"type":"interrupted"')) heard = 0
    })
    client.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
    client.send({ type: 'text', id: 'chat-1', text: '[[say One two three.]]' })
    await whole(client, await nextUnasked(client))
    const once = heard
    expect(once).toBeGreaterThan(10_000)
    slow.isSlow = true
    const text = '[[say One two three.]][[wait more]]'
    client.send({ type: 'text', id: 'chat-1', text })
    await slow.met.promise
    breakOff(lastSession(testBridge))
    await client.nextOf('interrupted')
    slow.gate.resolve()
    testBridge.emulator.release('more')
    await whole(client, await nextUnasked(client, 1))
    expect(heard).toBe(once * answers)
    client.send({ type: 'text', id: 'chat-1', text: '[[say One two three.]]' })
    await whole(client, await nextUnasked(client, 2))
    expect(heard).toBe(once * (answers + 1))
  },
)
