type MusicState =
  | { readonly state: 'silent' }
  | { readonly state: 'playing'; readonly track: Track; readonly muted: boolean }

/** The time constant of a volume change. */
const EASE_SECONDS = 0.05
const FADE_SECONDS = 0.4

/** The background music, shared by all chats of the page. */
class Music {
  #state: MusicState = { state: 'silent' }
  #output: AudioOutput | undefined
  /** The remaining part of the volume while a person or the model speaks, from 0 to 1. */
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

  /** Cross-fades to a track. */
  async play(track: Track): Promise<void> {
    const output = (this.#output ??= openOutput())
    resumeContext(output.context)
    const buffer = await this.#render(track, output.context.sampleRate)
    this.#crossFade(output, buffer)
    const muted = this.#state.state === 'playing' && this.#state.muted
    this.#setState({ state: 'playing', track, muted })
    this.#setVolume()
  }

  setMuted(muted: boolean): void {
    if (this.#state.state === 'silent' || !this.#output) return
    if (!muted) resumeContext(this.#output.context)
    this.#setState({ ...this.#state, muted })
    this.#setVolume()
  }

  /** Fades out. */
  stop(): void {
    if (this.#output) this.#fadeOut(this.#output)
    this.#setState({ state: 'silent' })
  }

  /** Lowers the volume during speech to `level` (0 to 1). */
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

  #crossFade(output: AudioOutput, buffer: AudioBuffer): void {
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

  #setState(state: MusicState): void {
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

/** Browsers block audio until the first user gesture. Resumes the context now and at the next gesture. */
function resumeContext(context: AudioContext): void {
  // Resolves at the next gesture, which may never come.
  const resume = () => void context.resume()
  resume()
  for (const touch of ['pointerdown', 'keydown']) {
    document.addEventListener(touch, resume, { once: true, passive: true })
  }
}

/** Background volume. */
const VOLUME = 0.25

interface Loudness {
  readonly muted: boolean
  /** The remaining part of the volume during speech, from 0 to 1. */
  readonly duckedTo: number
}

/** Returns the volume of the music, from 0 to 1. */
export function volumeOf({ muted, duckedTo }: Loudness): number {
  return muted ? 0 : VOLUME * Math.min(1, Math.max(0, duckedTo))
}

const ATTACK_SECONDS = 0.02

/** Renders a loop to audio once. The browser then repeats it without a gap or a timer. */
function renderLoop(loop: Loop, sampleRate: number): Promise<AudioBuffer> {
  const stepSeconds = 30 / loop.beatsPerMinute
  const seconds = loop.steps * stepSeconds
  const context = new OfflineAudioContext(1, Math.round(seconds * sampleRate), sampleRate)
  for (const voice of loop.voices) playVoice(context, voice, stepSeconds)
  return context.startRendering()
}

function playVoice(context: OfflineAudioContext, voice: Voice, stepSeconds: number): void {
  for (const [step, note] of voice.notes.entries()) {
    if (note === undefined) continue
    const from = step * stepSeconds
    const until = from + voice.length * stepSeconds
    const oscillator = new OscillatorNode(context, {
      type: voice.wave,
      frequency: 440 * 2 ** ((note - 69) / 12),
    })
    const envelope = new GainNode(context, { gain: 0 })
    envelope.gain.setValueAtTime(0, from)
    envelope.gain.linearRampToValueAtTime(voice.gain, from + ATTACK_SECONDS)
    envelope.gain.linearRampToValueAtTime(0, until)
    oscillator.connect(envelope).connect(context.destination)
    oscillator.start(from)
    oscillator.stop(until)
  }
}

type Track = 1 | 2

/** A short looping piece: tempo and voices, in steps of an eighth note. */
interface Loop {
  readonly beatsPerMinute: number
  readonly steps: number
  readonly voices: readonly Voice[]
}

interface Voice {
  readonly wave: OscillatorType
  readonly gain: number
  /** How long a note sounds, in steps. */
  readonly length: number
  /** One entry per step: the MIDI number of a note, or a rest. */
  readonly notes: readonly (number | undefined)[]
}

/** Two loops: a calm one in C major and a lively one in A minor. */
const LOOPS: Readonly<Record<Track, Loop>> = {
  1: {
    beatsPerMinute: 72,
    steps: 32,
    voices: [
      { wave: 'sine', gain: 0.5, length: 8, notes: sparse('48 - - - - - - - 45 - - - - - - -', 2) },
      {
        wave: 'triangle',
        gain: 0.3,
        length: 3,
        notes: score(
          '64 - 67 - 72 - 67 - 64 - 69 - 72 - 69 - 65 - 69 - 72 - 69 - 62 - 67 - 71 - 67 -',
        ),
      },
    ],
  },
  2: {
    beatsPerMinute: 132,
    steps: 32,
    voices: [
      {
        wave: 'triangle',
        gain: 0.5,
        length: 0.9,
        notes: score(
          '45 45 57 45 45 57 45 57 41 41 53 41 41 53 41 53 48 48 60 48 48 60 48 60 43 43 55 43 43 55 43 55',
        ),
      },
      {
        wave: 'square',
        gain: 0.12,
        length: 0.8,
        notes: score(
          '69 - 72 76 - 74 72 - 69 - 72 77 - 76 72 - 67 - 72 76 - 74 72 - 71 - 74 79 - 77 74 71',
        ),
      },
    ],
  },
}

function score(written: string): (number | undefined)[] {
  return written.split(' ').map((note) => (note === '-' ? undefined : Number(note)))
}

function sparse(written: string, times: number): (number | undefined)[] {
  return Array.from({ length: times }, () => score(written)).flat()
}
