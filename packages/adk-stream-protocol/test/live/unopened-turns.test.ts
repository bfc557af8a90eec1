import { expect, test } from 'vitest'

import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { textOf } from '../support/chat-probe.ts'
import { readUntil } from '../support/read-feed.ts'
import { joinLive, openLiveTestBridge, whole } from './support/live-test-bridge.ts'

const AWAY = new StoreError('unavailable', 'The database is away.')

/** Opens a store. While it is away, no turn can be opened, and no reply can be stored. */
async function openStore() {
  const store = await openSqliteStore({ path: ':memory:' })
  const outage = { isAway: false, failures: 0 }
  const lockChat = store.approvals.lockChat.bind(store.approvals)
  store.approvals.lockChat = async (chat, lock) => {
    if (!outage.isAway || chat.appName.includes('#')) return lockChat(chat, lock)
    throw AWAY
  }
  const append: Store['sessions']['appendEvent'] = store.sessions.appendEvent.bind(store.sessions)
  store.sessions.appendEvent = async (request) => {
    if (!outage.isAway || request.event.author === 'user') return append(request)
    outage.failures += 1
    throw AWAY
  }
  return { store, outage }
}

type FeedEvent = Readonly<Record<string, unknown>>

function isStoredAfterTurn({ type }: FeedEvent, seen: readonly FeedEvent[]): boolean {
  return type === 'stored' && seen.some((event) => event['type'] === 'turn')
}

test('[LV1963] a live reply that the store has lost with its turn is shown as stopped when the store is back', async () => {
  const { store, outage } = await openStore()
  await using testBridge = await openLiveTestBridge({ openStore: async () => store })
  await using client = await joinLive(testBridge)
  const feed = await fetch(`${testBridge.url}/events`, { headers: { 'x-api-key': 'hanako' } })
  outage.isAway = true
  client.say('[[say Hello.]]')
  await expect(whole(client)).rejects.toThrow('unavailable')
  await expect.poll(() => outage.failures).toBeGreaterThan(0)
  outage.isAway = false
  await readUntil(feed, isStoredAfterTurn)
  const messages = await testBridge.page().messages()
  expect(messages.map(textOf)).toEqual(['[[say Hello.]]', 'Hello.'])
  expect(messages[1]).toHaveProperty('metadata.stopped', true)
})
