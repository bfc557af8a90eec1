import type { AudioDevices, Playback } from './audio-devices.ts'
import type { BrowserAudioOptions } from './browser-audio.ts'
import { browserAudio } from './browser-audio.ts'
import type { VoiceTransport } from './talk.ts'
import { Talk } from './talk.ts'
import type { VoiceEvent, VoiceMode, VoiceModel, VoiceState } from './voice-state.ts'
import { nextVoice, startModel, toVoiceState } from './voice-state.ts'

export type { VoiceTransport } from './talk.ts'

/** Whom a voice talks to, and how. */
export interface VoiceOptions extends BrowserAudioOptions {
  /** Of `webSocketTransport()`. One transport speaks in one chat at a time. */
  readonly transport: VoiceTransport
  readonly chatId: string
  /** Default `hands-free`. */
  readonly mode?: VoiceMode
  /** The microphone to begin with; default: the one that the browser takes. */
  readonly deviceId?: string
  /** Speech without a connection after which the voice is turned off, in ms. Default 30,000. */
  readonly giveUpAfterMs?: number
  /** Default: those of the browser. */
  readonly devices?: AudioDevices
}

/** How loud both sides are, from 0 to 1. */
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

/** Talking to a chat's agent: what the microphone hears goes to the model, what the model says is played. */
export class Voice {
  readonly #options: VoiceOptions
  readonly #devices: AudioDevices
  readonly #listeners = new Set<() => void>()
  readonly #levelListeners = new Set<(level: VoiceLevel) => void>()
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

  /** What became of the sound that came. */
  get playback(): Playback {
    return this.#playback
  }

  /** Tells of every change of `state`. Give back ends it. */
  readonly subscribe = (listener: () => void): (() => void) => subscribe(this.#listeners, listener)

  /** Tells how loud it is, some fifty times a second: for a meter, apart from the state. */
  onLevel(listener: (level: VoiceLevel) => void): () => void {
    return subscribe(this.#levelListeners, listener)
  }

  /** Tells when somebody begins to speak and when all are silent, for other sounds to make room. */
  onSpeaking(listener: (speaking: boolean) => void): () => void {
    let before = isSpeaking(this.#state)
    return this.subscribe(() => {
      const now = isSpeaking(this.#state)
      if (now !== before) listener(now)
      before = now
    })
  }

  /** Asks for the microphone and begins. Call it from a click. Resolves when `state` tells what came of it; never rejects. */
  start(): Promise<void> {
    if (this.#talk) return this.#talk.opened
    this.#tell({ type: 'start' })
    this.#talk = this.#begin()
    return this.#talk.opened
  }

  stop(): void {
    this.#tell({ type: 'stop' })
    this.#end()
  }

  /** Falls silent at once, and lets the model know. */
  interrupt(): void {
    this.#talk?.interrupt()
  }

  setMuted(muted: boolean): void {
    this.#tell({ type: 'muted', muted })
    this.#talk?.hearing()
  }

  setMode(mode: VoiceMode): void {
    this.#tell({ type: 'mode', mode })
    this.#talk?.hearing()
  }

  /** Takes another microphone; without a name, the one that the browser takes. */
  async setDevice(deviceId: string | undefined): Promise<void> {
    this.#deviceId = deviceId
    await this.#talk?.useDevice(deviceId)
  }

  /** Push-to-talk: the person is heard from now on. What the model is saying ends. */
  press(): void {
    const { state, mode, muted } = this.#state
    if (state === 'off' || state === 'asking' || mode !== 'push-to-talk' || muted) return
    if (state === 'model-speaking') this.interrupt()
    this.#tell({ type: 'held', held: true })
    this.#talk?.hearing()
  }

  /** Push-to-talk: that was all. */
  release(): void {
    this.#tell({ type: 'held', held: false })
    this.#talk?.hearing()
  }

  #begin(): Talk {
    const { transport, chatId, giveUpAfterMs = 30_000 } = this.#options
    return new Talk({
      transport,
      chatId,
      giveUpAfterMs,
      devices: this.#devices,
      deviceId: this.#deviceId,
      isHeard: () => isHeard(this.#state),
      isMuted: () => this.#state.muted,
      tell: (event) => {
        this.#tell(event)
        if (event.type === 'stop') this.#end()
      },
      onInput: (input) => this.#showLevel({ ...this.#level, input }),
      onPlayback: (playback) => this.#played(playback),
    })
  }

  #end(): void {
    this.#talk?.close()
    this.#talk = undefined
    this.#played({ ...this.#playback, playing: false, level: 0, buffered: 0 })
    this.#showLevel({ input: 0, output: 0 })
  }

  #played(playback: Playback): void {
    this.#playback = playback
    this.#showLevel({ ...this.#level, output: playback.level })
    this.#tell({ type: 'speaking', who: 'model', speaking: playback.playing })
  }

  #showLevel(level: VoiceLevel): void {
    this.#level = level
    for (const listener of this.#levelListeners) listener(level)
  }

  #tell(event: VoiceEvent): void {
    const next = nextVoice(this.#model, event)
    if (next === this.#model) return
    this.#model = next
    this.#state = toVoiceState(next)
    for (const listener of this.#listeners) listener()
  }
}

function isHeard(state: VoiceState): boolean {
  if (state.state === 'off' || state.state === 'asking' || state.muted) return false
  return state.mode === 'hands-free' || state.held
}

function isSpeaking({ state }: VoiceState): boolean {
  return state === 'person-speaking' || state === 'model-speaking'
}

function subscribe<Listener>(listeners: Set<Listener>, listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
