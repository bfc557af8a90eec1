import type { ChatSummary } from 'adk-stream-protocol/protocol'

interface ChatGroup {
  readonly day: 'today' | 'earlier'
  readonly chats: readonly ChatSummary[]
}

/** The chats of today and those before, without empty groups. */
export function groupByDay(chats: readonly ChatSummary[], now = new Date()): ChatGroup[] {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime()
  const groups: ChatGroup[] = [
    { day: 'today', chats: chats.filter(({ updatedAt }) => updatedAt >= midnight) },
    { day: 'earlier', chats: chats.filter(({ updatedAt }) => updatedAt < midnight) },
  ]
  return groups.filter((group) => group.chats.length > 0)
}

/** The chats with these words in their title, however wide or large they are written. */
export function findChats(chats: readonly ChatSummary[], words: string): readonly ChatSummary[] {
  const sought = plain(words.trim())
  return sought === '' ? chats : chats.filter(({ title }) => plain(title).includes(sought))
}

function plain(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}
