import { isToolUIPart, type UIMessage } from 'ai'

/**
 * Says of every call that was denied for a reason that it was denied. The AI SDK's provider for Gemini (3.0) gives the reason in
 * the place of the result, and a model cannot tell “not this month” from what a tool has answered.
 */
export function wordDenials(messages: readonly UIMessage[]): UIMessage[] {
  return messages.map((message) => ({ ...message, parts: message.parts.map(wordDenial) }))
}

type Part = UIMessage['parts'][number]

function wordDenial(part: Part): Part {
  if (!isToolUIPart(part) || part.approval?.approved !== false) return part
  const { approval } = part
  if (approval.reason === undefined) return part
  const reason = JSON.stringify({ status: 'denied', error: DENIED, reason: approval.reason })
  // The state of the part, which its type hangs on, stays as it is.
  return { ...part, approval: { ...approval, reason } } as Part
}

// The words in which the bridge tells it.
const DENIED = 'The person denied this call. It did not run.'
