import type { Supplements } from '../../protocol/read-responses.ts'
import { Listeners } from '../../shared/collections.ts'
import type { MessageView, PartView } from './chat-messages.ts'
import { approvalState, listOpenApprovals } from './chat-messages.ts'

/** What a person adds to a decision. */
export interface DecisionSupplement {
  /** Arguments to run the call with, instead of those shown. */
  readonly args?: Readonly<Record<string, unknown>> | undefined
  /** The response to a tool that asked for a payload. */
  readonly payload?: unknown
  /** The digest of the preview that the person saw. */
  readonly preview?: string | undefined
  /** The id of the grant that the person chose, of those that the approval offers. */
  readonly offer?: string | undefined
}

/** The id of an approval, and how a person decides it. */
interface DecidedApproval {
  readonly id: string
  readonly approved: boolean
}

/**
 * `queued`: the next request sends it. `sent`: it is in flight. `accepted`: the server has it. `refused`: the server rejected it or, of
 * several votes, waits for another one. It is not sent again.
 */
export type ResponseState = 'queued' | 'sent' | 'accepted' | 'refused'

/** Response states by the id of the approval or of the tool call. */
export type ResponseStateMap = ReadonlyMap<string, ResponseState>

/**
 * CL4: what each decision is sent with, by any transport of the page. Kept until the same call is approved again, with its own or nothing: the
 * messages may still have an approval that was refused or forgotten here, or was given to a chat with another transport. If it is sent, it
 * must not be without what the person has added. A denial has its own, and changes no approval: another chat of the page may have given it.
 */
const supplements = new Map<string, DecisionSupplement>()

/** The responses that this client gave (decisions and tool outputs), each with its delivery state. */
export class ResponseStates {
  readonly #states = new Map<string, ResponseState>()
  readonly #listeners = new Listeners()
  #unconfirmed: ReadonlySet<string> = new Set()

  get all(): ResponseStateMap {
    return this.#states
  }

  mark(ids: readonly string[], state: ResponseState): void {
    for (const id of ids) this.#states.set(id, state)
    this.#notify()
  }

  /** Forgets a response, so that it can be given again. */
  forget(id: string): void {
    this.#states.delete(id)
    this.#notify()
  }

  /** The ids of responses that the server has not confirmed. The set is replaced when it changes. */
  get unconfirmed(): ReadonlySet<string> {
    return this.#unconfirmed
  }

  /** Calls the listener when `unconfirmed` changes. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Sets what a decision is sent with. `undefined` removes it. */
  supplement(decided: DecidedApproval, supplement: DecisionSupplement | undefined): void {
    if (supplement) supplements.set(keyOf(decided), supplement)
    else supplements.delete(keyOf(decided))
  }

  /** Returns the fields of a request that supplement its decisions. */
  supplementsOf(decisions: readonly DecidedApproval[]): Supplements {
    const edits: [string, Record<string, unknown>][] = []
    const payloads: [string, unknown][] = []
    const previews: [string, string][] = []
    const offers: [string, string][] = []
    for (const decided of decisions) {
      const { id } = decided
      const { args, payload, preview, offer } = supplements.get(keyOf(decided)) ?? {}
      if (args) edits.push([id, { ...args }])
      if (payload !== undefined) payloads.push([id, payload])
      if (preview !== undefined) previews.push([id, preview])
      if (offer !== undefined) offers.push([id, offer])
    }
    return {
      ...(edits.length > 0 && { edits: Object.fromEntries(edits) }),
      ...(payloads.length > 0 && { payloads: Object.fromEntries(payloads) }),
      ...(previews.length > 0 && { previews: Object.fromEntries(previews) }),
      ...(offers.length > 0 && { offers: Object.fromEntries(offers) }),
    }
  }

  #notify(): void {
    const ids = [...this.#states].flatMap(([id, state]) => (isUnconfirmed(state) ? [id] : []))
    const isSame =
      ids.length === this.#unconfirmed.size && ids.every((id) => this.#unconfirmed.has(id))
    if (isSame) return
    this.#unconfirmed = new Set(ids)
    this.#listeners.call()
  }
}

/** The key of what a decision is sent with. */
function keyOf({ id, approved }: DecidedApproval): string {
  return JSON.stringify([id, approved])
}

/** Whether a response was given and not refused. */
export function isGiven(id: string, states: ResponseStateMap): boolean {
  const state = states.get(id)
  return state !== undefined && state !== 'refused'
}

/** Returns the ids of a message's responses that the server does not have. A decision made without this library is one of them. */
export function findUndelivered(
  message: MessageView | undefined,
  states: ResponseStateMap,
): string[] {
  if (message?.role !== 'assistant') return []
  return message.parts.flatMap((part) =>
    responseIds(part).filter((id) => isUndelivered(id, part, { states, parts: message.parts })),
  )
}

/** Whether a part has a response of this page that the server has not confirmed. */
export function hasUnconfirmed(part: PartView, states: ResponseStateMap): boolean {
  return responseIds(part).some((id) => isUnconfirmed(states.get(id)))
}

function isUnconfirmed(state: ResponseState | undefined): boolean {
  return state === 'queued' || state === 'sent'
}

interface Conversation {
  readonly messages: readonly MessageView[]
  readonly messageId: string | undefined
  readonly trigger: string
}

interface Selected {
  readonly messages: MessageView[]
  readonly responseIds: string[]
  /** The decisions among them. */
  readonly decisions: readonly DecidedApproval[]
  /** The ids of the calls whose outputs are among them. */
  readonly outputIds: readonly string[]
  /** What a user message is sent with: the questions that the person saw when they wrote it (AP1120). */
  readonly shown: { readonly openApprovals?: readonly string[] }
}

/** Returns what the server needs of a conversation: the newest user message, or the responded calls of one assistant message. */
export function selectMessages(
  { messages, messageId, trigger }: Conversation,
  states: ResponseStateMap,
): Selected {
  const last = messages.at(-1)
  const named = messages.findLast(({ id, role }) => id === messageId && role === 'assistant')
  const responding = trigger === 'submit-message' ? (named ?? last) : last
  if (responding?.role !== 'assistant') {
    const shown = { openApprovals: listOpenApprovals(messages) }
    return { messages: last ? [last] : [], responseIds: [], decisions: [], outputIds: [], shown }
  }
  const undelivered = findUndelivered(responding, states)
  const ids = undelivered.length > 0 ? undelivered : responding.parts.flatMap(responseIds)
  const parts = responding.parts.filter((part) => responseIds(part).some((id) => ids.includes(id)))
  const { id, role } = responding
  const decisions = parts.flatMap(({ approval }) =>
    approval?.approved === undefined ? [] : { id: approval.id, approved: approval.approved },
  )
  const outputIds = ids.filter((each) => decisions.every((decided) => decided.id !== each))
  return { messages: [{ id, role, parts }], responseIds: ids, decisions, outputIds, shown: {} }
}

interface Delivered {
  readonly states: ResponseStateMap
  readonly parts: readonly PartView[]
}

function isUndelivered(id: string, part: PartView, { states, parts }: Delivered): boolean {
  const state = states.get(id)
  if (state !== undefined) return state === 'queued'
  // An output without a state here is the server's, and so is a decision that the server reports.
  if (part.approval?.id !== id || part.state !== 'approval-responded') return false
  return (approvalState(parts, part.toolCallId ?? '') ?? 'requested') === 'requested'
}

/** Returns the ids under which a part may hold responses: its approval and its call. */
function responseIds(part: PartView): string[] {
  const { state = '', toolCallId, approval } = part
  const decided = approval?.approved === undefined ? [] : [approval.id]
  if (state === 'approval-responded') return decided
  const hasOutput = state === 'output-available' || state === 'output-error'
  return hasOutput && toolCallId !== undefined ? [...decided, toolCallId] : []
}
