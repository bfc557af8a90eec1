import type { AdkUIMessage } from 'adk-stream-protocol/client'
import { z } from 'zod'

/** The conversation with Gemini without the agent. No server keeps it: it lives as long as this tab does. */
export interface DirectChat {
  readonly id: string
  readonly messages: AdkUIMessage[]
}

const STORED = 'direct-chat'

// What the page relies on; the rest is as the AI SDK made it.
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

/** The conversation of this tab; a fresh one where there is none. */
export function readDirectChat(): DirectChat {
  const stored = sessionStorage.getItem(STORED)
  const { data } = Stored.safeParse(stored === null ? undefined : JSON.parse(stored))
  if (!data) return { id: crypto.randomUUID(), messages: [] }
  return { id: data.id, messages: data.messages as unknown as AdkUIMessage[] }
}

export function storeDirectChat(chat: DirectChat): void {
  try {
    sessionStorage.setItem(STORED, JSON.stringify(chat))
  } catch {
    // Pictures may be more than the browser keeps: a reload then shows what was kept before.
  }
}

export function deleteDirectChat(): void {
  sessionStorage.removeItem(STORED)
}
