import type { VoiceOptions } from '../../../src/client/voice/index.ts'
import type { VoiceState } from '../../../src/client/voice/voice-state.ts'
import { Voice } from '../../../src/client/voice/index.ts'
import { FakeDevices } from './fake-devices.ts'
import { FakeTransport } from './fake-transport.ts'

/** A voice that is off, with its transport and devices. */
export function setUp(options: Partial<VoiceOptions> = {}) {
  const devices = new FakeDevices()
  const transport = new FakeTransport()
  const voice = new Voice({ transport, chatId: 'chat-1', devices, ...options })
  const states: VoiceState[] = []
  voice.subscribe(() => states.push(voice.state))
  return { devices, transport, voice, states }
}

/** A voice that is on. */
export async function talk(options: Partial<VoiceOptions> = {}) {
  const world = setUp(options)
  const started = world.voice.start()
  const microphone = await world.devices.allow()
  await started
  return { ...world, microphone }
}

/** 100 ms of the model's speech. */
export const sound = () => ({ type: 'audio', bytes: new ArrayBuffer(4_800) }) as const
