import { expect, test } from 'vitest'

import type { VoiceOptions, VoiceState } from '../../src/client/voice/index.ts'
import { Voice } from '../../src/client/voice/index.ts'
import { FakeDevices, settle } from './support/fake-devices.ts'
import { FakeTransport } from './support/fake-transport.ts'

function setUp(options: Partial<VoiceOptions> = {}) {
  const devices = new FakeDevices()
  const transport = new FakeTransport()
  const voice = new Voice({ transport, chatId: 'chat-1', devices, ...options })
  const states: VoiceState[] = []
  voice.subscribe(() => states.push(voice.state))
  return { devices, transport, voice, states }
}

async function talk(options: Partial<VoiceOptions> = {}) {
  const world = setUp(options)
  const started = world.voice.start()
  const microphone = await world.devices.allow()
  await started
  return { ...world, microphone }
}

const sound = () => ({ type: 'audio', bytes: new ArrayBuffer(4_800) }) as const

test('[VO6] a voice starts, is heard and hears, and stops', async () => {
  const { voice, devices, transport, states } = setUp()
  expect(voice.state).toEqual({ state: 'off', mode: 'hands-free', muted: false })
  const started = voice.start()
  expect(voice.state.state).toBe('asking')
  expect(transport.said).toEqual([])
  const microphone = await devices.allow()
  await started
  expect(transport.said).toEqual(['watch chat-1 binary'])
  microphone.speak(200)
  expect(transport.soundMs).toBe(200)
  transport.tell(sound())
  expect(voice.state.state).toBe('model-speaking')
  devices.speaker.tell({ playing: false, played: 2_400 })
  expect(voice.playback.played).toBe(2_400)
  voice.stop()
  expect(microphone.closed && devices.speaker.closed).toBe(true)
  expect(transport.said).toEqual(['watch chat-1 binary', 'audio-end chat-1', 'leave chat-1'])
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

test('[VO6] who stops while the model speaks sees no other state than off', async () => {
  const { voice, transport, states } = await talk()
  const speaking: boolean[] = []
  transport.tell(sound())
  voice.onSpeaking((now) => speaking.push(now))
  voice.stop()
  expect(states.slice(-2).map(({ state }) => state)).toEqual(['model-speaking', 'off'])
  expect(speaking).toEqual([false])
  transport.tell(sound())
  expect(voice.state.state).toBe('off')
})

test('[VO6] the level is told apart from the state', async () => {
  const { voice, microphone, devices, states } = await talk()
  const levels: object[] = []
  voice.onLevel((level) => levels.push(level))
  microphone.speak(1_000, 100)
  const { length } = states
  microphone.speak(1_000, 100)
  devices.speaker.tell({ level: 0.5 })
  expect(levels).toHaveLength(101)
  expect(levels.at(-1)).toMatchObject({ output: 0.5 })
  expect(states).toHaveLength(length)
})

test('[VO6] other sounds are told to make room while somebody speaks', async () => {
  const { voice, microphone, transport, devices } = await talk()
  const told: boolean[] = []
  voice.onSpeaking((speaking) => told.push(speaking))
  microphone.speak(100)
  microphone.speak(1_000, 0)
  transport.tell(sound(), sound())
  devices.speaker.tell({ playing: false })
  expect(told).toEqual([true, false, true, false])
})

test('[VO6] words of both sides are shown as they come', async () => {
  const { voice, transport } = await talk()
  transport.tell(
    { type: 'transcript', author: 'user', text: 'Good ', final: false },
    { type: 'transcript', author: 'user', text: 'morning', final: false },
    { type: 'answer', phase: 'start' },
    { type: 'user-message', message: { id: 'm', role: 'user', parts: [] } },
    { type: 'transcript', author: 'model', text: 'Hello', final: false },
    { type: 'transcript', author: 'model', text: '', final: true },
  )
  expect(voice.state).toMatchObject({ transcript: { person: 'Good morning', model: 'Hello' } })
})

test('[VO8] two starts ask once', async () => {
  const { voice, devices, transport } = setUp()
  const first = voice.start()
  const second = voice.start()
  expect(devices.prompts).toHaveLength(1)
  await devices.allow()
  await Promise.all([first, second])
  await voice.start()
  expect(devices.prompts).toHaveLength(1)
  expect(transport.said).toEqual(['watch chat-1 binary'])
})

test('[VO8] who stops while the browser asks has no microphone afterwards', async () => {
  const { voice, devices, transport } = setUp()
  const started = voice.start()
  voice.stop()
  expect(voice.state.state).toBe('off')
  const microphone = await devices.allow()
  await started
  expect(microphone.closed && devices.speaker.closed).toBe(true)
  expect(voice.state.state).toBe('off')
  expect(transport.said).toEqual([])
})

test('[VO8] who stops and starts again while the browser asks gets the second one', async () => {
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
  expect(transport.soundMs).toBe(0)
  expect(second.closed).toBe(false)
  second.speak(100)
  expect(transport.soundMs).toBe(100)
})

test('[VO8] a refusal that comes after the stop is nobody’s problem', async () => {
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
])('[VO7] %s at the start is the problem %s, and all is closed', async (name, code) => {
  const { voice, devices, transport } = setUp()
  const started = voice.start()
  await devices.prompts[0]?.refuse(name)
  await started
  expect(voice.state).toMatchObject({ state: 'off', problem: { code } })
  expect(devices.speaker.closed).toBe(true)
  expect(transport.said).toEqual([])
  void voice.start()
  expect(voice.state).toEqual({ state: 'asking', mode: 'hands-free', muted: false })
})

test('[VO7] a page that is not secure is told so', async () => {
  const transport = new FakeTransport()
  const voice = new Voice({ transport, chatId: 'chat-1' })
  await voice.start()
  expect(voice.state).toMatchObject({ state: 'off', problem: { code: 'insecure-page' } })
})

test('[VO7] a microphone that is pulled out is a problem, not silence', async () => {
  const { voice, microphone, devices, transport } = await talk()
  microphone.unplug()
  expect(voice.state).toMatchObject({ state: 'off', problem: { code: 'lost', what: 'microphone' } })
  expect(devices.speaker.closed).toBe(true)
  expect(transport.said).toContain('leave chat-1')
})

test('[VO9] with push-to-talk, the model hears what is said while it is held, and its end', async () => {
  const { voice, microphone, transport } = await talk({ mode: 'push-to-talk' })
  microphone.speak(500)
  expect(transport.soundMs).toBe(0)
  voice.press()
  expect(voice.state).toMatchObject({ state: 'person-speaking', held: true })
  microphone.speak(400)
  voice.release()
  expect(voice.state).toMatchObject({ held: false })
  expect(transport.said).not.toContain('audio-end chat-1')
  // The end of the last word is still on its way through the device.
  microphone.speak(500)
  expect(transport.soundMs).toBe(480)
  expect(transport.said).toEqual(['watch chat-1 binary', 'audio-end chat-1'])
})

test('[VO9] who presses again at once goes on with what they say', async () => {
  const { voice, microphone, transport } = await talk({ mode: 'push-to-talk' })
  voice.press()
  microphone.speak(100)
  voice.release()
  microphone.speak(20)
  voice.press()
  microphone.speak(500)
  expect(transport.soundMs).toBe(620)
  expect(transport.said).toEqual(['watch chat-1 binary'])
})

test('[VO9] who presses while the model speaks interrupts it', async () => {
  const { voice, transport, devices } = await talk({ mode: 'push-to-talk' })
  transport.tell(sound())
  voice.press()
  expect(devices.speaker.drops).toBe(1)
  expect(transport.said).toContain('interrupt chat-1')
})

test('[VO9] pressing counts only where it is meant: not when off, muted or hands-free', async () => {
  const { voice, transport, microphone } = await talk()
  voice.press()
  expect(voice.state).toMatchObject({ held: false })
  voice.setMode('push-to-talk')
  voice.setMuted(true)
  voice.press()
  microphone.speak(1_000)
  expect(transport.soundMs).toBe(80)
  voice.stop()
  voice.press()
  voice.release()
  expect(voice.state.state).toBe('off')
})

test('[VO9] who is muted is not heard, and the model need not wait for more', async () => {
  const { voice, microphone, transport } = await talk()
  microphone.speak(100)
  voice.setMuted(true)
  expect(microphone.muted).toBe(true)
  microphone.speak(1_000)
  expect(transport.soundMs).toBe(100)
  expect(transport.said).toEqual(['watch chat-1 binary', 'audio-end chat-1'])
  voice.setMuted(false)
  microphone.speak(100)
  expect(transport.soundMs).toBe(200)
})

test('[VO9] a voice that was muted before its start begins muted', async () => {
  const { voice, devices, transport } = setUp()
  voice.setMuted(true)
  const started = voice.start()
  const microphone = await devices.allow()
  await started
  microphone.speak(100)
  expect([microphone.muted, transport.soundMs]).toEqual([true, 0])
})

test('[VO10] another microphone takes the place of the first when it is there', async () => {
  const { voice, microphone, devices, transport } = await talk()
  const chosen = voice.setDevice('headset')
  microphone.speak(100)
  expect(transport.soundMs).toBe(100)
  expect(devices.prompts[1]?.options.deviceId).toBe('headset')
  const other = await devices.allow()
  await chosen
  expect([microphone.closed, other.closed]).toEqual([true, false])
  microphone.speak(100)
  other.speak(100)
  expect(transport.soundMs).toBe(200)
})

test('[VO10] one that cannot be opened leaves the first in use, and is told', async () => {
  const { voice, microphone, devices, transport } = await talk()
  const chosen = voice.setDevice('headset')
  await devices.prompts[1]?.refuse('NotReadableError')
  await chosen
  expect(voice.state).toMatchObject({ state: 'listening', problem: { code: 'in-use' } })
  microphone.speak(100)
  expect(transport.soundMs).toBe(100)
  microphone.unplug()
  expect(voice.state.state).toBe('off')
})

test('[VO10] of several that are chosen in a row the last one is used, whichever comes first', async () => {
  const { voice, devices } = await talk()
  const both = [voice.setDevice('first'), voice.setDevice('second')]
  const second = await devices.prompts[2]?.allow()
  const first = await devices.prompts[1]?.allow()
  await Promise.all(both)
  expect([first?.closed, second?.closed]).toEqual([true, false])
  voice.stop()
  expect(second?.closed).toBe(true)
})

test('[VO4] an interruption drops the sound, and what it overtook on its way', async () => {
  const { voice, transport, devices } = await talk()
  transport.tell(sound(), { type: 'interrupted' })
  expect(devices.speaker.drops).toBe(1)
  expect(voice.state.state).toBe('listening')
  transport.tell(sound())
  expect(devices.speaker.played).toHaveLength(1)
  // An answer that is begun anew has the same message.
  devices.clock += 300
  transport.tell(sound())
  expect(devices.speaker.played).toHaveLength(2)
})

test('[VO4] the next answer is heard however soon it comes', async () => {
  const { transport, devices } = await talk()
  transport.tell(sound(), { type: 'interrupted' }, { type: 'answer', phase: 'end' }, sound())
  expect(devices.speaker.played).toHaveLength(2)
})

test('[VO4] who interrupts hears no more of the answer, also from a model that goes on', async () => {
  const { voice, transport, devices } = await talk()
  transport.tell({ type: 'answer', phase: 'start' }, sound())
  voice.interrupt()
  expect(devices.speaker.drops).toBe(1)
  expect(transport.said).toContain('interrupt chat-1')
  devices.clock += 10_000
  transport.tell(sound(), { type: 'interrupted' }, sound())
  devices.clock += 10_000
  transport.tell(sound())
  expect(devices.speaker.played).toHaveLength(1)
  transport.tell({ type: 'answer', phase: 'start' }, sound())
  expect(devices.speaker.played).toHaveLength(2)
})

test('[VO11] speech without a connection waits for it, its newest two seconds', async () => {
  const { voice, microphone, transport } = await talk()
  transport.open = false
  microphone.speak(5_000)
  expect(voice.state).toMatchObject({ connected: false })
  transport.open = true
  microphone.speak(20)
  expect(transport.sounds.map(({ length }) => length)).toEqual([64_000, 640])
  expect(voice.state).toMatchObject({ connected: true })
})

test('[VO11] a connection that does not come back is a problem', async () => {
  const { voice, microphone, transport } = await talk({ giveUpAfterMs: 1_000 })
  transport.open = false
  microphone.speak(980)
  expect(voice.state).toMatchObject({ connected: false })
  microphone.speak(20)
  expect(voice.state).toMatchObject({ state: 'off', problem: { code: 'lost', what: 'connection' } })
  await settle()
  expect(microphone.closed).toBe(true)
})
