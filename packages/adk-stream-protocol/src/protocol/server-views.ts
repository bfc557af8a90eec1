import { z } from 'zod'

import { ChatSummary } from './chat-summary.ts'

/** What the server tells over HTTP, as a client reads it. What it does not know, it leaves out. */

const Time = z.number()
const Arguments = z.record(z.string(), z.unknown())

/** An approval as somebody may see it who may know of it. */
export const PendingApproval = z.object({
  id: z.string(),
  state: z.string(),
  toolName: z.string(),
  args: Arguments,
  hint: z.string().optional(),
  title: z.string().optional(),
  severity: z.enum(['low', 'medium', 'high']).optional(),
  icon: z.string().optional(),
  payload: z.unknown().optional(),
  requestedAt: Time,
  deadline: Time,
  approvals: z.object({ given: z.number(), needed: z.number() }),
  /** Whether this person is among those who have approved. */
  voted: z.boolean(),
  step: z.number(),
  reason: z.string().optional(),
  editedArgs: Arguments.optional(),
  /** Where the call was made, for the chat's owner alone. */
  chatId: z.string().optional(),
  messageId: z.string().optional(),
  toolCallId: z.string().optional(),
  /** Whether it was asked in a chat of this person. */
  own: z.boolean(),
})
export type PendingApproval = z.infer<typeof PendingApproval>

/** A line of an approval's history; which further fields there are depends on `type`. */
export const ApprovalRecord = z.looseObject({ at: Time, type: z.string() })
export type ApprovalRecord = z.infer<typeof ApprovalRecord>

/** What a page that watches a chat is told of; what it then reads, it reads where it always does. */
export const ChatEvent = z.discriminatedUnion('type', [
  /** A turn begins or goes on: resume to read it. */
  z.object({ type: z.literal('turn'), messageId: z.string() }),
  z.object({ type: z.literal('approval'), approvalId: z.string(), state: z.string() }),
])
export type ChatEvent = z.infer<typeof ChatEvent>

const Part = z.looseObject({ type: z.string() }).refine(isPart, { message: 'not a part' })

/** A message, as far as a page relies on it without looking. */
const StoredMessage = z.looseObject({
  id: z.string(),
  role: z.enum(['user', 'assistant']),
  metadata: z.looseObject({}).optional(),
  parts: z.array(Part),
})

export const StoredChat = z.object({ messages: z.array(StoredMessage), running: z.boolean() })

export const ChatList = z.object({ chats: z.array(ChatSummary) })
export const ApprovalList = z.object({ approvals: z.array(PendingApproval) })
export const ApprovalWithHistory = z.object({
  approval: PendingApproval,
  history: z.array(ApprovalRecord),
})
export const ApprovalNow = z.object({ approval: PendingApproval })

/** An error of the bridge, see PROTOCOL.md §9. */
export const ErrorBody = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    retryAfterSeconds: z.number().optional(),
  }),
})

function isPart(part: { readonly type: string; readonly [key: string]: unknown }): boolean {
  const { type, text, toolCallId, state, url, mediaType } = part
  if (type === 'text' || type === 'reasoning') return typeof text === 'string'
  if (type === 'file') return typeof url === 'string' && typeof mediaType === 'string'
  if (type.startsWith('tool-')) return typeof toolCallId === 'string' && typeof state === 'string'
  return !type.startsWith('data-') || 'data' in part
}
