import { expect, test } from 'vitest'

import { Voice } from '../../src/client/voice/index.ts'
import type { VoiceOptions } from '../../src/client/voice/index.ts'
import { FREE_MODEL, type TestBridge } from '../approvals/support/test-bridge.ts'
import { ClientPage, versions } from '../client/support/client-page.ts'
import { lastSession, openLiveTestBridge } from '../live/support/live-test-bridge.ts'
import { textOf } from '../support/chat-probe.ts'
import { FakeDevices } from './support/fake-devices.ts'

const [version] = versions

async function meet(testBridge: TestBridge, options: Partial<VoiceOptions> = {}) {
  const page = new ClientPage({ url: testBridge.url, version })
  const chat = await page.open()
  const devices = new FakeDevices()
  const voice = new Voice({ transport: page.transport, chatId: 'chat-1', devices, ...options })
  const started = voice.start()
  const microphone = await devices.allow()
  await started
  await page.transport.ping()
  return {
    page,
    chat,
    devices,
    voice,
    microphone,
    [Symbol.asyncDispose]: () => page[Symbol.asyncDispose](),
  }
}

test('[VO12] speech in a new chat gets a spoken reply, and both become messages', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using world = await meet(testBridge)
  const { chat, voice, microphone, devices } = world
  testBridge.emulator.live.queueTranscript('[[say Good morning.]]')
  microphone.speak(600)
  expect(voice.state.state).toBe('person-speaking')
  microphone.speak(700, 0)
  await chat.until(() => textOf(chat.messages[1]).includes('morning.'))
  expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
  expect(devices.speaker.bytes).toBeGreaterThan(10_000)
  const person = '[[say Good morning.]]'
  expect(voice.state).toMatchObject({ transcript: { person, model: 'Good morning.' } })
})

test('[VO9] with push-to-talk, the reply starts when the button is released, without a pause', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using world = await meet(testBridge, { mode: 'push-to-talk' })
  const { chat, voice, microphone } = world
  for (const words of ['One.', 'Two.']) {
    testBridge.emulator.live.queueTranscript(`[[say ${words}]]`)
    voice.press()
    microphone.speak(400)
    voice.release()
    microphone.speak(80)
    // The second is said when the first was answered.
    await chat.until(() => textOf(chat.lastMessage) === words)
  }
  expect(chat.messages).toHaveLength(4)
})

test('[VO4] speech during a reply interrupts the model', async () => {
  await using testBridge = await openLiveTestBridge({
    spoken: true,
    liveModel: FREE_MODEL,
    emulator: { live: { playback: 'real-time' } },
  })
  await using world = await meet(testBridge)
  const { chat, microphone, devices, page } = world
  page.transport.sendText('chat-1', '[[say One.]][[wait never]][[say Two.]]')
  await chat.until(() => devices.speaker.bytes > 0)
  expect(devices.speaker.drops).toBe(0)
  microphone.speak(200)
  await chat.until(() => devices.speaker.drops > 0)
})

test('[VO11] if the connection is lost while the model speaks, the rest is played after the reconnection', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using world = await meet(testBridge)
  const { chat, microphone, devices, page } = world
  testBridge.emulator.live.queueTranscript('[[say One.]][[wait gate]][[say Two.]]')
  microphone.speak(600)
  microphone.speak(700, 0)
  await chat.until(() => textOf(chat.lastMessage) === 'One.')
  const { bytes } = devices.speaker
  page.cut()
  await chat.until(() => page.sockets.length > 1)
  await page.transport.ping()
  testBridge.emulator.release('gate')
  await chat.until(() => textOf(chat.lastMessage) === 'One.Two.')
  await chat.until(() => devices.speaker.bytes > bytes)
  expect(chat.messages).toHaveLength(2)
})

test('[VO11] if the connection is lost while the person speaks, the model receives all of it after the reconnection', async () => {
  await using testBridge = await openLiveTestBridge({
    spoken: true,
    emulator: { live: { recordAudio: true } },
  })
  await using world = await meet(testBridge)
  const { chat, microphone, page, voice } = world
  testBridge.emulator.live.queueTranscript('[[say Heard.]]')
  microphone.speak(300)
  await page.transport.ping()
  page.cut()
  microphone.speak(400)
  expect(voice.state).toMatchObject({ connected: false })
  await page.transport.ping()
  microphone.speak(300)
  microphone.speak(700, 0)
  await chat.until(() => textOf(chat.lastMessage) === 'Heard.')
  const heard = lastSession(testBridge)
    .received.flatMap(({ realtimeInput }) => {
      const { audio } = (realtimeInput ?? {}) as { audio?: { data?: string } }
      return Buffer.from(audio?.data ?? '', 'base64').length
    })
    .reduce((sum, length) => sum + length, 0)
  expect(heard / 32).toBe(1_700)
})

test('[VO12] a page that only watches does not take over the audio, and a stopped voice gets none', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using world = await meet(testBridge)
  const { chat, devices, page, voice } = world
  const leave = page.transport.watch('chat-1')
  await chat.send('[[say One.]]')
  const { bytes } = devices.speaker
  expect(bytes).toBeGreaterThan(0)
  leave()
  await chat.send('[[say Two.]]')
  expect(devices.speaker.bytes).toBeGreaterThan(bytes)
  expect(JSON.stringify(chat.messages)).not.toContain('data-pcm')
  voice.stop()
  expect(page.sent.at(-1)).toEqual({ type: 'unwatch', id: 'chat-1' })
})
