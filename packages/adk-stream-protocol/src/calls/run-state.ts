import type { Event } from '@google/adk'

import type { ResolvedTerms } from '../approvals/policy.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { DecidedNote } from '../agent/history/event-notes.ts'

/** Why the agent runs: a person wrote something, or what it waited for has come. */
export type RunCause = 'message' | 'responses'

/** What the gate must remember of one run of the agent; a chat has at most one at a time. */
export class RunState {
  readonly messageId: string
  readonly cause: RunCause
  /** Results of calls whose event has not come yet: ADK drops it when a sibling asks for approval. */
  readonly results = new Map<
    string,
    { readonly name: string; readonly response: Record<string, unknown> }
  >()
  /** Calls that will be asked about in the next confirmation event. */
  readonly asking = new Map<string, ResolvedTerms>()
  /** Calls that were claimed and left to ADK, one after the other, and have not finished: call → approval. */
  readonly executing = new Map<string, string>()
  /** Endings to be noted beside the response of their call. */
  readonly decided = new Map<string, DecidedNote>()
  /** Calls that failed, and whose words are for the model alone. */
  readonly failed = new Set<string>()
  /** Calls whose ending the session shows. */
  readonly endingsStored = new Set<string>()
  /** Called when ADK has stored the message that the run begins with. */
  onStored: (() => void) | undefined
  readonly #endingsPending = new Set<string>()
  #appended: Event[] = []
  #loss: ProtocolError | undefined

  constructor(messageId: string, cause: RunCause) {
    this.messageId = messageId
    this.cause = cause
  }

  /** Why the run must end: another process has settled a call of it. ADK tells in words of its own what a plugin throws. */
  get loss(): ProtocolError | undefined {
    return this.#loss
  }

  /** Another process has settled a call of this run, so its result is not for ADK, and not for the client. */
  markLost(): ProtocolError {
    this.#loss ??= new ProtocolError('turn-lost')
    return this.#loss
  }

  /** An event that the gate wrote into the session itself, and that ADK will not yield. */
  append(event: Event): void {
    this.#appended.push(event)
  }

  /** The ending of a call is noted beside an event that ADK is about to store. */
  markEndingPending(toolCallId: string): void {
    this.#endingsPending.add(toolCallId)
  }

  /** ADK gave an event: it has stored all before it, and it. */
  noteStored(): void {
    if (this.#endingsPending.size === 0) return
    for (const toolCallId of this.#endingsPending) this.endingsStored.add(toolCallId)
    this.#endingsPending.clear()
  }

  get hasAppended(): boolean {
    return this.#appended.length > 0
  }

  /** The events appended since the last call. */
  takeAppended(): Event[] {
    const taken = this.#appended
    this.#appended = []
    return taken
  }
}
