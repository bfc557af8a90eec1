import { startEmulator } from 'gemini-emulator'
import { expect, test } from 'vitest'

import { Ledger } from '../../src/approvals/ledger.ts'
import type { LiveLeases } from '../../src/modules/live/live-leases.ts'
import { OtherServers } from '../../src/server/chats/other-servers.ts'
import { openLiveLeases, openSnapshot, sealSnapshot } from '../../src/modules/live/live-leases.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import {
  isTurnComplete,
  memoryOf,
  openSockets,
  runReconnecting,
  textOf,
} from './support/reconnecting-run.ts'

const CHAT = { appName: 'app', principalId: 'hanako', chatId: 'chat-1' }
const SNAPSHOT = { handle: 'a secret handle', eventId: 'e1', calls: [] }

test('[LV329] a snapshot can be read with the key of its store and for its chat only', () => {
  const key = Buffer.alloc(32, 1)
  const sealed = sealSnapshot(CHAT, SNAPSHOT, key)
  expect(Buffer.from(sealed).toString('latin1')).not.toContain('handle')
  expect(openSnapshot(CHAT, sealed, key)).toEqual(SNAPSHOT)
  expect(() => openSnapshot({ ...CHAT, chatId: 'chat-2' }, sealed, key)).toThrow(/authenticate/)
  expect(() => openSnapshot(CHAT, sealed, Buffer.alloc(32, 2))).toThrow(/authenticate/)
})

function open(store: Store, leaseMs = 15_000): LiveLeases {
  // The thread that renews leases takes this process for a blocked one, so a lease ends after `leaseMs`.
  const options = { appName: 'app', leaseMs, maxBlockedMs: -1 }
  const ledger = new Ledger({ store: store.approvals, ...options })
  return openLiveLeases({
    backend: { get: async () => ({ ledger, store }) },
    // The other process does not answer.
    servers: new OtherServers({
      backend: { get: async () => ({ ledger }) },
      ask: () => () => Promise.reject(new Error('no answer')),
    }),
    onError: (error) => {
      throw error
    },
  })
}

async function take(leases: LiveLeases) {
  const lease = await leases.take(CHAT, 'input')
  if (typeof lease === 'string') throw new Error(lease)
  return lease
}

test('[LV329] only the owner of a live session stores snapshots, and the end of the session removes them', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('store.db')
  await using first = await openSqliteStore({ path })
  await using second = await openSqliteStore({ path })
  const lost = await take(open(first, 50))
  expect(await lost.save(SNAPSHOT)).toBe(true)
  // The first process does not renew its lease any more. Here, no sweep lets lease time pass.
  await second.approvals.tickLeases?.(60_000)
  const lease = await take(open(second, 50))
  expect(lease.continues).toEqual(SNAPSHOT)
  expect(await lost.isHeld()).toBe(false)
  expect(await lost.save({ calls: [] })).toBe(false)
  await lost.release()
  expect(await lease.isHeld()).toBe(true)
  await lease.release(SNAPSHOT)
  const next = await take(open(first))
  expect(next.continues).toEqual(SNAPSHOT)
  await next.release()
  expect(await first.liveSessions?.find(CHAT)).toBeUndefined()
  // A session that was handed over, and whose chat is deleted before another process continues it.
  const last = await take(open(first))
  await last.release(SNAPSHOT)
  await open(second).end(CHAT)
  expect(await first.liveSessions?.find(CHAT)).toBeUndefined()
})

test.each([
  ['1008 if Gemini does not know the handle', 'no-such-handle'],
  ['1011 if Gemini still holds the earlier connection', undefined],
])('[LV323] a first connection that is rejected with %s starts fresh', async (_name, known) => {
  await using emulator = await startEmulator()
  await using before = await runReconnecting(emulator)
  before.say('[[say One.]]')
  await before.until(isTurnComplete)
  const [session] = emulator.live.sessions
  const update = await session?.waitForSent((frame) => 'sessionResumptionUpdate' in frame)
  const { newHandle } = Object(update?.['sessionResumptionUpdate']) as { newHandle: string }
  const history = [{ role: 'user', parts: [{ text: 'Earlier.' }] }]
  await using run = await runReconnecting(emulator, {
    history,
    resumeFrom: () => known ?? newHandle,
  })
  run.say('[[say Two.]]')
  expect(textOf(await run.until(isTurnComplete))).toBe('Two.')
  const last = emulator.live.sessions.at(-1)
  expect(last?.setup?.sessionResumption?.handle).toBeUndefined()
  expect(last && memoryOf(last)).toEqual(['user: Earlier.', 'user: [[say Two.]]', 'model: Two.'])
  // The other conversation is untouched.
  expect(openSockets(emulator)).toBe(2)
  expect(run.reported.errors.length).toBeGreaterThan(0)
})
