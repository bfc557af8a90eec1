import type { Event } from '@google/adk'
import { expect } from 'vitest'

import type { MessageView } from '../../../src/client/connection/chat-messages.ts'
import { toStored } from '../../../src/client/sync/merge-stored.ts'
import { positionOf } from '../../../src/agent/history/position.ts'
import { readConversation } from '../../../src/agent/history/replay-turn.ts'
import type { Store } from '../../../src/store/store.ts'
import type { TestBridge } from './test-bridge.ts'

/** Returns the messages of a page after it has loaded those that have changed. */
export function mergeChanged(
  shown: readonly MessageView[],
  changed: readonly MessageView[],
): MessageView[] {
  const base = { position: '', ids: new Set(shown.map(({ id }) => id)) }
  return toStored({ messages: [...changed], after: '', position: '', running: false }, base, shown)
}

/**
 * PO1: checks, for every prefix of the stored events, that a page that has read the prefix shows the whole conversation after it has
 * loaded what follows. Returns how many messages the pages have loaded altogether.
 */
export async function expectPositions({ store }: Pick<TestBridge, 'store'>): Promise<number> {
  return expectPositionsOf(await readEvents(store))
}

/** The same for these events. */
export function expectPositionsOf(events: readonly Event[]): number {
  const options = { exposeState: () => true, unfinished: undefined }
  const { messages } = readConversation(events, options)
  let loaded = 0
  for (let count = 0; count <= events.length; count += 1) {
    const shown = readConversation(events.slice(0, count), options)
    const after = positionOf(events, count)
    expect(shown.position).toBe(after)
    const rest = readConversation(events, { ...options, after })
    expect(rest).toMatchObject({ after, position: positionOf(events) })
    expect(mergeChanged(shown.messages, rest.messages)).toEqual(messages)
    loaded += rest.messages.length
  }
  return loaded
}

async function readEvents({ sessions }: Store) {
  const key = { appName: 'adk-stream-protocol', userId: 'hanako' }
  const session = await sessions.getSession({ ...key, sessionId: 'chat-1' })
  return session?.events ?? []
}
