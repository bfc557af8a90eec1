import { afterEach, expect, test, vi } from 'vitest'

import { Voice } from '../../src/client/voice/index.ts'
import { FakeLocks } from '../client/support/fake-locks.ts'
import { FakeTransport } from './support/fake-transport.ts'
import { setUp, sound, talk } from './support/set-up.ts'

test('[VO6] a voice starts, sends and plays audio, and stops', async () => {
  const { voice, devices, transport, states } = setUp()
  expect(voice.state).toEqual({ state: 'off', mode: 'hands-free', muted: false })
  const started = voice.start()
  expect(voice.state.state).toBe('asking')
  expect(transport.calls).toEqual([])
  const microphone = await devices.allow()
  await started
  expect(transport.calls).toEqual(['watch chat-1 binary'])
  microphone.speak(200)
  expect(transport.sentMs).toBe(200)
  transport.emit(sound())
  expect(voice.state.state).toBe('model-speaking')
  devices.speaker.report({ playing: false, played: 2_400 })
  expect(voice.playback.played).toBe(2_400)
  voice.stop()
  expect(microphone.closed && devices.speaker.closed).toBe(true)
  expect(transport.calls).toEqual(['watch chat-1 binary', 'audio-end chat-1', 'leave chat-1'])
  const seen = states.map(({ state }) => state)
  expect(seen).toEqual([
    'asking',
    'listening',
    'person-speaking',
    'model-speaking',
    'person-speaking',
    'off',
  ])
})

test('[VO6] stop() while the model speaks leads to no other state than off', async () => {
  const { voice, transport, states } = await talk()
  const speaking: boolean[] = []
  transport.emit(sound())
  voice.onSpeaking((now) => speaking.push(now))
  voice.stop()
  expect(states.slice(-2).map(({ state }) => state)).toEqual(['model-speaking', 'off'])
  expect(speaking).toEqual([false])
  transport.emit(sound())
  expect(voice.state.state).toBe('off')
})

test('[VO6] the level is reported separately from the state', async () => {
  const { voice, microphone, devices, states } = await talk()
  const levels: object[] = []
  voice.onLevel((level) => levels.push(level))
  microphone.speak(1_000, 100)
  const { length } = states
  microphone.speak(1_000, 100)
  devices.speaker.report({ level: 0.5 })
  expect(levels).toHaveLength(101)
  expect(levels.at(-1)).toMatchObject({ output: 0.5 })
  expect(states).toHaveLength(length)
})

test('[VO6] onSpeaking reports when somebody speaks', async () => {
  const { voice, microphone, transport, devices } = await talk()
  const told: boolean[] = []
  voice.onSpeaking((speaking) => told.push(speaking))
  microphone.speak(100)
  microphone.speak(1_000, 0)
  transport.emit(sound(), sound())
  devices.speaker.report({ playing: false })
  expect(told).toEqual([true, false, true, false])
})

test('[VO6] the transcripts of both sides are shown as they arrive', async () => {
  const { voice, transport } = await talk()
  transport.emit(
    { type: 'transcript', author: 'user', text: 'Good ', final: false },
    { type: 'transcript', author: 'user', text: 'morning', final: false },
    { type: 'answer', phase: 'start' },
    { type: 'user-message', message: { id: 'm', role: 'user', parts: [] } },
    { type: 'transcript', author: 'model', text: 'Hello', final: false },
    { type: 'transcript', author: 'model', text: '', final: true },
  )
  expect(voice.state).toMatchObject({ transcript: { person: 'Good morning', model: 'Hello' } })
})

test('[VO8] two starts request the microphone once', async () => {
  const { voice, devices, transport } = setUp()
  const first = voice.start()
  const second = voice.start()
  expect(devices.prompts).toHaveLength(1)
  await devices.allow()
  await Promise.all([first, second])
  await voice.start()
  expect(devices.prompts).toHaveLength(1)
  expect(transport.calls).toEqual(['watch chat-1 binary'])
})

test('[VO8] stop() while the browser asks for permission closes the microphone that opens afterwards', async () => {
  const { voice, devices, transport } = setUp()
  const started = voice.start()
  voice.stop()
  expect(voice.state.state).toBe('off')
  const microphone = await devices.allow()
  await started
  expect(microphone.closed && devices.speaker.closed).toBe(true)
  expect(voice.state.state).toBe('off')
  expect(transport.calls).toEqual([])
})

test('[VO8] stop() and start() while the browser asks for permission use the second microphone', async () => {
  const { voice, devices, transport } = setUp()
  void voice.start()
  voice.stop()
  const started = voice.start()
  const first = devices.prompts[0]
  const second = await devices.allow()
  await started
  expect(voice.state.state).toBe('listening')
  const late = await first?.allow()
  expect(late?.closed).toBe(true)
  late?.speak(100)
  expect(transport.sentMs).toBe(0)
  expect(second.closed).toBe(false)
  second.speak(100)
  expect(transport.sentMs).toBe(100)
})

test('[VO8] a denied permission after stop() is not a problem', async () => {
  const { voice, devices } = setUp()
  void voice.start()
  voice.stop()
  await devices.prompts[0]?.refuse('NotAllowedError')
  expect(voice.state).toEqual({ state: 'off', mode: 'hands-free', muted: false })
})

test.each([
  ['NotAllowedError', 'permission-denied'],
  ['NotFoundError', 'no-microphone'],
  ['NotReadableError', 'in-use'],
])('[VO7] %s at the start is the problem %s, and all devices are closed', async (name, code) => {
  const { voice, devices, transport } = setUp()
  const started = voice.start()
  await devices.prompts[0]?.refuse(name)
  await started
  expect(voice.state).toMatchObject({ state: 'off', problem: { code } })
  expect(devices.speaker.closed).toBe(true)
  expect(transport.calls).toEqual([])
  void voice.start()
  expect(voice.state).toEqual({ state: 'asking', mode: 'hands-free', muted: false })
})

test('[VO7] a page that is not secure gets the problem insecure-page', async () => {
  const transport = new FakeTransport()
  const voice = new Voice({ transport, chatId: 'chat-1' })
  await voice.start()
  expect(voice.state).toMatchObject({ state: 'off', problem: { code: 'insecure-page' } })
})

test('[VO850] a microphone that the system silences is a problem until it is heard again', async () => {
  const { voice, microphone } = await talk()
  microphone.silence(true)
  expect(voice.state).toMatchObject({ state: 'listening', problem: { code: 'in-use' } })
  microphone.silence(false)
  expect(voice.state).toMatchObject({ state: 'listening' })
  expect(voice.state).not.toHaveProperty('problem')
})

test('[LV880] a voice that was taken over on another device stops and says why', async () => {
  const { voice, microphone, transport } = await talk()
  transport.emit({ type: 'status', status: 'moved' })
  expect(voice.state.state).toBe('listening')
  transport.emit({ type: 'status', status: 'taken-over' })
  expect(voice.state).toMatchObject({ state: 'off', problem: { code: 'taken-over' } })
  expect(microphone.closed).toBe(true)
})

test('[VO7] an unplugged microphone is a problem, not silence', async () => {
  const { voice, microphone, devices, transport } = await talk()
  microphone.unplug()
  expect(voice.state).toMatchObject({ state: 'off', problem: { code: 'lost', what: 'microphone' } })
  expect(devices.speaker.closed).toBe(true)
  expect(transport.calls).toContain('leave chat-1')
})

afterEach(() => vi.unstubAllGlobals())

const WAIT = { timeout: 120_000, interval: 10 }

test('[VO852] of two tabs of one chat, the newer voice takes over, and the older one says why it stopped', async () => {
  vi.stubGlobal('navigator', { locks: new FakeLocks() })
  const older = await talk()
  const other = await talk({ chatId: 'chat-2' })
  const newer = await talk()
  await vi.waitFor(() => expect(older.voice.state.state).toBe('off'), WAIT)
  expect(older.voice.state).toMatchObject({ problem: { code: 'taken-over' } })
  expect(older.microphone.closed).toBe(true)
  expect(older.transport.calls.at(-1)).toBe('leave chat-1')
  expect([newer.voice.state.state, other.voice.state.state]).toEqual(['listening', 'listening'])
  const started = older.voice.start()
  await older.devices.allow()
  await started
  await vi.waitFor(() => expect(newer.voice.state.state).toBe('off'), WAIT)
  expect(older.voice.state).not.toHaveProperty('problem')
  older.voice.stop()
  await Promise.resolve()
  expect(older.voice.state).not.toHaveProperty('problem')
})
