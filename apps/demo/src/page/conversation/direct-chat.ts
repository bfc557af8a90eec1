import type { AdkUIMessage } from 'adk-stream-protocol/client'
import { z } from 'zod'
import { newId } from '../new-id.ts'

/** The chat with Gemini without the agent. It is stored in this tab only. */
export interface DirectChat {
  readonly id: string
  readonly messages: AdkUIMessage[]
}

const STORED = 'direct-chat'

// Validates what the page relies on. The rest comes from the AI SDK.
const Stored = z.object({
  id: z.string(),
  messages: z.array(
    z.looseObject({
      id: z.string(),
      role: z.enum(['user', 'assistant']),
      parts: z.array(z.looseObject({ type: z.string() })),
    }),
  ),
})

/** Returns the chat of this tab, or a new one. */
export function readDirectChat(): DirectChat {
  const stored = sessionStorage.getItem(STORED)
  const { data } = Stored.safeParse(stored === null ? undefined : JSON.parse(stored))
  if (!data) return { id: newId(), messages: [] }
  return { id: data.id, messages: data.messages as unknown as AdkUIMessage[] }
}

export function storeDirectChat(chat: DirectChat): void {
  try {
    sessionStorage.setItem(STORED, JSON.stringify(chat))
  } catch {
    // Pictures may exceed the storage quota. A reload then shows the chat as it was stored before.
  }
}

export function deleteDirectChat(): void {
  sessionStorage.removeItem(STORED)
}
