import { isToolUIPart, type UIMessage } from 'ai'

/**
 * Marks calls that were denied with a reason. The AI SDK's Gemini provider (3.0) sends the reason as the result, and a model cannot
 * distinguish “not this month” from a tool's result.
 */
export function markDenials(messages: readonly UIMessage[]): UIMessage[] {
  return messages.map((message) => ({ ...message, parts: message.parts.map(markDenial) }))
}

type Part = UIMessage['parts'][number]

function markDenial(part: Part): Part {
  if (!isToolUIPart(part) || part.approval?.approved !== false) return part
  const { approval } = part
  if (approval.reason === undefined) return part
  const reason = JSON.stringify({ status: 'denied', error: DENIED, reason: approval.reason })
  // The cast is safe, because the state of the part does not change.
  return { ...part, approval: { ...approval, reason } } as Part
}

// The same message as the bridge sends.
const DENIED = 'The person denied this call. It did not run.'
