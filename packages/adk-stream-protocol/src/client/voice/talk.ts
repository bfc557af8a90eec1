import type { LiveEvent } from '../socket/watched-chats.ts'
import type { WebSocketTransport } from '../transports/web-socket-transport.ts'
import type { AudioDevices, Microphone, Playback, Speaker } from './audio-devices.ts'
import { toProblem } from './audio-devices.ts'
import type { VoiceEvent } from './voice-state.ts'
import { defer } from '../../shared/async.ts'

/** The part of a transport that a voice needs. */
export type VoiceTransport = Pick<
  WebSocketTransport,
  'watch' | 'sendAudio' | 'endAudio' | 'interrupt'
>

export interface TalkOptions {
  readonly transport: VoiceTransport
  readonly chatId: string
  readonly devices: AudioDevices
  readonly deviceId: string | undefined
  /** The amount of speech without a connection after which the conversation ends, in ms. */
  readonly giveUpAfterMs: number
  /** Whether the microphone's audio is sent to the model now. */
  readonly isSending: () => boolean
  readonly isMuted: () => boolean
  readonly dispatch: (event: VoiceEvent) => void
  readonly onInput: (level: number) => void
  readonly onPlayback: (playback: Playback) => void
}

/** Frames that are sent after the button is released: device and browser add latency. */
const TAIL_FRAMES = 4

/** A voice between its start and its stop: a microphone, a speaker, and a watched chat. */
export class Talk {
  readonly #options: TalkOptions
  #backlog = NO_BACKLOG
  #microphone: Microphone | undefined
  #speaker: Speaker | undefined
  #leave: () => void = () => undefined
  #endClaim: () => void = () => undefined
  /** The user interrupted this reply. Not every model can be interrupted, so its audio is dropped here. */
  #isInterrupted = false
  #speech = SILENCE
  /** How much of the audio is sent. */
  #sending: 'nothing' | 'all' | { readonly frames: number } = 'nothing'
  /** The number of microphones that were requested. Only the newest is used. */
  #requested = 0
  #over = false
  /** Resolves when the conversation has started, or cannot start. Never rejects. */
  readonly opened: Promise<void>

  constructor(options: TalkOptions) {
    this.#options = options
    this.opened = this.#open()
  }

  /** Switches to another microphone. The current one stays in use until the other one is open. */
  async useDevice(deviceId: string | undefined): Promise<void> {
    const request = this.#requested + 1
    const isNewest = (): boolean => !this.#over && request === this.#requested
    try {
      await this.#listen(deviceId)
      if (isNewest()) this.#options.dispatch({ type: 'trouble', problem: undefined })
    } catch (error) {
      if (isNewest()) this.#options.dispatch({ type: 'trouble', problem: toProblem(error) })
    }
  }

  /** Starts or stops sending, as `isSending` says. */
  updateSending(): void {
    const { isSending, isMuted } = this.#options
    this.#microphone?.setMuted(isMuted())
    if (isSending()) this.#sending = 'all'
    else if (this.#sending === 'all')
      this.#sending = isMuted() ? this.#endAudio() : { frames: TAIL_FRAMES }
  }

  interrupt(): void {
    const { transport, chatId } = this.#options
    this.#speaker?.drop()
    this.#isInterrupted = true
    transport.interrupt(chatId)
  }

  close(): void {
    if (this.#over) return
    this.#over = true
    if (this.#sending !== 'nothing') this.#sending = this.#endAudio()
    this.#leave()
    this.#endClaim()
    this.#microphone?.close()
    this.#microphone = undefined
    this.#speaker?.close()
  }

  async #open(): Promise<void> {
    const { chatId, devices, deviceId, onPlayback, dispatch } = this.#options
    // Both at once: the browser requires a user gesture for each.
    const speaker = devices.openSpeaker({
      onPlayback: (playback) => this.#over || onPlayback(playback),
    })
    const results = await Promise.allSettled([this.#openSpeaker(speaker), this.#listen(deviceId)])
    if (this.#over) return
    const failed = results.find((result) => result.status === 'rejected')
    if (failed) return this.#fail({ type: 'stop', problem: toProblem(failed.reason) })
    this.#watch()
    this.#endClaim = claimVoice(chatId, () => this.#fail(TAKEN_OVER))
    dispatch({ type: 'opened' })
    this.updateSending()
  }

  async #openSpeaker(opening: Promise<Speaker>): Promise<void> {
    const speaker = await opening
    // The voice may have been stopped meanwhile.
    if (this.#over) speaker.close()
    else this.#speaker = speaker
  }

  async #listen(deviceId: string | undefined): Promise<void> {
    this.#requested += 1
    const own = this.#requested
    let microphone: Microphone | undefined
    const isInUse = (): boolean => microphone !== undefined && microphone === this.#microphone
    microphone = await this.#options.devices.openMicrophone({
      ...(deviceId !== undefined && { deviceId }),
      onSound: (bytes, level) => isInUse() && this.#onSound(bytes, level),
      onLost: () => isInUse() && this.#fail(LOST_MICROPHONE),
      onSilenced: (silenced) => {
        if (!isInUse()) return
        const problem = silenced ? ({ code: 'in-use' } as const) : undefined
        this.#options.dispatch({ type: 'trouble', problem })
      },
    })
    // The browser's prompt may have been open for minutes.
    if (this.#over || own !== this.#requested) return microphone.close()
    this.#microphone?.close()
    this.#microphone = microphone
    microphone.setMuted(this.#options.isMuted())
  }

  #watch(): void {
    const { transport, chatId } = this.#options
    const listener = (event: LiveEvent): void => {
      if (!this.#over) this.#onEvent(event)
    }
    this.#leave = transport.watch(chatId, listener, { audio: 'binary' })
  }

  #fail(ending: VoiceEvent & { type: 'stop' }): void {
    this.close()
    this.#options.dispatch(ending)
  }

  #onSound(bytes: Uint8Array<ArrayBuffer>, level: number): void {
    const { dispatch, onInput } = this.#options
    onInput(level)
    const before = this.#speech.speaking
    this.#speech = detectSpeech(this.#speech, level)
    if (before !== this.#speech.speaking)
      dispatch({ type: 'speaking', who: 'person', speaking: !before })
    if (this.#sending !== 'nothing') this.#send(bytes)
    if (typeof this.#sending === 'object') {
      const frames = this.#sending.frames - 1
      this.#sending = frames > 0 ? { frames } : this.#endAudio()
    }
  }

  /** Sends audio, after the audio that waits for a connection. */
  #send(bytes: Uint8Array<ArrayBuffer>): void {
    const { transport, dispatch, giveUpAfterMs } = this.#options
    const waiting = joinPieces(this.#backlog)
    const isSent = (!waiting || transport.sendAudio(waiting)) && transport.sendAudio(bytes)
    dispatch({ type: 'connected', connected: isSent })
    this.#backlog = isSent ? NO_BACKLOG : addPiece(this.#backlog, bytes)
    const missedMs = (this.#backlog.missedBytes * 1000) / BYTES_PER_SECOND
    if (!isSent && missedMs >= giveUpAfterMs) this.#fail(LOST_CONNECTION)
  }

  #endAudio(): 'nothing' {
    const { transport, chatId } = this.#options
    transport.endAudio(chatId)
    return 'nothing'
  }

  #onEvent(event: LiveEvent): void {
    const { dispatch } = this.#options
    switch (event.type) {
      case 'audio':
        if (!this.#isInterrupted) this.#speaker?.play(event.bytes)
        return
      case 'interrupted':
        // The audio that follows belongs to the next reply, or to a restart of this one (LV41).
        this.#speaker?.drop()
        return
      case 'answer':
        this.#isInterrupted = false
        if (event.phase === 'start') return dispatch({ type: 'answer-start' })
        return dispatch({ type: 'replying', replying: event.phase === 'step' })
      case 'transcript':
        if (event.author === 'model') return dispatch({ type: 'model-said', text: event.text })
        return dispatch({ type: 'person-said', text: event.text, final: event.final })
      case 'user-message':
        dispatch({ type: 'person-in-chat' })
        return dispatch({ type: 'person-said', text: '', final: true })
      case 'given-up':
        return this.#fail(LOST_CONNECTION)
      case 'turn':
        // A turn carries what the person has said before it (LV3).
        return dispatch({ type: 'person-in-chat' })
      case 'status':
        // LV880: another device of this person speaks in the chat.
        if (event.status === 'taken-over') this.#fail(TAKEN_OVER)
    }
  }
}

const LOST_MICROPHONE = { type: 'stop', problem: { code: 'lost', what: 'microphone' } } as const
const TAKEN_OVER = { type: 'stop', problem: { code: 'taken-over' } } as const
const LOST_CONNECTION = { type: 'stop', problem: { code: 'lost', what: 'connection' } } as const

/** 16 bit at 16 kHz. */
const BYTES_PER_SECOND = 32_000

/** The newest audio that could not be sent yet. Older audio is dropped. */
interface Backlog {
  readonly pieces: readonly Uint8Array<ArrayBuffer>[]
  /** All bytes that could not be sent, including those that were dropped. */
  readonly missedBytes: number
}

const NO_BACKLOG: Backlog = { pieces: [], missedBytes: 0 }

function addPiece({ pieces, missedBytes }: Backlog, piece: Uint8Array<ArrayBuffer>): Backlog {
  const kept = [...pieces, piece]
  // The server accepts at most 64 KiB in a frame, and two seconds of audio at once.
  while (sizeOf(kept) > 2 * BYTES_PER_SECOND) kept.shift()
  return { pieces: kept, missedBytes: missedBytes + piece.length }
}

function sizeOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0)
}

/** Returns all pieces as one, or undefined if there are none. */
function joinPieces({ pieces }: Backlog): Uint8Array<ArrayBuffer> | undefined {
  if (pieces.length === 0) return undefined
  const all = new Uint8Array(sizeOf(pieces))
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}

/** Whether the user seems to speak, for display. The server detects speech for the model. */
export interface SpeechDetection {
  readonly speaking: boolean
  /** The number of consecutive frames that contradict `speaking`. */
  readonly against: number
  /** The level of the background noise. */
  readonly noise: number
}

export const SILENCE: SpeechDetection = { speaking: false, against: 0, noise: 0.002 }

// About −40 dBFS. Anything quieter is not speech, even in a silent room.
const QUIETEST_SPEECH = 0.01
const ABOVE_NOISE = 3
/** In frames of 20 ms. A click is shorter than the onset, a pause within a sentence shorter than the hangover. */
const ONSET = 3
const HANGOVER = 25
// The noise level falls at once and rises within seconds: speech has pauses, noise does not.
const RISE = 1.005

/** Takes the level of one more frame into account. */
export function detectSpeech(before: SpeechDetection, level: number): SpeechDetection {
  const noise = Math.min(Math.max(level, 0.0005), before.noise * RISE)
  const isLoud = level > Math.max(QUIETEST_SPEECH, noise * ABOVE_NOISE)
  if (isLoud === before.speaking) return { ...before, against: 0, noise }
  const against = before.against + 1
  const isChange = against >= (before.speaking ? HANGOVER : ONSET)
  return isChange
    ? { speaking: !before.speaking, against: 0, noise }
    : { speaking: before.speaking, against, noise }
}

/**
 * Claims the voice of a chat for this page: a model cannot listen to two microphones. Another page of the browser that claims it later
 * takes it over, and `onTaken` is called here. Returns a function that ends the claim.
 */
function claimVoice(chatId: string, onTaken: () => void): () => void {
  const { navigator } = globalThis as { navigator?: { readonly locks?: LockManager } }
  let isHeld = true
  const released = defer()
  navigator?.locks
    ?.request(`adk-voice/${chatId}`, { steal: true }, () => released.promise)
    .catch((error: unknown) => {
      // Another error: the page may be forbidden to use locks.
      if (isHeld && error instanceof Error && error.name === 'AbortError') onTaken()
    })
  return () => {
    isHeld = false
    released.resolve()
  }
}
