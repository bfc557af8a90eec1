import type { DataParts } from '../../protocol/message.ts'
import type { MessageView, PartView } from './response-states.ts'

/** The part that asks for, or has, an approval, in a state. */
export function findApproval(
  messages: readonly MessageView[],
  approvalId: string,
  state: string,
): PartView | undefined {
  for (const { parts } of messages) {
    const found = parts.find((part) => part.approval?.id === approvalId && part.state === state)
    if (found) return found
  }
  return undefined
}

/** How far the approval of a call has come, as the server told. */
export function approvalState(parts: readonly PartView[], toolCallId: string): string | undefined {
  for (const part of parts) {
    if (part.type !== 'data-approval' || !('data' in part)) continue
    // The bridge alone makes parts of this type.
    const data = part.data as DataParts['approval']
    if (data.toolCallId === toolCallId) return data.state
  }
  return undefined
}

/** Takes a decision back: the question is open. */
export function reopenQuestion(messages: readonly MessageView[], id: string): MessageView[] {
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
 * Puts right what calls that ended say of their decision: as the server told it, where this page had decided otherwise; and nothing, where
 * nobody decided: the AI SDK keeps the question, and its validation refuses it. Nothing when all is right.
 */
export function settleQuestions(messages: readonly MessageView[]): MessageView[] | undefined {
  const settled = messages.map((message) => {
    const parts = message.parts.map((part) => settle(part, message.parts))
    return parts.every((part, index) => part === message.parts[index])
      ? message
      : { ...message, parts }
  })
  return settled.every((message, index) => message === messages[index]) ? undefined : settled
}

/** The messages of the server, and those that only the chat has where it has them. */
export function mergeMessages(
  loaded: readonly MessageView[],
  shown: readonly MessageView[],
): MessageView[] {
  const merged = [...loaded]
  for (const [index, message] of shown.entries()) {
    if (merged.some(({ id }) => id === message.id)) continue
    const before = shown[index - 1]?.id
    merged.splice(merged.findIndex(({ id }) => id === before) + 1, 0, message)
  }
  return merged
}

const ENDED = new Set(['output-available', 'output-error', 'output-denied'])

function settle(part: PartView, parts: readonly PartView[]): PartView {
  const { state = '', approval, toolCallId = '' } = part
  if (!approval || !ENDED.has(state)) return part
  if (approval.approved === undefined) {
    const { approval: _question, ...rest } = part
    return rest
  }
  const told = approvalState(parts, toolCallId)
  const isContrary =
    (told === 'approved' && !approval.approved) || (told === 'denied' && approval.approved)
  return isContrary
    ? { ...part, approval: { id: approval.id, approved: !approval.approved } }
    : part
}
