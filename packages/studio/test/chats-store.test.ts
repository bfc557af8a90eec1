import type { ChatSummary } from 'adk-stream-protocol/client'
import { expect, test } from 'vitest'

import { type ChatsApi, ChatsStore, findChats, groupByDay } from '../src/page/chats/chats-store.ts'

test('[DM60] the newest chat is first, and a new one is shown before the server lists it', async () => {
  const { store, titles } = open([chat('a', 1), chat('b', 2)])
  await store.refresh()
  expect(titles()).toEqual(['b', 'a'])
  store.addStarted('c', '  Hello there\nand more')
  expect(store.read().chats[0]).toMatchObject({ id: 'c', title: 'Hello there', running: true })
  await store.refresh()
  expect(titles()).toEqual(['Hello there', 'b', 'a'])
})

test('[SD1307] a chat that began with the form of a tool has the name of the tool as its title', async () => {
  const { store, titles } = open([
    { ...chat('a', 1), title: '[[call get_time {"timeZone":"Asia/To' },
  ])
  await store.refresh()
  store.addStarted('b', '[[call refund {"order": 42}]]')
  expect(titles()).toEqual(['refund', 'get_time'])
  await store.rename('a', '[[call me later]]')
  expect(titles()).toEqual(['refund', '[[call me later]]'])
})

test('[DM60] the list of the server replaces the shown one', async () => {
  const { store, server } = open([])
  store.addStarted('c', 'Hello there')
  server.chats = [{ ...chat('c', 5), title: 'Greeting' }]
  await store.refresh()
  expect(store.read().chats).toEqual(server.chats)
})

test('[DM60] a response that arrives after a later one is not shown', async () => {
  const { store, server, titles } = open([chat('old', 1)])
  const slow = server.hold()
  const first = store.refresh()
  server.chats = [chat('new', 2)]
  await store.refresh()
  slow.release([chat('old', 1)])
  await first
  expect(titles()).toEqual(['new'])
})

test('[DM60] while the server cannot be reached, the list stays and shows a notice', async () => {
  const { store, server, titles } = open([chat('a', 1)])
  await store.refresh()
  server.refuses = true
  await store.refresh()
  expect([titles(), store.read().problem]).toEqual([['a'], 'list'])
  server.refuses = false
  await store.refresh()
  expect(store.read().problem).toBeUndefined()
})

test('[DM61] a new name is shown at once, and an older response does not revert it', async () => {
  const { store, server, titles } = open([chat('a', 1)])
  await store.refresh()
  const renaming = store.rename('a', 'Trip')
  expect(titles()).toEqual(['Trip'])
  await store.refresh()
  expect(titles()).toEqual(['Trip'])
  await renaming
  expect([titles(), server.chats[0]?.title]).toEqual([['Trip'], 'Trip'])
})

test('[DM61] a name that the server rejects is reverted', async () => {
  const { store, server, titles } = open([chat('a', 1)])
  await store.refresh()
  server.refuses = true
  await store.rename('a', 'Trip')
  expect([titles(), store.read().problem]).toEqual([['a'], 'rename'])
})

test('[DM61] a chat that the server could not delete is shown again', async () => {
  const { store, server, titles } = open([chat('a', 1), chat('b', 2)])
  await store.refresh()
  server.refuses = true
  const deleting = store.remove('b')
  expect(titles()).toEqual(['a'])
  await deleting
  expect([titles(), store.read().problem]).toEqual([['b', 'a'], 'delete'])

  server.refuses = false
  await store.remove('b')
  expect([titles(), store.read().problem]).toEqual([['a'], undefined])
})

test('[DM60] a search ignores case and width, and chats are grouped by day', () => {
  const now = new Date(2026, 3, 2, 9)
  const chats = [
    { ...chat('a', now.getTime()), title: 'ＫＹＯＴＯ trip' },
    { ...chat('b', new Date(2026, 3, 1, 23, 59).getTime()), title: '東京の天気' },
  ]
  expect(findChats(chats, 'kyoto').map(({ id }) => id)).toEqual(['a'])
  expect(findChats(chats, ' 天気 ').map(({ id }) => id)).toEqual(['b'])
  expect(groupByDay(chats, now).map(({ day, chats: of }) => [day, of[0]?.id])).toEqual([
    ['today', 'a'],
    ['earlier', 'b'],
  ])
})

function open(chats: ChatSummary[]) {
  const server = new Server(chats)
  const store = new ChatsStore(server, () => 100)
  return { server, store, titles: () => store.read().chats.map(({ title }) => title) }
}

function chat(id: string, updatedAt: number): ChatSummary {
  return { id, title: id, createdAt: 0, updatedAt, running: false, pending: 0 }
}

/** A server that can reject requests, and whose next list can be delayed. */
class Server implements ChatsApi {
  chats: ChatSummary[]
  refuses = false
  #held: Promise<ChatSummary[]> | undefined

  constructor(chats: ChatSummary[]) {
    this.chats = chats
  }

  hold() {
    const waiting: ((chats: ChatSummary[]) => void)[] = []
    this.#held = new Promise((resolve) => waiting.push(resolve))
    return {
      release: (chats: ChatSummary[]) => {
        for (const resolve of waiting) resolve(chats)
      },
    }
  }

  async listChats(): Promise<ChatSummary[]> {
    const held = this.#held
    this.#held = undefined
    await this.#obey()
    return held ?? this.chats
  }

  async renameChat(id: string, title: string): Promise<void> {
    await this.#obey()
    this.chats = this.chats.map((known) => (known.id === id ? { ...known, title } : known))
  }

  async deleteChat(id: string): Promise<void> {
    await this.#obey()
    this.chats = this.chats.filter((known) => known.id !== id)
  }

  async #obey(): Promise<void> {
    await Promise.resolve()
    if (this.refuses) throw new Error('refused')
  }
}
