import { LOOPS, type Track } from './loops.ts'
import { renderLoop } from './render-loop.ts'

type MusicState =
  | { readonly state: 'silent' }
  | { readonly state: 'playing'; readonly track: Track; readonly muted: boolean }

const VOLUME = 0.25
const FADE_SECONDS = 0.4

/** The music of the page; one for the whole page, whichever chat is open. */
class Music {
  #state: MusicState = { state: 'silent' }
  #stage: Stage | undefined
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
    const stage = (this.#stage ??= openStage())
    wake(stage.context)
    const buffer = await this.#render(track, stage.context.sampleRate)
    this.#fadeOver(stage, buffer)
    const muted = this.#state.state === 'playing' && this.#state.muted
    this.#become({ state: 'playing', track, muted })
  }

  setMuted(muted: boolean): void {
    if (this.#state.state === 'silent' || !this.#stage) return
    const { context, master } = this.#stage
    master.gain.setTargetAtTime(muted ? 0 : VOLUME, context.currentTime, 0.05)
    if (!muted) wake(context)
    this.#become({ ...this.#state, muted })
  }

  #fadeOver({ context, master }: Stage, buffer: AudioBuffer): void {
    const now = context.currentTime
    const before = this.#playing
    if (before) {
      before.fader.gain.setTargetAtTime(0, now, FADE_SECONDS / 3)
      before.source.stop(now + FADE_SECONDS * 2)
    }
    const source = new AudioBufferSourceNode(context, { buffer, loop: true })
    const fader = new GainNode(context, { gain: 0 })
    fader.gain.setTargetAtTime(1, now, FADE_SECONDS / 3)
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

interface Stage {
  readonly context: AudioContext
  readonly master: GainNode
}

function openStage(): Stage {
  const context = new AudioContext()
  const master = new GainNode(context, { gain: VOLUME })
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
