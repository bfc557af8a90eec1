import type { AdkApi, ChatSummary } from 'adk-stream-protocol/client'

/** The part of the API that the list uses. */
export type ChatsApi = Pick<AdkApi, 'listChats' | 'renameChat' | 'deleteChat'>

/** The list as the page shows it. */
export interface Chats {
  readonly state: 'loading' | 'ready'
  readonly chats: readonly ChatSummary[]
  /** The request that failed. The list shows the server's state again. */
  readonly problem?: ChatsProblem
}

export type ChatsProblem = 'list' | 'rename' | 'delete'

/** Changes that the server's list does not contain yet. */
interface OptimisticChanges {
  readonly started: Map<string, ChatSummary>
  readonly renamed: Map<string, string>
  readonly deleted: Set<string>
}

/**
 * The chats of the person, with optimistic changes: a change appears at once, and is reverted if the server rejects it. The store
 * applies a change to every list that it receives until the server has confirmed it, so an older response does not undo it.
 */
export class ChatsStore {
  readonly #api: ChatsApi
  readonly #now: () => number
  readonly #listeners = new Set<() => void>()
  readonly #changes: OptimisticChanges = {
    started: new Map(),
    renamed: new Map(),
    deleted: new Set(),
  }
  #listed: readonly ChatSummary[] = []
  #shown: Chats = { state: 'loading', chats: [] }
  #state: Chats['state'] = 'loading'
  #latest = 0

  constructor(api: ChatsApi, now: () => number = Date.now) {
    this.#api = api
    this.#now = now
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
  readonly read = (): Chats => this.#shown

  /** Loads the list. Ignores a response that arrives after a newer one. */
  readonly refresh = async (): Promise<void> => {
    const request = (this.#latest += 1)
    try {
      const listed = await this.#api.listChats()
      if (request !== this.#latest) return
      this.#state = 'ready'
      this.#listed = listed
      for (const { id } of listed) this.#changes.started.delete(id)
      this.#show(this.#shown.problem === 'list' ? undefined : this.#shown.problem)
    } catch {
      // The list does not change while the server is unreachable.
      if (request !== this.#latest) return
      this.#state = 'ready'
      this.#show('list')
    }
  }

  /** Adds a chat when its first message is sent. */
  addStarted(id: string, text: string): void {
    const now = this.#now()
    const known = this.#shown.chats.find((chat) => chat.id === id)
    const title = known?.title ?? firstLine(text)
    const createdAt = known?.createdAt ?? now
    const pending = known?.pending ?? 0
    this.#changes.started.set(id, { id, title, createdAt, updatedAt: now, running: true, pending })
    this.#show(this.#shown.problem)
  }

  rename(id: string, title: string): Promise<void> {
    const { renamed } = this.#changes
    renamed.set(id, title)
    return this.#commit('rename', {
      send: () => this.#api.renameChat(id, title),
      apply: (chats) => chats.map((chat) => (chat.id === id ? { ...chat, title } : chat)),
      // Keeps a newer name.
      clear: () => renamed.get(id) === title && renamed.delete(id),
    })
  }

  remove(id: string): Promise<void> {
    const { deleted, started } = this.#changes
    deleted.add(id)
    return this.#commit('delete', {
      send: () => this.#api.deleteChat(id),
      apply: (chats) => {
        started.delete(id)
        return chats.filter((chat) => chat.id !== id)
      },
      clear: () => deleted.delete(id),
    })
  }

  readonly dismiss = (): void => this.#show(undefined)

  async #commit(kind: ChatsProblem, { send, apply, clear }: Change): Promise<void> {
    this.#show(undefined)
    try {
      await send()
      this.#listed = apply(this.#listed)
      clear()
    } catch {
      clear()
      this.#show(kind)
      return
    }
    // Invalidates requests that were sent before the change.
    await this.refresh()
  }

  #show(problem: ChatsProblem | undefined): void {
    const chats = applyChanges(this.#listed, this.#changes)
    this.#shown = { state: this.#state, chats, ...(problem && { problem }) }
    for (const listener of this.#listeners) listener()
  }
}

interface Change {
  readonly send: () => Promise<void>
  /** Applies the change to the server's list after the server has confirmed it. */
  readonly apply: (chats: readonly ChatSummary[]) => readonly ChatSummary[]
  /** Removes the change from the optimistic ones. */
  readonly clear: () => void
}

function applyChanges(
  listed: readonly ChatSummary[],
  { started, renamed, deleted }: OptimisticChanges,
): ChatSummary[] {
  const others = listed.filter(({ id }) => !started.has(id))
  return [...started.values(), ...others]
    .filter(({ id }) => !deleted.has(id))
    .map((chat) => ({ ...chat, title: renamed.get(chat.id) ?? toReadable(chat.title) }))
    .toSorted((one, other) => other.updatedAt - one.updatedAt)
}

/** Returns the name of the tool for a chat that began with the form of a tool, which sends a script to the emulator. */
function toReadable(title: string): string {
  return /^\[\[call (\w[\w.-]*) \{/.exec(title)?.[1] ?? title
}

const MAX_TITLE_LENGTH = 60

/** Returns the title that the server will give the chat. */
function firstLine(text: string): string {
  return Array.from(text.trim().split('\n')[0] ?? '')
    .slice(0, MAX_TITLE_LENGTH)
    .join('')
}

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
