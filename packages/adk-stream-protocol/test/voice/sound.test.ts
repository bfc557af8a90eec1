import { expect, test } from 'vitest'

import { settle } from './support/fake-devices.ts'
import { setUp, sound, talk } from './support/set-up.ts'

test('[VO9] with push-to-talk, audio is sent while the button is held, and then its end', async () => {
  const { voice, microphone, transport } = await talk({ mode: 'push-to-talk' })
  microphone.speak(500)
  expect(transport.sentMs).toBe(0)
  voice.press()
  expect(voice.state).toMatchObject({ state: 'person-speaking', held: true })
  microphone.speak(400)
  voice.release()
  expect(voice.state).toMatchObject({ held: false })
  expect(transport.calls).not.toContain('audio-end chat-1')
  // The device still delivers the end of the last word.
  microphone.speak(500)
  expect(transport.sentMs).toBe(480)
  expect(transport.calls).toEqual(['watch chat-1 binary', 'audio-end chat-1'])
})

test('[VO9] pressing again at once continues the same utterance', async () => {
  const { voice, microphone, transport } = await talk({ mode: 'push-to-talk' })
  voice.press()
  microphone.speak(100)
  voice.release()
  microphone.speak(20)
  voice.press()
  microphone.speak(500)
  expect(transport.sentMs).toBe(620)
  expect(transport.calls).toEqual(['watch chat-1 binary'])
})

test('[VO9] pressing while the model speaks interrupts it', async () => {
  const { voice, transport, devices } = await talk({ mode: 'push-to-talk' })
  transport.emit(sound())
  voice.press()
  expect(devices.speaker.drops).toBe(1)
  expect(transport.calls).toContain('interrupt chat-1')
})

test('[VO9] pressing has no effect when the voice is off, muted or hands-free', async () => {
  const { voice, transport, microphone } = await talk()
  voice.press()
  expect(voice.state).toMatchObject({ held: false })
  voice.setMode('push-to-talk')
  voice.setMuted(true)
  voice.press()
  microphone.speak(1_000)
  expect(transport.sentMs).toBe(80)
  voice.stop()
  voice.press()
  voice.release()
  expect(voice.state.state).toBe('off')
})

test('[VO9] a muted voice sends no audio, and marks its end', async () => {
  const { voice, microphone, transport } = await talk()
  microphone.speak(100)
  voice.setMuted(true)
  expect(microphone.muted).toBe(true)
  microphone.speak(1_000)
  expect(transport.sentMs).toBe(100)
  expect(transport.calls).toEqual(['watch chat-1 binary', 'audio-end chat-1'])
  voice.setMuted(false)
  microphone.speak(100)
  expect(transport.sentMs).toBe(200)
})

test('[VO9] a voice that was muted before its start is muted', async () => {
  const { voice, devices, transport } = setUp()
  voice.setMuted(true)
  const started = voice.start()
  const microphone = await devices.allow()
  await started
  microphone.speak(100)
  expect([microphone.muted, transport.sentMs]).toEqual([true, 0])
})

test('[VO10] another microphone replaces the first one when it is open', async () => {
  const { voice, microphone, devices, transport } = await talk()
  const chosen = voice.setDevice('headset')
  microphone.speak(100)
  expect(transport.sentMs).toBe(100)
  expect(devices.prompts[1]?.options.deviceId).toBe('headset')
  const other = await devices.allow()
  await chosen
  expect([microphone.closed, other.closed]).toEqual([true, false])
  microphone.speak(100)
  other.speak(100)
  expect(transport.sentMs).toBe(200)
})

test('[VO10] if another microphone cannot be opened, the first stays in use and the problem is reported', async () => {
  const { voice, microphone, devices, transport } = await talk()
  const chosen = voice.setDevice('headset')
  await devices.prompts[1]?.refuse('NotReadableError')
  await chosen
  expect(voice.state).toMatchObject({ state: 'listening', problem: { code: 'in-use' } })
  microphone.speak(100)
  expect(transport.sentMs).toBe(100)
  microphone.unplug()
  expect(voice.state.state).toBe('off')
})

test('[VO10] of several selected microphones the last one is used, whichever opens first', async () => {
  const { voice, devices } = await talk()
  const both = [voice.setDevice('first'), voice.setDevice('second')]
  const second = await devices.prompts[2]?.allow()
  const first = await devices.prompts[1]?.allow()
  await Promise.all(both)
  expect([first?.closed, second?.closed]).toEqual([true, false])
  voice.stop()
  expect(second?.closed).toBe(true)
})

test('[VO4] an interruption drops the buffered audio, and plays what follows', async () => {
  const { voice, transport, devices } = await talk()
  transport.emit(sound(), { type: 'interrupted' })
  expect(devices.speaker.drops).toBe(1)
  expect(voice.state.state).toBe('listening')
  // A reply that restarts has the same message id, so only its audio shows it.
  transport.emit(sound())
  expect(devices.speaker.played).toHaveLength(2)
})

test('[VO4] after interrupt() the rest of the reply is not played, even if the model continues', async () => {
  const { voice, transport, devices } = await talk()
  transport.emit({ type: 'answer', phase: 'start' }, sound())
  voice.interrupt()
  expect(devices.speaker.drops).toBe(1)
  expect(transport.calls).toContain('interrupt chat-1')
  transport.emit(sound(), { type: 'interrupted' }, sound())
  transport.emit(sound())
  expect(devices.speaker.played).toHaveLength(1)
  transport.emit({ type: 'answer', phase: 'start' }, sound())
  expect(devices.speaker.played).toHaveLength(2)
})

test('[VO11] without a connection, the newest two seconds of speech wait for it', async () => {
  const { voice, microphone, transport } = await talk()
  transport.open = false
  microphone.speak(5_000)
  expect(voice.state).toMatchObject({ connected: false })
  transport.open = true
  microphone.speak(20)
  expect(transport.sent.map(({ length }) => length)).toEqual([64_000, 640])
  expect(voice.state).toMatchObject({ connected: true })
})

test('[VO11] a connection that does not come back ends the voice with a problem', async () => {
  const { voice, microphone, transport } = await talk({ giveUpAfterMs: 1_000 })
  transport.open = false
  microphone.speak(980)
  expect(voice.state).toMatchObject({ connected: false })
  microphone.speak(20)
  expect(voice.state).toMatchObject({ state: 'off', problem: { code: 'lost', what: 'connection' } })
  await settle()
  expect(microphone.closed).toBe(true)
})
