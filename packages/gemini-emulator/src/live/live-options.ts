/** How the Live side behaves where Gemini's models differ or a test wants something else. */
export interface LiveOptions {
  /** The kind of WebSocket frame the server sends. Default `binary`, as Gemini does. */
  readonly frames?: 'binary' | 'text'
  /**
   * Whether a turn that ends in blocking calls is completed at once. Default `by-model`: yes, except for
   * `gemini-3…-flash-live…`, which leaves the turn open until the calls are answered.
   */
  readonly toolTurnComplete?: boolean | 'by-model'
  /** Whether speech takes unanswered blocking calls back. Default true. */
  readonly cancelOnBargeIn?: boolean
  /**
   * `by-model` refuses TEXT for models that only speak (`native-audio`, `gemini-3…-flash-live…`), as Gemini does. Default
   * `any`: every model writes or speaks, whichever is asked.
   */
  readonly modalities?: 'any' | 'by-model'
  /**
   * `real-time` completes a spoken turn only when its audio could have been played, so that it can be interrupted till
   * then. Default `instant`.
   */
  readonly playback?: 'instant' | 'real-time'
  /** `false` leaves every setup without its `setupComplete`: for clients that must not wait for ever. Default true. */
  readonly completeSetup?: boolean
  /** Silence in the audio that ends an utterance, unless the setup says otherwise. Default 500. */
  readonly silenceMs?: number
  /** What an utterance is taken for when neither `hear()` nor `transcribe` says. Default `Hello.` */
  readonly utterance?: string
  /** How long a resumption handle is good for. Default two hours. */
  readonly handleLifetimeMs?: number
  /** Larger frames from a client close the connection with 1009. Default 16 MiB. */
  readonly maxFrameBytes?: number
  /** Unsent bytes at which the model stops speaking until the client has read. Default 1 MiB. */
  readonly maxBufferedBytes?: number
  /** How many frames are remembered for each session and direction. Default 1000. */
  readonly keepFrames?: number
  /** Keeps media in remembered frames; otherwise only their size is kept. Default false. */
  readonly recordAudio?: boolean
}

export type LiveSettings = Required<LiveOptions>

export function readLiveOptions(options: LiveOptions): LiveSettings {
  return {
    frames: 'binary',
    toolTurnComplete: 'by-model',
    cancelOnBargeIn: true,
    modalities: 'any',
    playback: 'instant',
    completeSetup: true,
    silenceMs: 500,
    utterance: 'Hello.',
    handleLifetimeMs: 2 * 60 * 60 * 1000,
    maxFrameBytes: 16 * 1024 * 1024,
    maxBufferedBytes: 1024 * 1024,
    keepFrames: 1000,
    recordAudio: false,
    ...options,
  }
}

/** Models that speak only and leave a turn open while their calls are unanswered. */
export function isThirdGeneration(model: string): boolean {
  return /^gemini-3\..*-flash-live/.test(model)
}
