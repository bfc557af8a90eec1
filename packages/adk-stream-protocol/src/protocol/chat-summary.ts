import { z } from 'zod'

/** A chat as a list shows it; times in ms since 1970. */
export const ChatSummary = z.object({
  id: z.string(),
  /** What its owner calls it, or the beginning of the first thing they said; empty while nothing was said. */
  title: z.string(),
  createdAt: z.number(),
  updatedAt: z.number(),
  /** Whether an answer is being written now. */
  running: z.boolean(),
  /** How many approvals are open. */
  pending: z.number(),
})
export type ChatSummary = z.infer<typeof ChatSummary>

/** The body of `PATCH /chats/:chatId`. */
export const ChatChange = z.strictObject({ title: z.string().trim().min(1).max(200) })

/** Which list is to be read again. */
export const ListEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('chat'), chatId: z.string() }),
  z.object({
    type: z.literal('approval'),
    approvalId: z.string(),
    state: z.string(),
    /** The chat, where it is the reader's own. */
    chatId: z.string().optional(),
  }),
])
export type ListEvent = z.infer<typeof ListEvent>

/** What `GET /events` tells: of the lists, and of turns in the reader's chats. */
export const PageEvent = z.discriminatedUnion('type', [
  ...ListEvent.options,
  z.object({ type: z.literal('turn'), chatId: z.string(), messageId: z.string() }),
])
export type PageEvent = z.infer<typeof PageEvent>
