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
