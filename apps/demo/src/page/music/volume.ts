/** Behind a conversation, not in front of it. */
const VOLUME = 0.25

interface Loudness {
  readonly muted: boolean
  /** What is left while somebody speaks, from 0 to 1. */
  readonly duckedTo: number
}

/** How loud the music is, from 0 to 1. */
export function volumeOf({ muted, duckedTo }: Loudness): number {
  return muted ? 0 : VOLUME * Math.min(1, Math.max(0, duckedTo))
}
