import type { AdkUIMessage } from 'adk-stream-protocol/client'
import { z } from 'zod'
import { newId } from '../new-id.ts'

/** The chat of a mode without the agent. It is stored in this tab only. */
interface TabChat {
  readonly id: string
  readonly messages: AdkUIMessage[]
}

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

/** Returns the chat of this mode in this tab, or a new one. */
export function readTabChat(mode: string): TabChat {
  const stored = sessionStorage.getItem(keyOf(mode))
  const { data } = Stored.safeParse(stored === null ? undefined : JSON.parse(stored))
  if (!data) return { id: newId(), messages: [] }
  return { id: data.id, messages: data.messages as unknown as AdkUIMessage[] }
}

export function storeTabChat(mode: string, chat: TabChat): void {
  try {
    sessionStorage.setItem(keyOf(mode), JSON.stringify(chat))
  } catch {
    // Pictures may exceed the storage quota. A reload then shows the chat as it was stored before.
  }
}

export function deleteTabChat(mode: string): void {
  sessionStorage.removeItem(keyOf(mode))
}

function keyOf(mode: string): string {
  return `${mode}-chat`
}
