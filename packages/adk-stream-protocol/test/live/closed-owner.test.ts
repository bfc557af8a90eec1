import { expect, test } from 'vitest'

import { Ledger } from '../../src/approvals/ledger.ts'
import { LiveOwners } from '../../src/modules/live/live-owners.ts'
import { OtherServers } from '../../src/server/chats/other-servers.ts'
import { ChatEvents } from '../../src/turns/chat-events.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { hanako, requestOf, taken } from '../ledger/support/fixture.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { asked, joinLive, openLiveTestBridge, whole } from './support/live-test-bridge.ts'

test.each([
  ['waits for a process that has not closed', false],
  ['does not wait for a process that has closed', true],
])('[LV100] a decision %s', async (_name, closes) => {
  await using folder = await temporaryDirectory()
  const store = await openSqliteStore({ path: folder.file('approvals.db') })
  const owner = new Ledger({ store: store.approvals, appName: 'demo' })
  const other = new Ledger({ store: store.approvals, appName: 'demo' })
  const { id } = taken(await owner.request({ ...requestOf(), isAwaited: true }))
  if (closes) await owner.close()
  const denied = taken(await other.decide(id, { by: hanako, approved: false }))
  const backend = { get: async () => ({ ledger: other }) }
  let reads = 0
  const owners = new LiveOwners({
    backend,
    runs: undefined,
    servers: new OtherServers({ backend, ask: () => undefined }),
    leases: {
      findOther: () => {
        throw new Error('A store without signals has no leases.')
      },
    },
    events: new ChatEvents(),
    onDecided: () => undefined,
    callState: async () => {
      reads += 1
      return 'settled'
    },
  })
  expect(await owners.leave(denied)).toBe(!closes)
  expect(reads).toBe(closes ? 0 : 1)
  await store.close()
})

test('[LV100] a process that did not react is not asked again, and is forgotten after many others', async () => {
  await using folder = await temporaryDirectory()
  const store = await openSqliteStore({ path: folder.file('approvals.db') })
  const first = new Ledger({ store: store.approvals, appName: 'demo' })
  const other = new Ledger({ store: store.approvals, appName: 'demo' })
  const approval = taken(await first.request({ ...requestOf(), isAwaited: true }))
  await first.locks.lockOpenRun(approval.chat)
  const workers: string[] = []
  let owner = 'first'
  const owners = new LiveOwners({
    backend: { get: async () => ({ ledger: other }) },
    runs: undefined,
    servers: {
      ask: async (worker) => {
        workers.push(worker)
        throw new Error('The process does not react.')
      },
      askOwner: async () => undefined,
    },
    leases: { findOther: async () => owner },
    events: new ChatEvents(),
    onDecided: () => undefined,
    callState: async () => 'asked',
  })
  expect(await owners.holds(approval)).toBe(false)
  expect(await owners.holds(approval)).toBe(false)
  expect(workers).toEqual(['first'])
  for (let index = 0; index < 100; index += 1) {
    owner = `process ${index}`
    expect(await owners.holds(approval)).toBe(false)
  }
  owner = 'first'
  expect(await owners.holds(approval)).toBe(false)
  expect(workers.filter((worker) => worker === 'first')).toHaveLength(2)
  await store.close()
})

test('[LG290] a bridge that closes ends its lease, and another one runs the call of its live approval', async () => {
  await using testBridge = await openLiveTestBridge({ live: { approvalDeadlineMs: 60_000 } })
  await using client = await joinLive(testBridge)
  client.say(`${callPayment(50)} [[then]] [[say Paid.]]`)
  await whole(client)
  const [approvalId = ''] = asked(client)
  const { waitingWorker = '' } = (await testBridge.store.approvals.get(approvalId)) ?? {}
  expect(await testBridge.store.approvals.hasEnded?.(waitingWorker)).toBe(false)
  await testBridge.restart()
  expect(await testBridge.store.approvals.hasEnded?.(waitingWorker)).toBe(true)
  expect(await testBridge.page().decide(approvalId, { approved: true })).toMatchObject({
    status: 200,
  })
  await testBridge.page().untilMessages((messages) => JSON.stringify(messages[1]).includes('Paid.'))
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[LG290] a worker that still runs a call does not end its lease', async () => {
  await using folder = await temporaryDirectory()
  const store = await openSqliteStore({ path: folder.file('approvals.db') })
  const ledger = new Ledger({ store: store.approvals, appName: 'demo' })
  const request = requestOf()
  const approval = taken(await ledger.request({ ...request, isAwaited: true }))
  await ledger.decideAndClaim(approval, { by: hanako, approved: true }, request)
  await ledger.close()
  expect(await ledger.hasClosed(ledger.worker)).toBe(false)
  await store.close()
})
