import type { LiveStatus } from '../gemini-live/live-hooks.ts'
import type { Message } from '../protocol/message.ts'
import type { Turn } from '../turns/turn.ts'
import type { LiveMessage } from './live-message.ts'

/** Who hears of a live conversation what is not part of its messages. */
export interface LiveListener {
  /** A turn began that nobody asked for in writing. `heard` is what the person was heard to say so far. */
  readonly onTurn: (turn: Turn, heard?: Message) => void
  /** What a person spoke is known, as a message of theirs. */
  readonly onHeard: (message: LiveMessage, text: string) => void
  /** A piece of what a person speaks. */
  readonly onTranscript: (transcript: { readonly text: string; readonly final: boolean }) => void
  /** The model breaks off: what was heard of it and not played is not to be played. */
  readonly onInterrupted: () => void
  readonly onStatus: (status: LiveStatus) => void
}
