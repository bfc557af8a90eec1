/** What one client may send over a socket. */
export interface SocketLimits {
  /** Frames of a client per second, on the average over two seconds. Default 100: voice in pieces of 20 ms is 50. */
  readonly maxFramesPerSecond: number
  /** Bytes of one piece of audio. Default 64 KiB. */
  readonly maxAudioFrameBytes: number
  /** Bytes of audio per second. Default 128,000: four times the 16 kHz that a microphone gives. */
  readonly maxAudioBytesPerSecond: number
  /** Silence after which a client is asked whether it is there, in ms. Default 15,000. */
  readonly keepAliveMs: number
}
