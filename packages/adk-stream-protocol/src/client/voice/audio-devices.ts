/** The microphone and the speaker that a `Voice` uses. `browserAudio()` returns those of the browser. */
export interface AudioDevices {
  /** Opens a microphone. Throws an error that `toProblem` can convert. */
  openMicrophone(options: MicrophoneOptions): Promise<Microphone>
  /** Must be called in a user gesture: without one, a page may not play audio. */
  openSpeaker(options: SpeakerOptions): Promise<Speaker>
}

/**
 * Options of `openMicrophone`.
 *
 * @inline
 */
export interface MicrophoneOptions {
  readonly deviceId?: string
  /** Called with 20 ms of audio (16 bit PCM at 16 kHz) and its level, from 0 to 1. */
  readonly onSound: (bytes: Uint8Array<ArrayBuffer>, level: number) => void
  /** Called when the microphone is unplugged or the permission is withdrawn. */
  readonly onLost: () => void
}

/**
 * An open microphone.
 *
 * @inline
 */
export interface Microphone {
  readonly deviceId: string | undefined
  setMuted(muted: boolean): void
  close(): void
}

/**
 * Options of `openSpeaker`.
 *
 * @inline
 */
export interface SpeakerOptions {
  readonly onPlayback: (playback: Playback) => void
}

/** The state of the playback. Counts are samples at 24 kHz. */
export interface Playback {
  readonly playing: boolean
  /** The level, from 0 to 1. */
  readonly level: number
  readonly played: number
  /** Samples that wait to be played. */
  readonly buffered: number
  /** Samples that were never played: interrupted, or more than the buffer holds. */
  readonly dropped: number
  /** How often audio arrived too late. */
  readonly underruns: number
}

/**
 * Plays the model's speech.
 *
 * @inline
 */
export interface Speaker {
  /** 16 bit PCM at 24 kHz. */
  play(bytes: ArrayBuffer): void
  /** Stops at once and drops what is buffered. */
  drop(): void
  close(): void
}
