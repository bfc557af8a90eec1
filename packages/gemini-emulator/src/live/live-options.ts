/** Options of the Live server: differences between Gemini's models, and limits. */
export interface LiveOptions {
  /** The type of the WebSocket frames that the server sends. Default `binary`, as Gemini does. */
  readonly frames?: 'binary' | 'text'
  /**
   * Whether a turn that ends with blocking calls completes immediately. Default `by-model`: true, except for
   * `gemini-3…-flash-live…`, which leaves the turn open until the calls have their responses.
   */
  readonly toolTurnComplete?: boolean | 'by-model'
  /** Whether a barge-in cancels pending blocking calls. Default true. */
  readonly cancelOnBargeIn?: boolean
  /**
   * `by-model` rejects TEXT for audio-only models (`native-audio`, `gemini-3…-flash-live…`), as Gemini does. Default
   * `any`: every model supports TEXT and AUDIO.
   */
  readonly modalities?: 'any' | 'by-model'
  /**
   * `real-time` completes a spoken turn only after its audio has had time to play, and it can be interrupted until then.
   * Default `instant`.
   */
  readonly playback?: 'instant' | 'real-time'
  /** `false` never sends `setupComplete`, to test the timeout of a client. Default true. */
  readonly completeSetup?: boolean
  /** Milliseconds of silence that end an utterance, unless the setup sets them. Default 500. */
  readonly silenceMs?: number
  /** The transcript of an utterance without a queued one and without `transcribe`. Default `Hello.` */
  readonly defaultTranscript?: string
  /**
   * How long a connection lives. `goAway` announces its end, a minute before or after half of the time. Then it closes with 1011. Default
   * 58 minutes.
   */
  readonly lifetimeMs?: number
  /** How long a pong takes. Gemini takes up to 30 seconds. Default 0. */
  readonly pongDelayMs?: number
  /** How often the model repeats a call whose result is empty. Default `by-model`: twice for `gemini-3.8-live`, never for others. */
  readonly repeatsEmptyCalls?: number | 'by-model'
  /** The lifetime of a resumption handle. Default two hours. */
  readonly handleLifetimeMs?: number
  /** The code that closes the connection for a handle that is unknown or has expired. Default 1008. Gemini also uses 1007. */
  readonly refusedHandleCode?: number
  /** The maximum size of a client frame. A larger one closes the connection with 1009. Default 16 MiB. */
  readonly maxFrameBytes?: number
  /** The number of unsent bytes at which the model waits for the client. Default 1 MiB. */
  readonly maxBufferedBytes?: number
  /** The number of frames to keep for each session and direction. Default 1000. */
  readonly keepFrames?: number
  /** Keeps the media of recorded frames instead of only their size. Default false. */
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
    defaultTranscript: 'Hello.',
    lifetimeMs: 58 * 60 * 1000,
    pongDelayMs: 0,
    repeatsEmptyCalls: 'by-model',
    handleLifetimeMs: 2 * 60 * 60 * 1000,
    refusedHandleCode: 1008,
    maxFrameBytes: 16 * 1024 * 1024,
    maxBufferedBytes: 1024 * 1024,
    keepFrames: 1000,
    recordAudio: false,
    ...options,
  }
}

/** Returns whether the model is audio-only and leaves a turn open while calls are pending. */
export function isThirdGeneration(model: string): boolean {
  return /^gemini-3\..*-flash-live/.test(model)
}

/** Whether the calls of a model are non-blocking unless their functions are declared `BLOCKING`: `gemini-3.8-live`. */
export function isNonBlockingByDefault(model: string): boolean {
  return /^gemini-3\.\d+-live/.test(model)
}
