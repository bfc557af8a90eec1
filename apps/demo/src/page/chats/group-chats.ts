import type { ChatSummary } from 'adk-stream-protocol/client'

interface ChatGroup {
  readonly day: 'today' | 'earlier'
  readonly chats: readonly ChatSummary[]
}

/** Groups chats into today and earlier, without empty groups. */
export function groupByDay(chats: readonly ChatSummary[], now = new Date()): ChatGroup[] {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime()
  const groups: ChatGroup[] = [
    { day: 'today', chats: chats.filter(({ updatedAt }) => updatedAt >= midnight) },
    { day: 'earlier', chats: chats.filter(({ updatedAt }) => updatedAt < midnight) },
  ]
  return groups.filter((group) => group.chats.length > 0)
}

/** Returns the chats whose title contains the query. Ignores case and character width. */
export function findChats(chats: readonly ChatSummary[], query: string): readonly ChatSummary[] {
  const wanted = normalize(query.trim())
  return wanted === '' ? chats : chats.filter(({ title }) => normalize(title).includes(wanted))
}

function normalize(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}
