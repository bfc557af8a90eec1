import type { Event } from '@google/adk'

import { readNotes } from '../agent/history/event-notes.ts'
import { readNestedIds } from '../agent/history/replay-turn.ts'

/** A question of an MCP server. The call that asked it waits for the answer. */
interface Question {
  readonly approvalId: string
  readonly toolCallId: string
}

/**
 * The events of one run of the agent, which several turns stream one after the other: a turn ends at the question of an MCP server, and
 * the next one continues when the question has ended. The run itself goes on.
 */
export class RunEvents {
  readonly #source: AsyncIterator<Event>
  readonly #held: Event[] = []
  #pending: Promise<IteratorResult<Event>> | undefined
  #question: Question | undefined

  constructor(events: AsyncIterable<Event>) {
    this.#source = events[Symbol.asyncIterator]()
  }

  /** The question at which the last read ended. Undefined if the run has ended. */
  get question(): Question | undefined {
    return this.#question
  }

  /** Yields the events up to the next question, or to the end of the run. Calls `onAsk` before it ends at a question. */
  async *read(onAsk: (question: Question) => void): AsyncGenerator<Event> {
    this.#question = undefined
    try {
      for (;;) {
        const event = await this.#take()
        if (!event) return
        yield event
        const question = event.customMetadata && readNotes(event).elicited?.at(-1)
        if (!question) continue
        this.#question = question
        onAsk(question)
        return
      }
    } finally {
      if (!this.#question) await this.#source.return?.()
    }
  }

  /** Resolves when the question has ended, the run has ended, or the signal aborts. Events are kept for the next read. */
  async untilAnswered(signal: AbortSignal): Promise<void> {
    const { toolCallId } = this.#question ?? {}
    const aborted = new Promise<undefined>((resolve) => {
      if (signal.aborted) resolve(undefined)
      else signal.addEventListener('abort', () => resolve(undefined), { once: true })
    })
    while (!signal.aborted) {
      this.#pending ??= this.#source.next()
      // The next read throws it.
      const failed = this.#pending.then(
        (result) => result,
        () => undefined,
      )
      const result = await Promise.race([failed, aborted])
      if (!result || result.done === true) return
      this.#pending = undefined
      this.#held.push(result.value)
      if (toolCallId !== undefined && readNestedIds(result.value).includes(toolCallId)) return
    }
  }

  /** Ends a run that no turn reads any more. */
  async close(): Promise<void> {
    await this.#source.return?.()
  }

  async #take(): Promise<Event | undefined> {
    const held = this.#held.shift()
    if (held) return held
    const pending = this.#pending ?? this.#source.next()
    this.#pending = undefined
    const result = await pending
    return result.done === true ? undefined : result.value
  }
}
