import { ChatSummary } from 'adk-stream-protocol/protocol'
import { z } from 'zod'

/** What the list of chats needs of the server. */
export interface ChatsApi {
  listChats(): Promise<ChatSummary[]>
  renameChat(id: string, title: string): Promise<void>
  deleteChat(id: string): Promise<void>
}

const List = z.object({ chats: z.array(ChatSummary) })
const TIMEOUT_MS = 10_000

export const chatsApi: ChatsApi = {
  async listChats() {
    const response = await ask('/chats', { method: 'GET' })
    return List.parse(await response.json()).chats
  },
  async renameChat(id, title) {
    const body = JSON.stringify({ title })
    await ask(addressOf(id), {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body,
    })
  },
  async deleteChat(id) {
    await ask(addressOf(id), { method: 'DELETE' })
  },
}

class ChatsApiError extends Error {
  override readonly name = 'ChatsApiError'
}

async function ask(path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(path, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })
  if (!response.ok) throw new ChatsApiError(`The server answered with status ${response.status}.`)
  return response
}

function addressOf(id: string): string {
  return `/chats/${encodeURIComponent(id)}`
}
