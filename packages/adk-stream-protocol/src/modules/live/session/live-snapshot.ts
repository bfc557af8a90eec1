import { z } from 'zod'

/**
 * What another process needs to continue a live session. A handle is used only if the conversation still ends with `eventId`: then it
 * covers everything that was said. Otherwise the session is restored from the conversation.
 */
export const LiveSnapshot = z.object({
  handle: z.string().optional(),
  /** The last event with content. */
  eventId: z.string().optional(),
  /** The calls that wait for a decision or for the output of a browser tool. */
  calls: z.array(
    z.object({
      toolCallId: z.string(),
      toolName: z.string(),
      messageId: z.string(),
      approvalId: z.string().optional(),
      /** Whether calls inside the agent that the call runs wait for approval. */
      isPaused: z.boolean().optional(),
      /** Whether the model has a status of the call as its function response. */
      isParked: z.boolean().optional(),
      /** When a browser call times out, in ms since 1970 by the clock of the database. */
      expiresAt: z.number().optional(),
    }),
  ),
})

export type LiveSnapshot = z.infer<typeof LiveSnapshot>

/** A call that another process continues. */
export type WaitingCall = LiveSnapshot['calls'][number]

/** The conversation whose snapshots are stored. */
interface SnapshotSource {
  /** Returns the present snapshot, with a handle if the conversation is at rest. Returns undefined if the conversation has ended. */
  takeSnapshot(): LiveSnapshot | undefined
  /** Stores a snapshot. Never throws. */
  saveSnapshot(snapshot: LiveSnapshot): void
}

/** How long after a handle the session is stored: ADK yields the events of the turn after the handle. */
const REST_MS = 200
const REST_ATTEMPTS = 5

/** Stores snapshots of a live session, so that another process can continue it after a crash. */
export class SnapshotSaver {
  readonly #source: SnapshotSource
  #timer: NodeJS.Timeout | undefined
  #hasCalls = false

  constructor(source: SnapshotSource) {
    this.#source = source
  }

  /** Whether the last stored snapshot has calls. */
  get hasCalls(): boolean {
    return this.#hasCalls
  }

  /** Stores a snapshot when the conversation is at rest. */
  saveAtRest(attempts = REST_ATTEMPTS): void {
    clearTimeout(this.#timer)
    if (attempts === 0 || !this.#source.takeSnapshot()) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      const snapshot = this.#source.takeSnapshot()
      if (snapshot?.handle === undefined) this.saveAtRest(attempts - 1)
      else this.#save(snapshot)
    }, REST_MS)
    this.#timer.unref()
  }

  /** Stores which calls wait. The conversation may not be at rest again before a crash. */
  saveCalls(): void {
    // The call is in its new state after this step.
    queueMicrotask(() => {
      const snapshot = this.#source.takeSnapshot()
      if (snapshot) this.#save(snapshot)
    })
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #save(snapshot: LiveSnapshot): void {
    this.#hasCalls = snapshot.calls.length > 0
    this.#source.saveSnapshot(snapshot)
  }
}
