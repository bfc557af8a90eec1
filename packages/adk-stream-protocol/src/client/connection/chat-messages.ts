import type { DataParts } from '../../protocol/message.ts'

/** A part of a message as far as a chat's responses are concerned. The `UIMessage` of every AI SDK fits. */
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
  readonly metadata?: unknown
}

/** Whether two versions of a user message have the same text and files, which are what the server stores. */
export function hasSameContent(one: Content, other: Content): boolean {
  return JSON.stringify(contentOf(one)) === JSON.stringify(contentOf(other))
}

type Content = { readonly parts: readonly object[] }

function contentOf({ parts }: Content): unknown[] {
  return parts.flatMap((part) => {
    if ('text' in part) return [part.text]
    // The server may write the head of a data: URL differently.
    return 'url' in part ? [['file', String(part.url).replace(/^data:[^,]*,/, '')]] : []
  })
}

/** Finds the part with an approval, if the part is in the given state. */
export function findApproval(
  messages: readonly MessageView[],
  approvalId: string,
  state: 'approval-requested' | 'approval-responded',
): PartView | undefined {
  for (const { parts } of messages) {
    const found = parts.find((part) => part.approval?.id === approvalId && part.state === state)
    if (found) return found
  }
  return undefined
}

/** What the messages show of an approval. */
export type ShownApproval =
  | { readonly state: 'open' }
  /** Decided here, and the server has not reported it. */
  | { readonly state: 'responded' }
  /** The server reported a decision, or the call has ended: without one if `approved` is undefined. */
  | { readonly state: 'settled'; readonly approved: boolean | undefined }
  /** For example while a message is replayed and has not reached the approval yet. */
  | { readonly state: 'missing' }

export function readApproval(messages: readonly MessageView[], approvalId: string): ShownApproval {
  for (const { parts } of messages) {
    const asked = parts.find(({ approval }) => approval?.id === approvalId)
    if (!asked) continue
    if (asked.state === 'approval-requested') return { state: 'open' }
    const reported = approvalState(parts, asked.toolCallId ?? '') ?? 'requested'
    if (asked.state === 'approval-responded' && reported === 'requested')
      return { state: 'responded' }
    return { state: 'settled', approved: asked.approval?.approved }
  }
  return { state: 'missing' }
}

/** Returns the ids of the approvals and questions that the messages show as open. */
export function listOpenApprovals(messages: readonly MessageView[]): string[] {
  return messages.flatMap(({ parts }) =>
    parts.flatMap((part) => {
      if (part.state === 'approval-requested') return part.approval?.id ?? []
      if (part.type !== 'data-approval' || !('data' in part)) return []
      // Only the bridge creates parts of this type. A question has no part in the state `approval-requested`.
      const { kind, state, approvalId } = part.data as DataParts['approval']
      return kind !== undefined && state === 'requested' ? approvalId : []
    }),
  )
}

/** Returns the state of a call's approval as the server reported it (`data-approval`). */
export function approvalState(parts: readonly PartView[], toolCallId: string): string | undefined {
  for (const part of parts) {
    if (part.type !== 'data-approval' || !('data' in part)) continue
    // Only the bridge creates parts of this type.
    const data = part.data as DataParts['approval']
    if (data.toolCallId === toolCallId) return data.state
  }
  return undefined
}

/** Removes the decision from an approval, so that it can be decided again. */
export function reopenApproval(messages: readonly MessageView[], id: string): MessageView[] {
  return messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) =>
      part.state === 'approval-responded' && part.approval?.id === id
        ? { ...part, state: 'approval-requested', approval: { id } }
        : part,
    ),
  }))
}

/**
 * Corrects the decisions of finished calls. If the server reported another decision than this page made, the server's is shown. If a
 * call ended undecided, its approval is removed: the AI SDK keeps it, but its validation rejects the message. Returns undefined if
 * nothing has to change.
 */
export function settleApprovals(messages: readonly MessageView[]): MessageView[] | undefined {
  const settled = messages.map((message) => {
    const parts = message.parts.map((part) => settlePart(part, message.parts))
    return parts.every((part, index) => part === message.parts[index])
      ? message
      : { ...message, parts }
  })
  return settled.every((message, index) => message === messages[index]) ? undefined : settled
}

/** Returns the server's parts, with the responses of the given parts where the server's wait for one. Returns the same array if nothing changes. */
export function keepResponses(
  parts: readonly PartView[],
  responded: readonly PartView[],
): readonly PartView[] {
  const keep = (part: PartView): PartView =>
    (isAwaitingResponse(part) && responded.find((each) => isResponseTo(part, each))) || part
  const kept = parts.map(keep)
  return kept.every((part, index) => part === parts[index]) ? parts : kept
}

function isAwaitingResponse({ state }: PartView): boolean {
  return state === 'approval-requested' || state === 'input-available'
}

/** Whether a part holds the response that another part of the same call waits for. A call may ask more than once. */
function isResponseTo(asked: PartView, { state = '', toolCallId, approval }: PartView): boolean {
  if (toolCallId !== asked.toolCallId) return false
  if (asked.approval && asked.approval.id !== approval?.id) return false
  return state === 'approval-responded' || ENDED.has(state)
}

/**
 * Adds a user message before the reply to it, or at the end. A message with the same id is replaced: a spoken one may have been
 * transcribed in part. Returns the same array if nothing changes.
 */
export function addUserMessage(
  messages: MessageView[],
  message: MessageView,
  replyId?: string,
): MessageView[] {
  const known = messages.find(({ id }) => id === message.id)
  if (known) {
    const isSame = JSON.stringify(known.parts) === JSON.stringify(message.parts)
    return isSame ? messages : putMessage(messages, message)
  }
  const index = messages.findIndex(({ id }) => id === replyId)
  return messages.toSpliced(index < 0 ? messages.length : index, 0, message)
}

/** Replaces the message with the same id, or adds the message at the end. */
export function putMessage(messages: readonly MessageView[], message: MessageView): MessageView[] {
  const index = messages.findLastIndex(({ id }) => id === message.id)
  return index < 0 ? [...messages, message] : messages.with(index, message)
}

const ENDED = new Set(['output-available', 'output-error', 'output-denied'])

function settlePart(part: PartView, parts: readonly PartView[]): PartView {
  const { state = '', approval, toolCallId = '' } = part
  if (!approval || !ENDED.has(state)) return part
  const reported = approvalState(parts, toolCallId)
  // In a burst, the decision and the outcome may have arrived before the chat had read the request.
  if (reported === 'approved' || reported === 'denied') {
    const approved = reported === 'approved'
    return approval.approved === approved
      ? part
      : { ...part, approval: { id: approval.id, approved } }
  }
  if (approval.approved !== undefined) return part
  const { approval: _undecided, ...rest } = part
  return rest
}

/**
 * Anything with messages: a `Chat`, or `{ messages: [] }`.
 *
 * @inline
 */
export interface MessageTarget {
  messages: MessageView[]
}

/** Adds a user message to the chat, see `addUserMessage`. */
export function showUserMessage(chat: MessageTarget, message: MessageView, replyId?: string): void {
  const next = addUserMessage(chat.messages, message, replyId)
  if (next !== chat.messages) chat.messages = next
}
