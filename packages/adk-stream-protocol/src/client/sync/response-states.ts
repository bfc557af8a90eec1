import type { Supplements } from '../../protocol/read-responses.ts'

/** What a person adds to an approval. */
export interface DecisionSupplement {
  /** Arguments in place of those shown. */
  readonly args?: Readonly<Record<string, unknown>> | undefined
  /** The answer to a tool that asked with a payload. */
  readonly payload?: unknown
}

/** A part of a message as far as answers are concerned; every AI SDK's `UIMessage` fits. */
export interface PartView {
  readonly type: string
  readonly toolCallId?: string | undefined
  readonly state?: string | undefined
  readonly approval?: ApprovalView | undefined
}

interface ApprovalView {
  readonly id: string
  readonly approved?: boolean | undefined
  readonly reason?: string | undefined
}

export interface MessageView {
  readonly id: string
  readonly role: string
  readonly parts: readonly PartView[]
}

/**
 * `given`: it waits to be sent. `travelling`: it was sent. `taken`: the server has it. `refused`: the server does not want it, and
 * is not asked again.
 */
type AnswerState = 'given' | 'travelling' | 'taken' | 'refused'

/** What this client answered, and how far each answer has come: the ids are those of approvals and of calls. */
export class ResponseStates {
  readonly #states = new Map<string, AnswerState>()
  /** What goes with decisions, by approval. */
  readonly #supplements = new Map<string, DecisionSupplement>()

  readonly #listeners = new Set<() => void>()
  #unconfirmed: ReadonlySet<string> = new Set()

  give(id: string): void {
    this.#states.set(id, 'given')
    this.#notify()
  }

  mark(ids: readonly string[], state: Exclude<AnswerState, 'given'>): void {
    for (const id of ids) this.#states.set(id, state)
    this.#notify()
  }

  /** The answer is open again. */
  forget(id: string): void {
    this.#states.delete(id)
    this.#supplements.delete(id)
    this.#notify()
  }

  /** The ids of answers that the server has not confirmed. The set is replaced when it changes. */
  get unconfirmed(): ReadonlySet<string> {
    return this.#unconfirmed
  }

  /** Calls the listener when `unconfirmed` changes. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #notify(): void {
    const ids = [...this.#states].flatMap(([id, state]) =>
      state === 'given' || state === 'travelling' ? [id] : [],
    )
    const isSame =
      ids.length === this.#unconfirmed.size && ids.every((id) => this.#unconfirmed.has(id))
    if (isSame) return
    this.#unconfirmed = new Set(ids)
    for (const listener of this.#listeners) listener()
  }

  stateOf(id: string): AnswerState | undefined {
    return this.#states.get(id)
  }

  /** Whether an answer was given and not refused. */
  isOnItsWay(id: string): boolean {
    const state = this.#states.get(id)
    return state !== undefined && state !== 'refused'
  }

  /** Sets what an approval goes with; nothing for the call as it is shown. */
  supplement(approvalId: string, given: DecisionSupplement | undefined): void {
    if (given) this.#supplements.set(approvalId, given)
    else this.#supplements.delete(approvalId)
  }

  supplementOf(approvalId: string): DecisionSupplement {
    return this.#supplements.get(approvalId) ?? {}
  }

  /** What goes with decisions beside the messages of a request. */
  supplementsOf(ids: readonly string[]): Supplements {
    const edits: [string, Record<string, unknown>][] = []
    const payloads: [string, unknown][] = []
    for (const id of ids) {
      const { args, payload } = this.supplementOf(id)
      if (args) edits.push([id, { ...args }])
      if (payload !== undefined) payloads.push([id, payload])
    }
    return {
      ...(edits.length > 0 && { edits: Object.fromEntries(edits) }),
      ...(payloads.length > 0 && { payloads: Object.fromEntries(payloads) }),
    }
  }

  /** The answers of a message that the server does not have. A decision that this page did not count is one of them. */
  undelivered(message: MessageView | undefined): string[] {
    if (message?.role !== 'assistant') return []
    return message.parts.flatMap((part) =>
      answersOf(part).filter((id) => this.#isUndelivered(id, part)),
    )
  }

  #isUndelivered(id: string, part: PartView): boolean {
    const state = this.#states.get(id)
    if (state !== undefined) return state === 'given'
    // An output that nobody gave here is one of the server.
    return part.approval?.id === id && part.state === 'approval-responded'
  }
}

/** What a part may answer: the approval of its call, and the call. */
function answersOf(part: PartView): string[] {
  const { state = '', toolCallId, approval } = part
  const decided = approval?.approved === undefined ? [] : [approval.id]
  if (state === 'approval-responded') return decided
  const hasOutput = state === 'output-available' || state === 'output-error'
  return hasOutput && toolCallId !== undefined ? [...decided, toolCallId] : []
}

interface Asked<Message extends MessageView> {
  readonly messages: readonly Message[]
  readonly messageId: string | undefined
  readonly trigger: string
}

/** What of a conversation the server needs: the newest message of the person, or the answered calls of one of the assistant. */
export function selectMessages<Message extends MessageView>(
  { messages, messageId, trigger }: Asked<Message>,
  answers: ResponseStates,
): { messages: MessageView[]; answered: string[] } {
  const last = messages.at(-1)
  const named = messages.findLast(({ id, role }) => id === messageId && role === 'assistant')
  const answering = trigger === 'submit-message' ? (named ?? last) : last
  if (answering?.role !== 'assistant') return { messages: last ? [last] : [], answered: [] }
  const fresh = answers.undelivered(answering)
  const wanted = fresh.length > 0 ? fresh : answering.parts.flatMap(answersOf)
  const parts = answering.parts.filter((part) => answersOf(part).some((id) => wanted.includes(id)))
  const { id, role } = answering
  return { messages: [{ id, role, parts }], answered: wanted }
}
