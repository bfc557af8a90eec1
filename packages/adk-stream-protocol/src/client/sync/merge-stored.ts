import { isRecord } from '../../protocol/guards.ts'
import type { StoredConversation } from '../connection/transport.ts'
import { type MessageView, hasSameContent, keepResponses } from '../connection/chat-messages.ts'
import { type ResponseStateMap, hasUnconfirmed } from '../connection/response-states.ts'
import type { StoredBase } from './sync-state.ts'

/** Returns all stored messages: those of the page up to its position, with what has changed after it (PO1). */
export function toStored(
  { messages, after }: StoredConversation,
  base: StoredBase | undefined,
  shown: readonly MessageView[],
): MessageView[] {
  if (after === undefined || !base) return [...messages]
  // From the first new message on, all of them were loaded.
  const firstNew = messages.findIndex(({ id }) => !base.ids.has(id))
  const added = firstNew < 0 ? [] : messages.slice(firstNew)
  const known = new Map([...shown, ...messages].map((message) => [message.id, message]))
  for (const { id } of added) known.delete(id)
  // In the order of the server: the AI SDK adds the rest of an older message at the end.
  return [...[...base.ids].flatMap((id) => known.get(id) ?? []), ...added]
}

interface Shown {
  readonly messages: readonly MessageView[]
  readonly responses: ResponseStateMap
  /** Whether the newest message could not be sent. */
  readonly hasFailed?: boolean
  /** Whether that may be an edited message, which stays in the place of its stored version. */
  readonly keepsEdit?: boolean
}

/**
 * Returns the stored messages, with what only this page has: responses that the server has not confirmed (CL900), and messages that the
 * person stopped before a server received them, or that could not be sent (CL915). `keepAll`: also with all other messages of the page,
 * except those of `base`, which the server has removed.
 */
export function mergeStored(
  loaded: readonly MessageView[],
  { messages, responses, hasFailed = false, keepsEdit = false }: Shown,
  {
    keepAll = false,
    base,
  }: { readonly keepAll?: boolean; readonly base?: StoredBase | undefined } = {},
): MessageView[] {
  const stored = keepsEdit ? keepEdit(loaded, messages.at(-1)) : loaded
  const merged = keepUnconfirmed(stored, messages, responses)
  const known = new Set(stored.map(({ id }) => id))
  // A turn that was read after a message had failed is shown behind it.
  const newest = hasFailed ? messages.findLast(({ role }) => role === 'user') : messages.at(-1)
  let index = -1
  for (const message of messages) {
    if (known.has(message.id)) {
      index = merged.findIndex(({ id }) => id === message.id)
    } else if (isStopped(message)) {
      index += 1
      merged.splice(index, 0, markUnsent(message))
    } else if (keepAll && !base?.ids.has(message.id)) {
      // A message that is being sent, or could not be sent, is newer than all that the server has.
      const isNewest = message.role === 'user' && message === newest
      index = isNewest ? merged.length : index + 1
      merged.splice(index, 0, message)
    }
  }
  return merged
}

/** Returns the server's messages, or if the last message of the page is another version of one: those before it, and this version. */
function keepEdit(
  stored: readonly MessageView[],
  last: MessageView | undefined,
): readonly MessageView[] {
  const index = stored.findIndex(({ id }) => id === last?.id)
  const earlier = stored[index]
  if (last?.role !== 'user' || !earlier || hasSameContent(last, earlier)) return stored
  return [...stored.slice(0, index), last]
}

/** Returns the server's messages, with the responses of this page that it has not confirmed. Such a response would not be sent otherwise. */
function keepUnconfirmed(
  stored: readonly MessageView[],
  shown: readonly MessageView[],
  responses: ResponseStateMap,
): MessageView[] {
  const responded = shown
    .flatMap((message) => message.parts)
    .filter((part) => hasUnconfirmed(part, responses))
  return stored.map((message) => {
    const parts = keepResponses(message.parts, responded)
    return parts === message.parts ? message : { ...message, parts }
  })
}

/**
 * Whether the person stopped a user message before the reply to it, or sent another one after it had failed. The server's copy of a
 * message has no such mark.
 */
export function isStopped({ role, metadata }: Pick<MessageView, 'role' | 'metadata'>): boolean {
  return role === 'user' && isRecord(metadata) && 'unsent' in metadata
}

/** Marks a user message as not sent, or as one that may not have been sent (false). */
export function markUnsent(message: MessageView, unsent = true): MessageView {
  const { metadata } = message
  return { ...message, metadata: { ...(isRecord(metadata) && metadata), unsent } }
}
