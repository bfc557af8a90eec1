import { describe, expect, test } from 'vitest'

import { isRefusal } from '../../src/approvals/approval.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import { deletePrincipalData } from '../../src/store/remove-data.ts'
import { DATABASES, type StoreDatabase } from '../support/store-databases.ts'
import { chat, hanako, requestOf, taken } from './support/fixture.ts'

const LEASE_MS = 60_000
/** Longer than one lease, and shorter than two. */
const OUTAGE_MS = 1.5 * LEASE_MS

/** Two workers. The first one runs a payment and a call that may run again, and has locked the chat. */
async function openWorkers({ openStore }: StoreDatabase) {
  const stores = [await openStore(), await openStore()] as const
  const [one, two] = stores.map(
    (store) => new Ledger({ store: store.approvals, appName: chat.appName, leaseMs: LEASE_MS }),
  ) as [Ledger, Ledger]
  for (const [id, idempotent] of [
    ['pay', false],
    ['top_up', true],
  ] as const) {
    const request = requestOf({ id, toolCallId: id })
    taken(await one.request({ ...request, terms: { ...request.terms, idempotent } }))
    taken(await one.decide(id, { by: hanako, approved: true }))
    taken(await one.claim(id, request))
  }
  await one.locks.lock(chat)
  await one.heartbeat()
  return {
    one,
    two,
    /** Makes the next renewals of a worker fail, as if it alone could not reach the database. */
    failNext: (worker: 0 | 1, times: number) => {
      const { approvals } = stores[worker]
      const heartbeat = approvals.heartbeat.bind(approvals)
      let left = times
      approvals.heartbeat = async (...given) => {
        if (left > 0) {
          left -= 1
          throw new Error('The database is away.')
        }
        return heartbeat(...given)
      }
    },
    /** What the second worker takes from the first one. */
    readLost: async () => ({
      calls: (await two.recover()).map(({ id, state }) => [id, state.name]),
      chat: (await two.locks.lock(chat)) !== undefined,
      lockedByOthers: await two.locks.listLockedByOthers(chat.principalId),
    }),
    [Symbol.asyncDispose]: async () => {
      for (const store of stores) await store.close()
    },
  }
}

const NOTHING = { calls: [], chat: false, lockedByOthers: [chat.chatId] }
const EVERYTHING = {
  calls: [
    ['pay', 'unknown'],
    ['top_up', 'approved'],
  ],
  chat: true,
  lockedByOthers: [],
}

describe.each(DATABASES)('on $name', ({ open }) => {
  test('[LG1020] after an outage, a worker that has not renewed its lease yet keeps its calls and chats', async () => {
    await using database = await open()
    await using workers = await openWorkers(database)
    const { one, two, readLost } = workers
    // Several outages, after each of which the second worker is the first one to write.
    for (let outage = 0; outage < 3; outage += 1) {
      workers.failNext(1, 1)
      await database.leases.passUnwritten(OUTAGE_MS)
      expect(await readLost()).toEqual(NOTHING)
      await expect(two.heartbeat()).rejects.toThrow('away')
      await two.heartbeat()
      expect(await readLost()).toEqual(NOTHING)
    }
    // Nearly a whole lease in which the database can be written to.
    for (let part = 0; part < 3; part += 1) {
      await database.leases.passUnwritten(0.3 * LEASE_MS)
      await two.tickLeases()
      expect(await readLost()).toEqual(NOTHING)
    }
    await one.heartbeat()
    for (const id of ['pay', 'top_up'])
      expect(taken(await one.succeed(id, { paid: true })).state.name).toBe('succeeded')
  })

  test('[LG1020] an outage that no worker has noticed counts as a third of a lease', async () => {
    await using database = await open()
    await using workers = await openWorkers(database)
    await workers.two.heartbeat()
    await database.leases.passUnwritten(OUTAGE_MS)
    await workers.two.heartbeat()
    expect(await workers.readLost()).toEqual(NOTHING)
    await database.leases.passUnwritten(OUTAGE_MS)
    await workers.two.heartbeat()
    expect(await workers.readLost()).toEqual(NOTHING)
  })

  test('[LG1020] a worker that does not return after an outage loses its calls and chats after one more lease', async () => {
    await using database = await open()
    await using workers = await openWorkers(database)
    const { two, readLost } = workers
    await database.leases.passUnwritten(OUTAGE_MS)
    await two.tickLeases()
    // The second worker is idle, and lets the lease pass although it has nothing to renew.
    for (let part = 0; part < 4; part += 1) {
      await database.leases.passUnwritten(0.3 * LEASE_MS)
      await two.tickLeases()
    }
    expect(await readLost()).toEqual(EVERYTHING)
  })

  test('[LG1020] a worker that alone cannot reach the database loses its calls and chats after a lease', async () => {
    await using database = await open()
    await using workers = await openWorkers(database)
    const { one, two, readLost, failNext } = workers
    failNext(0, 4)
    for (let part = 0; part < 4; part += 1) {
      await database.leases.passUnwritten(0.3 * LEASE_MS)
      await two.heartbeat()
      await expect(one.heartbeat()).rejects.toThrow('away')
    }
    expect(await readLost()).toEqual(EVERYTHING)
    expect(isRefusal(await one.succeed('pay', { paid: true }))).toBe(true)
  })

  test('[LG1020] without a server, a command that deletes data waits for the lease of a crashed one', async () => {
    await using database = await open()
    await using store = await database.openStore()
    const { appName, principalId: userId, chatId: sessionId } = chat
    await store.sessions.createSession({ appName, userId, sessionId })
    const ledger = new Ledger({ store: store.approvals, appName, leaseMs: LEASE_MS })
    await ledger.locks.lock(chat)
    const owner = { appName, principalId: userId, audit: 'keep' } as const
    const deletion = { ...owner, leaseMs: 300, waitMs: LEASE_MS }
    expect(await deletePrincipalData(store, deletion)).toBe(1)
  })

  test('[LG1022] a store in which nothing waits for a lease is not written to by an idle worker', async () => {
    await using database = await open()
    await using store = await database.openStore()
    const ledger = new Ledger({ store: store.approvals, appName: chat.appName, leaseMs: LEASE_MS })
    await ledger.heartbeat()
    await database.leases.passUnwritten(1_000)
    const before = await database.leases.readTick()
    await ledger.tickLeases()
    expect(await database.leases.readTick()).toBe(before)
  })
})
