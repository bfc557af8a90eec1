import type { ChatLock } from '../../approvals/approval-store.ts'
import type { Store } from '../store.ts'
import { chat, NOON } from './approval-fixture.ts'
import type { ContractTest } from './contract-test.ts'
import { expect } from './expect.ts'
import type { ContractDatabase, StoreContractOptions } from './store.contract.ts'

/** As the bridge locks a live session: in a namespace of its own. */
const locked = { ...chat, appName: `${chat.appName} live` }
const other = { ...chat, chatId: 'other' }
const DAY_MS = 86_400_000

/** Defines the tests of the states of live sessions, which a store may leave out. */
export function liveSessionContract(test: ContractTest, open: StoreContractOptions['open']): void {
  test('[ST622] the state of a live session is stored by the holder of its lock, and read by every process', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database)
    if (!one.liveSessions || !two.liveSessions) return
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
    const save = (store: Store, token: string, state: Uint8Array) =>
      store.liveSessions?.save(chat, state, { lock: { chat: locked, token }, maxAgeMs: DAY_MS })
    // Without a lock, nothing is stored.
    expect(await save(one, 'first', bytes)).toBe(false)
    expect(await one.approvals.lockChat(locked, lockOf('first', 60_000))).toBe(true)
    expect(await save(one, 'first', bytes)).toBe(true)
    expect(await read(two)).toEqual([...bytes])
    expect(await read(two, other)).toBe(undefined)
    expect(await save(one, 'first', Uint8Array.of(1))).toBe(true)
    expect(await save(two, 'another', Uint8Array.of(2))).toBe(false)
    expect(await read(two)).toEqual([1])
    // With a lease of 0 ms, every lock has expired.
    expect(await two.approvals.lockChat(locked, lockOf('second', 0))).toBe(true)
    expect(await save(one, 'first', Uint8Array.of(3))).toBe(false)
    expect(await read(one)).toEqual([1])
    expect(await save(two, 'second', Uint8Array.of(4))).toBe(true)
    expect(await read(one)).toEqual([4])
    await one.liveSessions.drop(chat)
    expect(await read(two)).toBe(undefined)
    await one.liveSessions.drop(chat)
  })

  test('[ST622] states of live sessions that are too old are removed when another one is stored', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database)
    if (!one.liveSessions) return
    const lock = { chat: locked, token: 'first' }
    expect(await one.approvals.lockChat(locked, lockOf('first', 2 * DAY_MS))).toBe(true)
    const options = { lock, maxAgeMs: 1_000 }
    expect(await one.liveSessions.save(other, Uint8Array.of(1), options)).toBe(true)
    await database.setClocks(NOON + 900)
    expect(await one.liveSessions.save(chat, Uint8Array.of(2), options)).toBe(true)
    expect(await read(two, other)).toEqual([1])
    await database.setClocks(NOON + 1_100)
    expect(await one.liveSessions.save(chat, Uint8Array.of(3), options)).toBe(true)
    expect([await read(two, other), await read(two)]).toEqual([undefined, [3]])
  })
}

async function openTwo(database: ContractDatabase): Promise<[Store, Store]> {
  return [await database.open(), await database.open()]
}

async function read({ liveSessions }: Store, of = chat): Promise<number[] | undefined> {
  const state = await liveSessions?.find(of)
  return state && [...state]
}

function lockOf(token: string, leaseMs: number): ChatLock {
  return { worker: `worker of ${token}`, token, leaseMs, background: true }
}
