import { expect, test } from 'vitest'

import { sqliteBrowserCalls } from '../../src/store/sqlite/sqlite-table-stores.ts'
import type { BrowserCall, BrowserCallStore } from '../../src/store/store.ts'
import { chat, NOON } from '../ledger/support/fixture.ts'
import { CLOCK, clocksOf, moveClock, openWithClock } from '../ledger/support/subjects.ts'
import { temporaryFolder } from './support/fixture.ts'

function take(store: BrowserCallStore, limit = 10): Promise<BrowserCall[]> {
  return store.takeDue({ appName: chat.appName, leaseMs: 100, limit })
}

function wait(toolCallId: string, of = chat): BrowserCall {
  return { chat: of, messageId: 'm-1', toolCallId }
}

test('[ST36] one process takes a browser call after its deadline, and another one if the first crashes', async () => {
  await using folder = await temporaryFolder()
  const connections = [
    await openWithClock(folder.path('waits.db')),
    await openWithClock(folder.path('waits.db')),
  ] as const
  const [one, two] = connections.map((connection) =>
    sqliteBrowserCalls(connection, CLOCK, clocksOf(connection).leaseClock),
  ) as [BrowserCallStore, BrowserCallStore]
  const other = { ...chat, chatId: 'other' }
  await one.add(wait('late'), 200)
  await one.add(wait('soon'), 100)
  // It keeps its deadline.
  await two.add(wait('soon'), 1_000)
  await two.add(wait('foreign', { ...chat, appName: 'other' }), 1)
  await two.add(wait('kept', other), 300)
  moveClock(connections[0], NOON + 99)
  expect(await take(one)).toEqual([])
  moveClock(connections[0], NOON + 100)
  expect([await take(one), await take(two)]).toEqual([[wait('soon')], []])
  moveClock(connections[0], NOON + 200)
  expect([await take(two, 1), await take(one), await take(two)]).toEqual([
    [expect.anything()],
    [expect.anything()],
    [],
  ])
  await one.drop(chat, ['soon', 'none'])
  moveClock(connections[0], NOON + 300)
  expect((await take(two)).map(({ toolCallId }) => toolCallId).toSorted()).toEqual(['kept', 'late'])
  await one.dropChat(chat)
  moveClock(connections[0], NOON + 400)
  expect(await take(one)).toEqual([wait('kept', other)])
  for (const connection of connections) connection.close()
})
