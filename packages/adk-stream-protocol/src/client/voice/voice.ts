import { Listeners } from '../../shared/collections.ts'
import type { AudioDevices, Playback, BrowserAudioOptions } from './audio-devices.ts'
import { browserAudio } from './audio-devices.ts'
import type { VoiceTransport } from './talk.ts'
import { Talk } from './talk.ts'
import type { VoiceEvent, VoiceMode, VoiceModel, VoiceState } from './voice-state.ts'
import { nextVoice, startModel, toVoiceState } from './voice-state.ts'

export type { VoiceTransport } from './talk.ts'

/** Options of `Voice`. */
export interface VoiceOptions extends BrowserAudioOptions {
  /** The transport of `webSocketTransport()`. It carries the audio of one chat at a time. */
  readonly transport: VoiceTransport
  readonly chatId: string
  /** Default `hands-free`. */
  readonly mode?: VoiceMode
  /** The microphone to use. Default: the browser's choice. */
  readonly deviceId?: string
  /** The amount of speech without a connection after which the voice stops, in ms. Default 30,000. */
  readonly giveUpAfterMs?: number
  /** Default: `browserAudio()`. */
  readonly devices?: AudioDevices
}

/**
 * The levels of both sides, from 0 to 1.
 *
 * @inline
 */
export interface VoiceLevel {
  readonly input: number
  readonly output: number
}

const NOTHING_PLAYED: Playback = {
  playing: false,
  level: 0,
  played: 0,
  buffered: 0,
  dropped: 0,
  underruns: 0,
}

/** A spoken conversation with a chat's agent. Sends the microphone's audio to the model and plays the model's speech. */
export class Voice {
  readonly #options: VoiceOptions
  readonly #devices: AudioDevices
  readonly #listeners = new Listeners()
  readonly #levelListeners = new Listeners<[VoiceLevel]>()
  #model: VoiceModel
  #state: VoiceState
  #talk: Talk | undefined
  #deviceId: string | undefined
  #level: VoiceLevel = { input: 0, output: 0 }
  #playback = NOTHING_PLAYED

  constructor(options: VoiceOptions) {
    this.#options = options
    this.#devices = options.devices ?? browserAudio(options)
    this.#deviceId = options.deviceId
    this.#model = startModel({ mode: options.mode ?? 'hands-free', muted: false })
    this.#state = toVoiceState(this.#model)
  }

  /** A snapshot for `useSyncExternalStore`. */
  get state(): VoiceState {
    return this.#state
  }

  /** The state of the playback. */
  get playback(): Playback {
    return this.#playback
  }

  /** Calls the listener when `state` changes. Returns a function that unsubscribes. */
  readonly subscribe = (listener: () => void): (() => void) => this.#listeners.add(listener)

  /** Calls the listener with the levels, about fifty times a second. Returns a function that unsubscribes. */
  onLevel(listener: (level: VoiceLevel) => void): () => void {
    return this.#levelListeners.add(listener)
  }

  /** Calls the listener when speech starts and ends, so that other sounds can be lowered. Returns a function that unsubscribes. */
  onSpeaking(listener: (speaking: boolean) => void): () => void {
    let before = isSpeaking(this.#state)
    return this.subscribe(() => {
      const now = isSpeaking(this.#state)
      if (now !== before) listener(now)
      before = now
    })
  }

  /** Opens the microphone and starts. Call it in a click handler. Resolves when `state` shows the result; never rejects. */
  start(): Promise<void> {
    if (this.#talk) return this.#talk.opened
    this.#dispatch({ type: 'start' })
    this.#talk = this.#start()
    return this.#talk.opened
  }

  stop(): void {
    this.#dispatch({ type: 'stop' })
    this.#end()
  }

  /** Stops the playback at once and tells the server to interrupt the model. */
  interrupt(): void {
    this.#talk?.interrupt()
  }

  setMuted(muted: boolean): void {
    this.#dispatch({ type: 'muted', muted })
    this.#talk?.updateSending()
  }

  setMode(mode: VoiceMode): void {
    this.#dispatch({ type: 'mode', mode })
    this.#talk?.updateSending()
  }

  /** Switches to another microphone. `undefined`: the browser's choice. */
  async setDevice(deviceId: string | undefined): Promise<void> {
    this.#deviceId = deviceId
    await this.#talk?.useDevice(deviceId)
  }

  /** Push-to-talk: starts sending. Interrupts the model. */
  press(): void {
    const { state, mode, muted } = this.#state
    if (state === 'off' || state === 'asking' || mode !== 'push-to-talk' || muted) return
    if (state === 'model-speaking') this.interrupt()
    this.#dispatch({ type: 'held', held: true })
    this.#talk?.updateSending()
  }

  /** Push-to-talk: stops sending. */
  release(): void {
    this.#dispatch({ type: 'held', held: false })
    this.#talk?.updateSending()
  }

  #start(): Talk {
    const { transport, chatId, giveUpAfterMs = 30_000 } = this.#options
    return new Talk({
      transport,
      chatId,
      giveUpAfterMs,
      devices: this.#devices,
      deviceId: this.#deviceId,
      isSending: () => isSending(this.#state),
      isMuted: () => this.#state.muted,
      dispatch: (event) => {
        this.#dispatch(event)
        if (event.type === 'stop') this.#end()
      },
      onInput: (input) => this.#showLevel({ ...this.#level, input }),
      onPlayback: (playback) => this.#onPlayback(playback),
    })
  }

  #end(): void {
    this.#talk?.close()
    this.#talk = undefined
    this.#onPlayback({ ...this.#playback, playing: false, level: 0, buffered: 0 })
    this.#showLevel({ input: 0, output: 0 })
  }

  #onPlayback(playback: Playback): void {
    this.#playback = playback
    this.#showLevel({ ...this.#level, output: playback.level })
    this.#dispatch({ type: 'speaking', who: 'model', speaking: playback.playing })
  }

  #showLevel(level: VoiceLevel): void {
    this.#level = level
    this.#levelListeners.call(level)
  }

  #dispatch(event: VoiceEvent): void {
    const next = nextVoice(this.#model, event)
    if (next === this.#model) return
    this.#model = next
    this.#state = toVoiceState(next)
    this.#listeners.call()
  }
}

function isSending(state: VoiceState): boolean {
  if (state.state === 'off' || state.state === 'asking' || state.muted) return false
  return state.mode === 'hands-free' || state.held
}

function isSpeaking({ state }: VoiceState): boolean {
  return state === 'person-speaking' || state === 'model-speaking'
}
