import type { AdkApi, ChatSummary } from 'adk-stream-protocol/client'

/** What the list of chats needs of the server. */
export type ChatsApi = Pick<AdkApi, 'listChats' | 'renameChat' | 'deleteChat'>

/** The list as the reader sees it. */
export interface Chats {
  readonly state: 'loading' | 'ready'
  readonly chats: readonly ChatSummary[]
  /** What the server did not do; the list then shows again what it has. */
  readonly problem?: ChatsProblem
}

export type ChatsProblem = 'list' | 'rename' | 'delete'

/** What the reader did that the server's list does not show yet. */
interface Ahead {
  readonly begun: Map<string, ChatSummary>
  readonly renamed: Map<string, string>
  readonly deleted: Set<string>
}

/**
 * The chats of the reader. What they do is shown at once and told to the server; what the server refuses is taken back. A list that
 * was asked for before a change does not undo it: the change is laid over every list until the server has done it.
 */
export class ChatsStore {
  readonly #api: ChatsApi
  readonly #now: () => number
  readonly #listeners = new Set<() => void>()
  readonly #ahead: Ahead = { begun: new Map(), renamed: new Map(), deleted: new Set() }
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

  /** Asks for the list; an answer that was overtaken by a later one is out of date. */
  readonly refresh = async (): Promise<void> => {
    const turn = (this.#latest += 1)
    try {
      const listed = await this.#api.listChats()
      if (turn !== this.#latest) return
      this.#state = 'ready'
      this.#listed = listed
      for (const { id } of listed) this.#ahead.begun.delete(id)
      this.#show(this.#shown.problem === 'list' ? undefined : this.#shown.problem)
    } catch {
      // The list stays as it is while the server cannot be asked.
      if (turn !== this.#latest) return
      this.#state = 'ready'
      this.#show('list')
    }
  }

  /** Shows a chat in which something was just said for the first time. */
  begin(id: string, said: string): void {
    const now = this.#now()
    const known = this.#shown.chats.find((chat) => chat.id === id)
    const title = known?.title ?? firstLine(said)
    const createdAt = known?.createdAt ?? now
    const pending = known?.pending ?? 0
    this.#ahead.begun.set(id, { id, title, createdAt, updatedAt: now, running: true, pending })
    this.#show(this.#shown.problem)
  }

  rename(id: string, title: string): Promise<void> {
    const { renamed } = this.#ahead
    renamed.set(id, title)
    return this.#tell('rename', {
      act: () => this.#api.renameChat(id, title),
      done: (chats) => chats.map((chat) => (chat.id === id ? { ...chat, title } : chat)),
      // A later name is not given up for an earlier one.
      settle: () => renamed.get(id) === title && renamed.delete(id),
    })
  }

  remove(id: string): Promise<void> {
    const { deleted, begun } = this.#ahead
    deleted.add(id)
    return this.#tell('delete', {
      act: () => this.#api.deleteChat(id),
      done: (chats) => {
        begun.delete(id)
        return chats.filter((chat) => chat.id !== id)
      },
      settle: () => deleted.delete(id),
    })
  }

  readonly dismiss = (): void => this.#show(undefined)

  async #tell(what: ChatsProblem, { act, done, settle }: Deed): Promise<void> {
    this.#show(undefined)
    try {
      await act()
      this.#listed = done(this.#listed)
      settle()
    } catch {
      settle()
      this.#show(what)
      return
    }
    // What was asked for before the change is overtaken by this.
    await this.refresh()
  }

  #show(problem: ChatsProblem | undefined): void {
    const chats = layOver(this.#listed, this.#ahead)
    this.#shown = { state: this.#state, chats, ...(problem && { problem }) }
    for (const listener of this.#listeners) listener()
  }
}

interface Deed {
  readonly act: () => Promise<void>
  /** The list as it is once the server has done it. */
  readonly done: (chats: readonly ChatSummary[]) => readonly ChatSummary[]
  readonly settle: () => void
}

function layOver(listed: readonly ChatSummary[], ahead: Ahead): ChatSummary[] {
  const others = listed.filter(({ id }) => !ahead.begun.has(id))
  return [...ahead.begun.values(), ...others]
    .filter(({ id }) => !ahead.deleted.has(id))
    .map((chat) => ({ ...chat, title: ahead.renamed.get(chat.id) ?? chat.title }))
    .toSorted((one, other) => other.updatedAt - one.updatedAt)
}

const LONGEST_TITLE = 60

/** What the server will call the chat, until it says so itself. */
function firstLine(said: string): string {
  return Array.from(said.trim().split('\n')[0] ?? '')
    .slice(0, LONGEST_TITLE)
    .join('')
}
