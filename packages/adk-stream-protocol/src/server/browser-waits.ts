import type { OutputAnswer } from '../protocol/read-answers.ts'

/** Gives up on clients that do not send the output of a call in time. */
export class BrowserWaits {
  readonly #timers = new Map<string, NodeJS.Timeout>()

  /** Waits for the output of a call; `giveUp` gets what it ends with. A call that is waited for already keeps its time. */
  watch(toolCallId: string, timeoutMs: number, giveUp: (output: OutputAnswer) => void): void {
    if (this.#timers.has(toolCallId)) return
    const timer = setTimeout(() => {
      this.#timers.delete(toolCallId)
      giveUp({ toolCallId, result: { errorText: 'The browser did not answer in time.' } })
    }, timeoutMs)
    timer.unref()
    this.#timers.set(toolCallId, timer)
  }

  /** The call has its output. */
  forget(toolCallId: string): void {
    clearTimeout(this.#timers.get(toolCallId))
    this.#timers.delete(toolCallId)
  }

  close(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }
}
