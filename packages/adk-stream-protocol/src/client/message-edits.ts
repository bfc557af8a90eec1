import type { DataParts } from '../protocol/message.ts'
import type { MessageView, PartView } from './answers.ts'

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

/** Takes back the questions of calls that ended without a decision: the AI SDK keeps them, and its validation refuses them. */
export function dropQuestions(messages: readonly MessageView[]): MessageView[] | undefined {
  if (!messages.some(({ parts }) => parts.some(isUndecided))) return undefined
  return messages.map((message) => ({ ...message, parts: message.parts.map(settle) }))
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

function isUndecided({ state, approval }: PartView): boolean {
  const isOver = state === 'output-available' || state === 'output-error'
  return isOver && approval !== undefined && approval.approved === undefined
}

function settle(part: PartView): PartView {
  if (!isUndecided(part)) return part
  const { approval: _question, ...rest } = part
  return rest
}
