import { z } from 'zod'

/** The body of `PATCH /chats/:chatId`. */
export const ChatChange = z.strictObject({ title: z.string().trim().min(1).max(200) })
