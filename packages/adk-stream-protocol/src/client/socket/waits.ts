import type { Chunk } from '../../protocol/chunk.ts'

/** What an answer waits for that is being read: calls that a person is asked about, and calls that a page is to run. */
export class Waits {
  readonly #calls = new Set<string>()

  get isWaiting(): boolean {
    return this.#calls.size > 0
  }

  read(chunk: Chunk): void {
    if (chunk.type === 'tool-approval-request') this.#calls.add(chunk.toolCallId)
    else if (chunk.type === 'data-browser-call') this.#calls.add(chunk.data.toolCallId)
    else if (chunk.type === 'data-approval' && chunk.data.state !== 'requested')
      this.#calls.delete(chunk.data.toolCallId)
    else if (chunk.type.startsWith('tool-output') && 'toolCallId' in chunk)
      this.#calls.delete(chunk.toolCallId)
  }
}
