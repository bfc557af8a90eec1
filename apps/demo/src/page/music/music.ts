import { LOOPS, type Track } from './loops.ts'
import { renderLoop } from './render-loop.ts'
import { volumeOf } from './volume.ts'

type MusicState =
  | { readonly state: 'silent' }
  | { readonly state: 'playing'; readonly track: Track; readonly muted: boolean }

/** Seconds in which the volume comes near to a new one. */
const EASE_SECONDS = 0.05
const FADE_SECONDS = 0.4

/** The music of the page; one for the whole page, whichever chat is open. */
class Music {
  #state: MusicState = { state: 'silent' }
  #output: AudioOutput | undefined
  /** What is left of the volume while somebody speaks. */
  #duckedTo = 1
  #playing: { readonly source: AudioBufferSourceNode; readonly fader: GainNode } | undefined
  readonly #buffers = new Map<Track, Promise<AudioBuffer>>()
  readonly #listeners = new Set<() => void>()

  /** For `useSyncExternalStore`. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
  readonly read = (): MusicState => this.#state

  /** Fades over to a track. */
  async play(track: Track): Promise<void> {
    const output = (this.#output ??= openOutput())
    wake(output.context)
    const buffer = await this.#render(track, output.context.sampleRate)
    this.#fadeOver(output, buffer)
    const muted = this.#state.state === 'playing' && this.#state.muted
    this.#become({ state: 'playing', track, muted })
    this.#setVolume()
  }

  setMuted(muted: boolean): void {
    if (this.#state.state === 'silent' || !this.#output) return
    if (!muted) wake(this.#output.context)
    this.#become({ ...this.#state, muted })
    this.#setVolume()
  }

  /** Lets the music fade out. */
  stop(): void {
    if (this.#output) this.#fadeOut(this.#output)
    this.#become({ state: 'silent' })
  }

  /** Plays more softly while somebody speaks; `level` is what is left of the volume, from 0 to 1. */
  duck(level = 0.2): void {
    this.#duckedTo = level
    this.#setVolume()
  }

  unduck(): void {
    this.duck(1)
  }

  #setVolume(): void {
    if (!this.#output) return
    const { context, master } = this.#output
    const muted = this.#state.state === 'playing' && this.#state.muted
    const volume = volumeOf({ muted, duckedTo: this.#duckedTo })
    master.gain.setTargetAtTime(volume, context.currentTime, EASE_SECONDS)
  }

  #fadeOut({ context }: AudioOutput): void {
    if (!this.#playing) return
    const { fader, source } = this.#playing
    fader.gain.setTargetAtTime(0, context.currentTime, FADE_SECONDS / 3)
    source.stop(context.currentTime + FADE_SECONDS * 2)
    this.#playing = undefined
  }

  #fadeOver(output: AudioOutput, buffer: AudioBuffer): void {
    const { context, master } = output
    this.#fadeOut(output)
    const source = new AudioBufferSourceNode(context, { buffer, loop: true })
    const fader = new GainNode(context, { gain: 0 })
    fader.gain.setTargetAtTime(1, context.currentTime, FADE_SECONDS / 3)
    source.connect(fader).connect(master)
    source.start()
    this.#playing = { source, fader }
  }

  #render(track: Track, sampleRate: number): Promise<AudioBuffer> {
    const known = this.#buffers.get(track)
    if (known) return known
    const rendering = renderLoop(LOOPS[track], sampleRate)
    this.#buffers.set(track, rendering)
    return rendering
  }

  #become(state: MusicState): void {
    this.#state = state
    for (const listener of this.#listeners) listener()
  }
}

export const music = new Music()

interface AudioOutput {
  readonly context: AudioContext
  readonly master: GainNode
}

function openOutput(): AudioOutput {
  const context = new AudioContext()
  const master = new GainNode(context, { gain: volumeOf({ muted: false, duckedTo: 1 }) })
  master.connect(context.destination)
  return { context, master }
}

/** A page that nobody has touched yet may not make a sound: it begins with the first touch. */
function wake(context: AudioContext): void {
  // Waits for the touch; nobody waits for it.
  const resume = () => void context.resume()
  resume()
  for (const touch of ['pointerdown', 'keydown']) {
    document.addEventListener(touch, resume, { once: true, passive: true })
  }
}
