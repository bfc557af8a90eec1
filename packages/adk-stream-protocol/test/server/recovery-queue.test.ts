import { setImmediate } from 'node:timers/promises'

import { describe, expect, test, vi } from 'vitest'

import type { Approval } from '../../src/approvals/approval.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import { RecoveryQueue } from '../../src/server/chats/recovery/sweepers.ts'
import { defer } from '../../src/shared/async.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { GO } from '../approvals/support/named-agents.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { chat, requestOf, taken } from '../ledger/support/fixture.ts'
import { subjects } from '../ledger/support/subjects.ts'

const QUOTA = { perChat: 1_000, perPrincipal: 1_000 }

/** Approved calls of one principal after the other, each in its own chat. */
async function give(ledger: Ledger, principalId: string, count: number): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    const id = `${principalId}-${number}`
    const terms = { chain: [{ count: 1, principals: [principalId], roles: [] }], idempotent: false }
    const own = { ...chat, principalId, chatId: id }
    taken(await ledger.request(requestOf({ id, chat: own, toolCallId: id, terms })))
    taken(await ledger.decide(id, { by: { id: principalId, roles: [] }, approved: true }))
  }
}

describe.each(Object.entries(subjects))('%s', (_, open) => {
  test('[LG38] of several principals, the first of each is listed before the second of any', async () => {
    await using subject = await open()
    const ledger = new Ledger({ store: subject.store, appName: chat.appName, quota: QUOTA })
    await give(ledger, 'mallory', 4)
    await give(ledger, 'hanako', 2)
    await give(ledger, 'taro', 1)
    const listed = async (except: readonly string[] = [], limit = 5) =>
      (await ledger.unreported({ except, limit })).map(({ id }) => id)
    const first = ['mallory-0', 'hanako-0', 'taro-0']
    expect(await listed()).toEqual([...first, 'mallory-1', 'hanako-1'])
    expect(await listed(first)).toEqual(['mallory-1', 'hanako-1', 'mallory-2', 'mallory-3'])
    expect(await listed([], 1)).toEqual(['mallory-0'])
  })

  test('[AP82] failing work of one principal does not delay that of another by a single sweep', async () => {
    await using subject = await open()
    const ledger = new Ledger({ store: subject.store, appName: chat.appName, quota: QUOTA })
    await give(ledger, 'mallory', 150)
    const begun: string[] = []
    // The calls of mallory never complete.
    const followed = new RecoveryQueue((approval) => {
      begun.push(approval.id)
      return approval.chat.principalId === 'mallory' ? new Promise(() => {}) : Promise.resolve()
    }, 1_000)
    const sweep = async () => {
      for (const approval of await ledger.unreported({ except: followed.deferredIds() }))
        followed.take(approval)
    }
    for (let sweeps = 0; sweeps < 3; sweeps += 1) await sweep()
    expect(begun).toEqual(['mallory-0', 'mallory-1', 'mallory-2', 'mallory-3'])
    await give(ledger, 'hanako', 1)
    await sweep()
    expect(begun.slice(4)).toEqual(['hanako-0'])
  })
})

test('[AP82] failing work is retried at growing intervals, and at once when it has changed', async () => {
  const { store } = await openMemory()
  const ledger = new Ledger({ store, appName: chat.appName, quota: QUOTA })
  await give(ledger, 'hanako', 1)
  const [approval] = await ledger.unreported()
  if (!approval) throw new Error('nothing was given')
  let [now, sweeps] = [0, 0]
  const triedIn: number[] = []
  const follow = async () => void triedIn.push(sweeps)
  const followed = new RecoveryQueue(follow, 1_000, () => now)
  const sweep = async (found: Approval) => {
    sweeps += 1
    now += 1_000
    if (!followed.deferredIds().includes(found.id)) followed.take(found)
    await setImmediate()
  }
  for (let count = 0; count < 50; count += 1) await sweep(approval)
  expect(triedIn).toEqual([1, 2, 4, 8, 16, 32, 48])
  followed.take({ ...approval, state: { name: 'denied', at: 0, by: 'hanako' } })
  expect(triedIn).toHaveLength(8)
})

async function openMemory() {
  const open = subjects['in memory']
  if (!open) throw new Error('there is a store in memory')
  return open()
}

test('[LG1022] a sweep that takes long does not keep a server from renewing its lease', async () => {
  const [sweeping, released] = [defer(), defer()]
  let renewals = 0
  await using testBridge = await TestBridge.open({
    isLive: false,
    limits: { sweepMs: 10 },
    respond: () => [{ type: 'wait', gate: 'reply' }],
    openStore: async () => {
      const store = await openSqliteStore({ path: ':memory:' })
      const { approvals } = store
      const heartbeat = approvals.heartbeat.bind(approvals)
      approvals.heartbeat = async (...lease) => {
        renewals += 1
        await heartbeat(...lease)
      }
      approvals.due = async () => {
        sweeping.resolve()
        await released.promise
        return []
      }
      return store
    },
  })
  // A server with a turn has a lease to renew.
  const reply = testBridge.page().post(GO)
  await sweeping.promise
  const before = renewals
  try {
    await vi.waitFor(() => expect(renewals).toBeGreaterThan(before + 2))
  } finally {
    released.resolve()
    testBridge.emulator.release('reply')
    await reply
  }
})
