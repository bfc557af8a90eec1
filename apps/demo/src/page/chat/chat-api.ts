import { safeValidateUIMessages } from 'ai'
import { z } from 'zod'

import { type Message, Metadata } from './message.ts'

/** A chat as the server keeps it; `messages` leaves out the answer that is being written. */
export interface SavedChat {
  readonly messages: Message[]
  readonly running: boolean
}

const Body = z.object({ messages: z.array(z.unknown()), running: z.boolean() })

/** Reads a chat; `undefined` when this reader has no such chat. */
export async function loadChat(id: string, signal?: AbortSignal): Promise<SavedChat | undefined> {
  const response = await fetch(pathOf(id, 'messages'), { signal: signal ?? null })
  if (!response.ok) throw new ChatApiError(`The server answered with status ${response.status}.`)
  const { messages, running } = Body.parse(await response.json())
  // The server does not tell whether somebody else has a chat of this name.
  if (messages.length === 0) return running ? { messages: [], running } : undefined
  const valid = await safeValidateUIMessages<Message>({
    messages,
    // What the user says has no metadata.
    metadataSchema: Metadata.optional(),
  })
  if (!valid.success) {
    throw new ChatApiError('The messages cannot be shown by this page.', { cause: valid.error })
  }
  return { messages: valid.data, running }
}

/** Ends the answer that is being written, for every reader. */
export async function stopTurn(id: string): Promise<void> {
  await fetch(pathOf(id, 'stop'), { method: 'POST', signal: AbortSignal.timeout(3000) })
}

class ChatApiError extends Error {
  override readonly name = 'ChatApiError'
}

function pathOf(id: string, what: 'messages' | 'stop'): string {
  return `/chats/${encodeURIComponent(id)}/${what}`
}
