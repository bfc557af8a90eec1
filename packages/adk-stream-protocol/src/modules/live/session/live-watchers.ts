import type { LiveStatus } from '../gemini/message-receiver.ts'
import type { Message } from '../../../protocol/message.ts'
import { SparseSet } from '../../../shared/collections.ts'
import type { Turn } from '../../../turns/turn.ts'

/**
 * Receives the events of a live conversation that are not part of its messages.
 *
 * @inline
 */
export interface LiveListener {
  /** A turn started that no client requested. `userMessage` is the user's speech as transcribed so far. */
  readonly onTurn: (turn: Turn, userMessage?: Message) => void
  /** The user's speech is stored as a message. */
  readonly onUserMessage: (message: Message) => void
  /** A piece of the transcript of the user's speech. */
  readonly onTranscript: (transcript: { readonly text: string; readonly final: boolean }) => void
  /** The model was interrupted. Clients discard audio that they have not played. */
  readonly onInterrupted: () => void
  readonly onStatus: (status: LiveStatus) => void
}

/** One client of a live conversation. */
export interface LiveWatcher extends LiveListener {
  /** False for a client that only keeps the conversation open. */
  readonly listens: boolean
}

/** The clients of one chat's live conversation. They stay when a conversation ends and the next one starts. */
export class LiveWatchers implements LiveListener {
  readonly #watchers = new SparseSet<LiveWatcher>()
  #status: LiveStatus = 'closed'

  get isEmpty(): boolean {
    return this.#watchers.size === 0
  }

  /** Whether a client receives turns that it did not request. */
  get hasListeners(): boolean {
    for (const { listens } of this.#watchers) if (listens) return true
    return false
  }

  add(watcher: LiveWatcher): void {
    this.#watchers.add(watcher)
    watcher.onStatus(this.#status)
  }

  delete(watcher: LiveWatcher): void {
    this.#watchers.delete(watcher)
  }

  onTurn(turn: Turn, userMessage?: Message): void {
    for (const watcher of this.#watchers) watcher.onTurn(turn, userMessage)
  }

  onUserMessage(message: Message): void {
    for (const watcher of this.#watchers) watcher.onUserMessage(message)
  }

  onTranscript(transcript: { readonly text: string; readonly final: boolean }): void {
    for (const watcher of this.#watchers) watcher.onTranscript(transcript)
  }

  onInterrupted(): void {
    for (const watcher of this.#watchers) watcher.onInterrupted()
  }

  onStatus(status: LiveStatus): void {
    if (status === this.#status) return
    this.#status = status
    for (const watcher of this.#watchers) watcher.onStatus(status)
  }
}
