import type { LiveEvent } from '../socket/chat-subscriptions.ts'
import type { WebSocketTransport } from '../transports/web-socket-transport.ts'
import type { AudioDevices, Microphone, Playback, Speaker } from './audio-devices.ts'
import { SoundBacklog } from './sound-backlog.ts'
import { detectSpeech, SILENCE } from './speech-detector.ts'
import { toProblem } from './voice-problem.ts'
import type { VoiceEvent } from './voice-state.ts'

/** What a voice needs of a transport. */
export type VoiceTransport = Pick<
  WebSocketTransport,
  'watch' | 'sendAudio' | 'endAudio' | 'interrupt'
>

export interface TalkOptions {
  readonly transport: VoiceTransport
  readonly chatId: string
  readonly devices: AudioDevices
  readonly deviceId: string | undefined
  /** Speech without a connection after which it is given up, in ms. */
  readonly giveUpAfterMs: number
  /** Whether what the microphone hears is meant for the model now. */
  readonly isHeard: () => boolean
  readonly isMuted: () => boolean
  readonly tell: (event: VoiceEvent) => void
  readonly onInput: (level: number) => void
  readonly onPlayback: (playback: Playback) => void
}

/** Frames that are sent after the person let go: a word ends in the device and in the browser later than in the mouth. */
const TAIL_FRAMES = 4

/** A voice from its start to its stop: a microphone, a speaker, and a chat that is watched. */
export class Talk {
  readonly #options: TalkOptions
  readonly #backlog = new SoundBacklog()
  #microphone: Microphone | undefined
  #speaker: Speaker | undefined
  #leave: () => void = () => undefined
  /** The person wants to hear no more of this answer, and not every model can be told so. */
  #isHushed = false
  #speech = SILENCE
  /** How much of an utterance is still to be sent. */
  #sending: 'nothing' | 'all' | { readonly frames: number } = 'nothing'
  /** Counts the microphones that were asked for: the newest is wanted. */
  #asked = 0
  #over = false
  /** Resolves when the talk is on, or cannot be. Never rejects. */
  readonly opened: Promise<void>

  constructor(options: TalkOptions) {
    this.#options = options
    this.opened = this.#open()
  }

  /** Listens to another microphone. The one before stays until the other one is there. */
  async useDevice(deviceId: string | undefined): Promise<void> {
    const asked = this.#asked + 1
    const isNewest = (): boolean => !this.#over && asked === this.#asked
    try {
      await this.#listen(deviceId)
      if (isNewest()) this.#options.tell({ type: 'trouble', problem: undefined })
    } catch (error) {
      if (isNewest()) this.#options.tell({ type: 'trouble', problem: toProblem(error) })
    }
  }

  /** The person is heard from now on, or no more. */
  hearing(): void {
    const { isHeard, isMuted } = this.#options
    this.#microphone?.setMuted(isMuted())
    if (isHeard()) this.#sending = 'all'
    else if (this.#sending === 'all')
      this.#sending = isMuted() ? this.#endAudio() : { frames: TAIL_FRAMES }
  }

  interrupt(): void {
    const { transport, chatId } = this.#options
    this.#speaker?.drop()
    this.#isHushed = true
    transport.interrupt(chatId)
  }

  close(): void {
    if (this.#over) return
    this.#over = true
    if (this.#sending !== 'nothing') this.#sending = this.#endAudio()
    this.#leave()
    this.#microphone?.close()
    this.#microphone = undefined
    this.#speaker?.close()
  }

  async #open(): Promise<void> {
    const { devices, deviceId, onPlayback, tell } = this.#options
    // Both at once: the gesture of the person counts for what is asked for within it.
    const speaker = devices.openSpeaker({
      onPlayback: (playback) => this.#over || onPlayback(playback),
    })
    const results = await Promise.allSettled([this.#openSpeaker(speaker), this.#listen(deviceId)])
    if (this.#over) return
    const failed = results.find((result) => result.status === 'rejected')
    if (failed) return this.#fail({ type: 'stop', problem: toProblem(failed.reason) })
    this.#watch()
    tell({ type: 'opened' })
    this.hearing()
  }

  async #openSpeaker(opening: Promise<Speaker>): Promise<void> {
    const speaker = await opening
    // Somebody may have stopped meanwhile.
    if (this.#over) speaker.close()
    else this.#speaker = speaker
  }

  async #listen(deviceId: string | undefined): Promise<void> {
    this.#asked += 1
    const own = this.#asked
    let microphone: Microphone | undefined
    const isInUse = (): boolean => microphone !== undefined && microphone === this.#microphone
    microphone = await this.#options.devices.openMicrophone({
      ...(deviceId !== undefined && { deviceId }),
      onSound: (bytes, level) => isInUse() && this.#hear(bytes, level),
      onLost: () => isInUse() && this.#fail(LOST_MICROPHONE),
    })
    // The prompt of the browser may have been open for minutes.
    if (this.#over || own !== this.#asked) return microphone.close()
    this.#microphone?.close()
    this.#microphone = microphone
    microphone.setMuted(this.#options.isMuted())
  }

  #watch(): void {
    const { transport, chatId } = this.#options
    const listener = (event: LiveEvent): void => {
      if (!this.#over) this.#take(event)
    }
    this.#leave = transport.watch(chatId, listener, { audio: 'binary' })
  }

  #fail(ending: VoiceEvent & { type: 'stop' }): void {
    this.close()
    this.#options.tell(ending)
  }

  #hear(bytes: Uint8Array<ArrayBuffer>, level: number): void {
    const { tell, onInput } = this.#options
    onInput(level)
    const before = this.#speech.speaking
    this.#speech = detectSpeech(this.#speech, level)
    if (before !== this.#speech.speaking)
      tell({ type: 'speaking', who: 'person', speaking: !before })
    if (this.#sending !== 'nothing') this.#send(bytes)
    if (typeof this.#sending === 'object') {
      const frames = this.#sending.frames - 1
      this.#sending = frames > 0 ? { frames } : this.#endAudio()
    }
  }

  /** Sound without a connection waits for the next one, as far as it is worth hearing then. */
  #send(bytes: Uint8Array<ArrayBuffer>): void {
    const { transport, tell, giveUpAfterMs } = this.#options
    const waiting = this.#backlog.peek()
    const isSent = (!waiting || transport.sendAudio(waiting)) && transport.sendAudio(bytes)
    tell({ type: 'connected', connected: isSent })
    if (isSent) return this.#backlog.clear()
    this.#backlog.add(bytes)
    if (this.#backlog.missedMs >= giveUpAfterMs) this.#fail(LOST_CONNECTION)
  }

  #endAudio(): 'nothing' {
    const { transport, chatId } = this.#options
    transport.endAudio(chatId)
    return 'nothing'
  }

  #take(event: LiveEvent): void {
    const { tell } = this.#options
    switch (event.type) {
      case 'audio':
        if (!this.#isHushed) this.#speaker?.play(event.bytes)
        return
      case 'interrupted':
        // What comes after it on the same socket is of the next answer, or of this one begun anew (LV41).
        this.#speaker?.drop()
        return
      case 'answer':
        this.#isHushed = false
        if (event.phase === 'start') tell({ type: 'answer-start' })
        return
      case 'transcript':
        if (event.author === 'model') return tell({ type: 'model-said', text: event.text })
        return tell({ type: 'person-said', text: event.text, final: event.final })
      case 'user-message':
        return tell({ type: 'person-said', text: '', final: true })
      case 'given-up':
        return this.#fail(LOST_CONNECTION)
      case 'turn':
      case 'status':
    }
  }
}

const LOST_MICROPHONE = { type: 'stop', problem: { code: 'lost', what: 'microphone' } } as const
const LOST_CONNECTION = { type: 'stop', problem: { code: 'lost', what: 'connection' } } as const
