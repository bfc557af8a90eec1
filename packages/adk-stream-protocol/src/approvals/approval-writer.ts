import { keepNewest } from '../shared/collections.ts'
import type { ApprovalStore } from './approval-store.ts'
import type { Approval, Refusal } from './approval.ts'
import { isRefusal } from './approval.ts'
import type { AuditEvent } from './audit-entry.ts'
import { ApprovalError } from './digest.ts'
import { nextApprovals } from './next-approval.ts'
import type { ApprovalCommand, Commands, Transitions } from './next-approval.ts'

/** The approval after each command. */
export type Steps = readonly [Approval, ...Approval[]]

/** Applies commands to the approvals of an application, each by a compare-and-set in the store, and notifies the listeners. */
export class ApprovalWriter {
  readonly #store: ApprovalStore
  readonly #appName: string
  readonly #onError: (error: unknown) => void
  /** Approvals that wait for their next transition. The next command is tried without reading them again. */
  readonly #recent = new Map<string, Approval>()
  /** When approvals were read: the time of the store, and that of this process. */
  readonly #readAt = new WeakMap<Approval, { readonly now: number; readonly at: number }>()
  readonly #listeners = new Set<(approval: Approval, event: AuditEvent) => void>()

  constructor(store: ApprovalStore, appName: string, onError: (error: unknown) => void) {
    this.#store = store
    this.#appName = appName
    this.#onError = onError
  }

  /** Calls the listener for each change that this process stores. Returns a function that unsubscribes. */
  onChange(listener: (approval: Approval, event: AuditEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Returns an approval that this process has stored, without reading it. Another process may have changed it since. */
  recent(id: string): Approval | undefined {
    return this.#recent.get(id)
  }

  async read(id: string): Promise<Approval | undefined> {
    if (!this.#store.getWithTime) return this.#store.get(id)
    const { approval, now } = await this.#store.getWithTime(id)
    if (approval) this.#readAt.set(approval, { now, at: performance.now() })
    return approval
  }

  /** Returns the time of the store. Does not ask for it again if the approval was read just now. */
  async #now(approval: Approval): Promise<number> {
    const read = this.#readAt.get(approval)
    const passed = performance.now() - (read?.at ?? -Infinity)
    return read && passed < FRESH_MS ? Math.floor(read.now + passed) : this.#store.now()
  }

  /** Executes a command. `known` is the approval as the caller has read it. */
  async step(id: string, command: ApprovalCommand, known?: Approval): Promise<Approval | Refusal> {
    const steps = await this.stepAll(id, [command], known)
    return isRefusal(steps) ? steps : steps[0]
  }

  /** Executes a command, and the one after it if the first makes the approval `approved`, in one commit. */
  async stepAll(
    id: string,
    commands: Commands,
    known = this.#recent.get(id),
  ): Promise<Steps | Refusal> {
    // The known approval may be outdated. If the step is possible, the compare-and-set detects that. If it is not,
    // the approval is read again.
    const transitions = known && nextApprovals(known, commands, await this.#now(known))
    if (transitions && !isRefusal(transitions) && (await this.replace(transitions)))
      return toSteps(transitions)
    const approval = await this.read(id)
    return approval?.chat.appName === this.#appName
      ? this.advance(approval, commands)
      : { refused: 'unknown-approval' }
  }

  /** Executes commands on an approval that was just read. */
  async advance(approval: Approval, commands: Commands): Promise<Steps | Refusal> {
    let current: Approval | undefined = approval
    for (let attempt = 0; attempt < MAX_ATTEMPTS && current !== undefined; attempt += 1) {
      const transitions = nextApprovals(current, commands, await this.#now(current))
      if (isRefusal(transitions)) return transitions
      if (await this.replace(transitions)) return toSteps(transitions)
      current = await this.read(approval.id)
    }
    throw new ApprovalError(
      'contended',
      `The approval ${approval.id} changed ${MAX_ATTEMPTS} times during one update. Try again.`,
    )
  }

  /** Stores transitions and publishes them. Returns false if the stored approval has changed meanwhile. */
  async replace(transitions: Transitions): Promise<boolean> {
    const [first, ...rest] = transitions
    const isStored = await (rest.length > 0
      ? this.#store.replaceAll(transitions)
      : this.#store.replace(first))
    if (isStored) this.publishAll(transitions)
    return isStored
  }

  /** Notifies the listeners of changes that are stored. */
  publishAll(transitions: Transitions): Steps {
    for (const { next, entry } of transitions) this.publish(next, entry.event)
    return toSteps(transitions)
  }

  /** Notifies the listeners of a change that is stored. */
  publish(approval: Approval, event: AuditEvent): void {
    this.#remember(approval)
    for (const listener of this.#listeners) {
      try {
        listener(approval, event)
      } catch (error) {
        this.#onError(error)
      }
    }
  }

  #remember(approval: Approval): void {
    this.#recent.delete(approval.id)
    if (!isCacheable(approval)) return
    this.#recent.set(approval.id, approval)
    keepNewest(this.#recent, MAX_RECENT)
  }
}

const MAX_RECENT = 1_000

/**
 * The caller holds the same object. If it changes the arguments, the digest no longer matches and the approval is
 * read again. Edited arguments have no digest.
 */
function isCacheable({ state }: Approval): boolean {
  return state.name === 'requested' || (state.name === 'approved' && state.editedArgs === undefined)
}

function toSteps([first, ...rest]: Transitions): Steps {
  return [first.next, ...rest.map(({ next }) => next)]
}

// Each lost race is a transition by another process, and an approval has fewer transitions than this, votes included.
const MAX_ATTEMPTS = 256

/** How long the time of a read is used. The store itself checks deadlines when it stores a transition. */
const FRESH_MS = 1_000
