import type { LiveStatus } from '../gemini-live/live-hooks.ts'
import type { Message } from '../protocol/message.ts'
import type { Turn } from '../turns/turn.ts'
import type { LiveListener } from './live-listener.ts'

/** One client that follows a live conversation. */
export interface LiveWatcher {
  /** False for a client that only keeps the conversation open. */
  readonly listens: boolean
  /** A turn began that nobody asked for in writing. `heard` is what the person was heard to say so far. */
  readonly onTurn: (turn: Turn, heard?: Message) => void
  readonly onHeard: (message: Message) => void
  readonly onTranscript: (transcript: { readonly text: string; readonly final: boolean }) => void
  readonly onInterrupted: () => void
  readonly onStatus: (status: LiveStatus) => void
}

/** Those who follow one chat's live conversation. They stay while its runs come and go. */
export class LiveRoom implements LiveListener {
  readonly #watchers = new Set<LiveWatcher>()
  #status: LiveStatus = 'closed'

  get empty(): boolean {
    return this.#watchers.size === 0
  }

  /** Whether a client wants to hear of turns that it did not ask for. */
  get hasListeners(): boolean {
    for (const { listens } of this.#watchers) if (listens) return true
    return false
  }

  join(watcher: LiveWatcher): void {
    this.#watchers.add(watcher)
    watcher.onStatus(this.#status)
  }

  leave(watcher: LiveWatcher): void {
    this.#watchers.delete(watcher)
  }

  onTurn(turn: Turn, heard?: Message): void {
    for (const watcher of this.#watchers) watcher.onTurn(turn, heard)
  }

  onHeard({ userMessageId }: { readonly userMessageId: string }, text: string): void {
    const parts = [{ type: 'text' as const, text }]
    const message: Message = { id: userMessageId, role: 'user', parts }
    for (const watcher of this.#watchers) watcher.onHeard(message)
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
