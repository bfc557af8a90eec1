// Runs in the audio thread, where audio does not wait for the page. The file is plain JavaScript without imports, because browsers load
// it by its URL and no bundler or compiler processes it. It does only what must be done in this thread: the page resamples the
// microphone's audio.

/**
 * The parts of the global scope of audio worklets that TypeScript's library does not know.
 *
 * @typedef {{
 *   AudioWorkletProcessor: new () => { readonly port: MessagePort },
 *   registerProcessor: (name: string, processor: Function) => void,
 * }} WorkletScope
 */

const { AudioWorkletProcessor, registerProcessor } = /** @type {WorkletScope} */ (
  /** @type {unknown} */ (globalThis)
)

/** Sends the microphone's audio to the page, in pieces of `frameSamples`. */
class MicrophoneProcessor extends AudioWorkletProcessor {
  /** @param {{ processorOptions: { frameSamples: number } }} options */
  constructor({ processorOptions }) {
    super()
    this.frame = new Float32Array(processorOptions.frameSamples)
    this.filled = 0
  }

  /** @param {Float32Array[][]} inputs */
  process([input]) {
    const channel = input?.[0]
    if (channel) this.take(channel)
    return true
  }

  /** @param {Float32Array} samples */
  take(samples) {
    let rest = samples
    while (rest.length > 0) {
      const piece = rest.subarray(0, this.frame.length - this.filled)
      this.frame.set(piece, this.filled)
      this.filled += piece.length
      rest = rest.subarray(piece.length)
      if (this.filled === this.frame.length) this.send()
    }
  }

  send() {
    const { frame } = this
    this.frame = new Float32Array(frame.length)
    this.filled = 0
    this.port.postMessage(frame, [frame.buffer])
  }
}

// In samples at 24 kHz. Audio arrives unevenly: playback starts when this much is buffered, or after this much time.
const LEAD = 1_920
// How long the queue may be empty before the speech counts as ended. Audio that arrives earlier is late.
const PAUSE = 4_800
// Audio is faded in and out over 5 ms, otherwise it would click.
const FADE = 120
const REPORT = 1_200

/** Plays the audio that the page sends, without gaps. `drop` silences it. */
class SpeakerProcessor extends AudioWorkletProcessor {
  /** @param {{ processorOptions: { maxSamples: number } }} options */
  constructor({ processorOptions }) {
    super()
    this.maxSamples = processorOptions.maxSamples
    /** @type {Int16Array[]} */
    this.queue = []
    /** The position in the first piece. */
    this.at = 0
    this.buffered = 0
    /**
     * `waiting`: for enough audio. `playing`. `fading`: dropped audio is faded out. `starved`: the queue is empty; the speech ends if
     * this lasts.
     *
     * @type {'silent' | 'waiting' | 'playing' | 'fading' | 'starved'}
     */
    this.state = 'silent'
    /** Samples since the last change of the state. */
    this.since = 0
    this.gain = 0
    this.last = 0
    this.played = 0
    this.dropped = 0
    this.underruns = 0
    this.energy = 0
    this.measured = 0
    this.reported = false
    /** @param {MessageEvent<Int16Array | 'drop'>} message */
    this.port.onmessage = ({ data }) => {
      if (data === 'drop') this.drop()
      else this.add(data)
    }
  }

  /** @param {Int16Array} samples */
  add(samples) {
    // A server may send faster than the audio is played. The memory of a page is limited.
    const room = Math.max(0, this.maxSamples - this.buffered)
    const taken = samples.subarray(0, room)
    this.dropped += samples.length - taken.length
    if (taken.length === 0) return
    // The faded audio is not played on.
    if (this.state === 'fading') this.clear()
    this.queue.push(taken)
    this.buffered += taken.length
    if (this.state === 'starved') this.underruns += 1
    if (this.state === 'starved' || this.state === 'silent') this.become('waiting')
  }

  drop() {
    if (this.state === 'playing') return this.become('fading')
    this.clear()
    this.become('silent')
    this.report()
  }

  clear() {
    this.dropped += this.buffered
    this.queue = []
    this.at = 0
    this.buffered = 0
    this.state = 'silent'
  }

  /** @param {typeof this.state} state */
  become(state) {
    this.state = state
    this.since = 0
  }

  /**
   * @param {unknown} _inputs
   * @param {Float32Array[][]} outputs
   */
  process(_inputs, [output]) {
    const channel = output?.[0]
    if (!channel || this.isIdle()) return true
    for (let index = 0; index < channel.length; index += 1) {
      const sample = this.next()
      channel[index] = sample
      this.energy += sample * sample
    }
    this.measured += channel.length
    this.since += channel.length
    this.settle()
    if (this.measured >= REPORT || this.reported !== this.isSpeaking()) this.report()
    return true
  }

  isIdle() {
    return this.state === 'silent' && this.gain === 0 && !this.reported
  }

  isSpeaking() {
    return this.state === 'playing' || (this.state !== 'silent' && this.reported)
  }

  settle() {
    if (this.state === 'waiting' && (this.buffered >= LEAD || this.since >= LEAD))
      this.become('playing')
    else if (this.state === 'playing' && this.buffered === 0) this.become('starved')
    else if (this.state === 'starved' && this.since >= PAUSE) this.become('silent')
    else if (this.state === 'fading' && this.gain === 0) {
      this.clear()
      this.become('silent')
    }
  }

  next() {
    const isSounding = this.state === 'playing' && this.buffered > 0
    const step = 1 / FADE
    this.gain = isSounding ? Math.min(1, this.gain + step) : Math.max(0, this.gain - step)
    // If the queue is empty, the last sample is faded out.
    if (isSounding || (this.state === 'fading' && this.gain > 0)) this.last = this.shift()
    return this.last * this.gain
  }

  shift() {
    const [piece] = this.queue
    if (!piece) return this.last
    const sample = (piece[this.at] ?? 0) / 32_768
    this.at += 1
    this.buffered -= 1
    this.played += 1
    if (this.at === piece.length) {
      this.queue.shift()
      this.at = 0
    }
    return sample
  }

  report() {
    const { played, buffered, dropped, underruns } = this
    const level = Math.sqrt(this.energy / Math.max(1, this.measured))
    this.reported = this.isSpeaking()
    this.energy = 0
    this.measured = 0
    const playback = { playing: this.reported, level, played, buffered, dropped, underruns }
    this.port.postMessage(playback, [])
  }
}

registerProcessor('adk-microphone', MicrophoneProcessor)
registerProcessor('adk-speaker', SpeakerProcessor)
