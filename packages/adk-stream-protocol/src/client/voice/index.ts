export type {
  AudioDevices,
  Microphone,
  MicrophoneOptions,
  Playback,
  Speaker,
  SpeakerOptions,
} from './audio-devices.ts'
export type { BrowserAudioOptions, MicrophoneChoice } from './browser-audio.ts'
export { browserAudio, listMicrophones } from './browser-audio.ts'
export type { VoiceLevel, VoiceOptions, VoiceTransport } from './voice.ts'
export { Voice } from './voice.ts'
export type { VoiceProblem } from './voice-problem.ts'
export type { ActiveVoice, VoiceMode, VoiceState, VoiceTranscript } from './voice-state.ts'
