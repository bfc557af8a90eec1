import { expect, test } from 'vitest'

import { sqliteBrowserCalls } from '../../src/store/sqlite/tables/browser-calls.ts'
import type { BrowserCall, BrowserCallStore } from '../../src/store/tables/browser-calls.ts'
import { chat, NOON } from '../ledger/support/fixture.ts'
import { CLOCK, clocksOf, moveClock, openWithClock } from '../ledger/support/subjects.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'

/** Takes the calls that are due, for 100 ms. Returns their ids. */
async function takeDue(store: BrowserCallStore, limit = 10): Promise<string[]> {
  const calls = await store.takeDue({ appName: chat.appName, leaseMs: 100, limit })
  return calls.map(({ toolCallId }) => toolCallId).toSorted()
}

function callOf(toolCallId: string, inChat = chat): BrowserCall {
  return { chat: inChat, messageId: 'm-1', toolCallId }
}

test('[ST36] one process takes a browser call after its deadline, and another one if the first crashes', async () => {
  await using folder = await temporaryDirectory()
  const connections = [
    await openWithClock(folder.file('s.db')),
    await openWithClock(folder.file('s.db')),
  ] as const
  const [one, two] = connections.map((connection) =>
    sqliteBrowserCalls.open(connection, {
      clock: CLOCK,
      leaseClock: clocksOf(connection).leaseClock,
    }),
  ) as [BrowserCallStore, BrowserCallStore]
  const other = { ...chat, chatId: 'other' }
  await one.add(callOf('late'), 200)
  await one.add(callOf('soon'), 100)
  // A call that is added again keeps its deadline.
  await two.add(callOf('soon'), 1_000)
  await two.add(callOf('foreign', { ...chat, appName: 'other' }), 1)
  await two.add(callOf('kept', other), 300)
  const moveTo = (ms: number): void => moveClock(connections[0], NOON + ms)
  moveTo(99)
  expect(await takeDue(one)).toEqual([])
  moveTo(100)
  expect(await takeDue(one)).toEqual(['soon'])
  expect(await takeDue(two)).toEqual([])
  // The process that took `soon` has not handled it in time, and `late` is due.
  moveTo(200)
  const taken = [await takeDue(two, 1), await takeDue(one), await takeDue(two)]
  expect(taken.map(({ length }) => length)).toEqual([1, 1, 0])
  expect(taken.flat().toSorted()).toEqual(['late', 'soon'])
  await one.drop(chat, ['soon', 'unknown'])
  moveTo(300)
  expect(await takeDue(two)).toEqual(['kept', 'late'])
  await one.dropChat(chat)
  moveTo(400)
  expect(await takeDue(one)).toEqual(['kept'])
  for (const connection of connections) connection.close()
})
