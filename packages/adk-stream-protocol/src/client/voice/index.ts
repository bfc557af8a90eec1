export type { AudioDevices } from './audio-devices.ts'
export { listMicrophones, type MicrophoneChoice } from './audio-devices.ts'
export { Voice, type VoiceOptions } from './voice.ts'
export type { VoiceState } from './voice-state.ts'
