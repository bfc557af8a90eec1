export type { AudioDevices } from './audio-devices.ts'
export { listMicrophones } from './audio-devices.ts'
export { Voice, type VoiceOptions } from './voice.ts'
