import { isRecord } from '../../protocol/guards.ts'
import { type MessageView, keepResponses } from './chat-messages.ts'
import { type ResponseStateMap, hasUnconfirmed } from './response-states.ts'

interface Shown {
  readonly messages: readonly MessageView[]
  readonly responses: ResponseStateMap
}

/**
 * Returns the stored messages, with what only this page has: responses that the server has not confirmed (CL900), and messages that the
 * person stopped before a server received them (CL915). `keepAll`: with all other messages of the page too.
 */
export function mergeStored(
  stored: readonly MessageView[],
  shown: Shown,
  { keepAll = false }: { readonly keepAll?: boolean } = {},
): MessageView[] {
  const known = new Set(stored.map(({ id }) => id))
  const parts = shown.messages.flatMap((message) => message.parts)
  const responded = parts.filter((part) => hasUnconfirmed(part, shown.responses))
  // Without its response, a part would be shown as open, and the response would not be sent.
  const merged = stored.map((message) => ({
    ...message,
    parts: keepResponses(message.parts, responded),
  }))
  const kept = shown.messages.flatMap((message) => {
    if (known.has(message.id)) return [message]
    if (isStopped(message)) return [markUnsent(message)]
    return keepAll ? [message] : []
  })
  for (const [index, message] of kept.entries()) {
    if (known.has(message.id)) continue
    const before = kept[index - 1]?.id
    merged.splice(merged.findIndex(({ id }) => id === before) + 1, 0, message)
  }
  return merged
}

/** Whether the person stopped a user message before the reply to it. The server's copy of a message has no such mark. */
function isStopped({ role, metadata }: Pick<MessageView, 'role' | 'metadata'>): boolean {
  return role === 'user' && isRecord(metadata) && 'unsent' in metadata
}

function markUnsent(message: MessageView): MessageView {
  const { metadata } = message
  return { ...message, metadata: { ...(isRecord(metadata) && metadata), unsent: true } }
}
