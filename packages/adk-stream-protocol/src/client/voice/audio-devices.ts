/** The devices that a voice uses; those of the browser are `browserAudio()`. */
export interface AudioDevices {
  /** Asks for a microphone. Throws what `toProblem` understands. */
  openMicrophone(options: MicrophoneOptions): Promise<Microphone>
  /** Called in the person's gesture, without which a page may make no sound. */
  openSpeaker(options: SpeakerOptions): Promise<Speaker>
}

/** Which microphone is opened, and who hears it. */
export interface MicrophoneOptions {
  readonly deviceId?: string
  /** 20 ms of sound: 16 bit PCM at 16 kHz, and how loud it is, from 0 to 1. */
  readonly onSound: (bytes: Uint8Array<ArrayBuffer>, level: number) => void
  /** The microphone was pulled out, or the permission taken back. */
  readonly onLost: () => void
}

/** A microphone that is open. */
export interface Microphone {
  /** The device that it is. */
  readonly deviceId: string | undefined
  setMuted(muted: boolean): void
  close(): void
}

/** Who is told what became of the sound. */
export interface SpeakerOptions {
  readonly onPlayback: (playback: Playback) => void
}

/** What became of the sound, in samples of 24 kHz. */
export interface Playback {
  readonly playing: boolean
  /** How loud it is, from 0 to 1. */
  readonly level: number
  readonly played: number
  /** Waits to be played. */
  readonly buffered: number
  /** Was never played: interrupted, or more than fits. */
  readonly dropped: number
  /** How often the sound came too late. */
  readonly underruns: number
}

/** What the model's speech is played by. */
export interface Speaker {
  /** 16 bit PCM at 24 kHz. */
  play(bytes: ArrayBuffer): void
  /** Falls silent at once. */
  drop(): void
  close(): void
}
