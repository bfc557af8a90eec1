import type { Event } from '@google/adk'
import { expect } from 'vitest'

import { positionOf } from '../../../src/agent/history/position.ts'
import { readConversation } from '../../../src/agent/history/replay-turn.ts'
import type { Store } from '../../../src/store/store.ts'
import type { TestBridge } from './test-bridge.ts'

type Identified = { readonly id: string }

/** Returns the messages of a page after it has loaded those that have changed. */
export function mergeChanged<Shown extends Identified>(
  shown: readonly Shown[],
  changed: readonly Shown[],
): Shown[] {
  const isNew = ({ id }: Identified): boolean => shown.every((each) => each.id !== id)
  const firstNew = changed.findIndex(isNew)
  const last = firstNew < 0 ? [] : changed.slice(firstNew)
  const merged = new Map([...shown, ...changed].map((message) => [message.id, message]))
  for (const { id } of last) merged.delete(id)
  return [...merged.values(), ...last]
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
