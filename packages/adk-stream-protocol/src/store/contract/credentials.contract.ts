import type { CredentialStore } from '../store.ts'
import { chat, NOON } from './approval-fixture.ts'
import type { ContractTest } from './contract-test.ts'
import { expect } from './expect.ts'
import type { StoreContractOptions } from './store.contract.ts'

const { chatId: _chatId, ...owner } = chat
const other = { ...owner, principalId: 'somebody else' }
const sealed = (value: string): Uint8Array => Buffer.from(value)

/** Defines the tests of {@link CredentialStore}, which a store may leave out. */
export function credentialContract(test: ContractTest, open: StoreContractOptions['open']): void {
  test('[ST430] a credential belongs to one principal and is replaced by the next one of its name', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database)
    if (!one || !two) return
    expect(await one.save(owner, { name: 'a', sealed: sealed('1') })).toBe(true)
    expect(await two.save(owner, { name: 'a', sealed: sealed('2') })).toBe(true)
    expect(await two.save(other, { name: 'a', sealed: sealed('3') })).toBe(true)
    const [stored, ...rest] = await two.list(owner)
    expect([stored?.name, text(stored?.sealed), rest.length]).toEqual(['a', '2', 0])
    expect(await one.remove(owner, 'a')).toBe(true)
    expect(await two.remove(owner, 'a')).toBe(false)
    expect([await two.list(owner), (await two.list(other)).length]).toEqual([[], 1])
  })

  test('[ST430] a credential that was replaced or removed meanwhile is not written', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database)
    if (!one || !two) return
    await one.save(owner, { name: 'a', sealed: sealed('1') })
    const version = (await one.list(owner))[0]?.version ?? 0
    expect(await two.save(owner, { name: 'a', sealed: sealed('2'), version })).toBe(true)
    expect(await one.save(owner, { name: 'a', sealed: sealed('3'), version })).toBe(false)
    await two.remove(owner, 'a')
    expect(await one.save(owner, { name: 'a', sealed: sealed('4'), version: version + 1 })).toBe(
      false,
    )
    expect(await two.list(owner)).toEqual([])
  })

  test('[ST431] one process at a time may refresh a credential, until it is stored or the lease ends', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database)
    if (!one || !two) return
    await one.save(owner, { name: 'a', sealed: sealed('1') })
    const version = (await one.list(owner))[0]?.version ?? 0
    const refresh = { name: 'a', version, leaseMs: 1_000 }
    const locked = await Promise.all(
      [one, two, one, two].map((store) => store.lockRefresh(owner, refresh)),
    )
    expect(locked.filter(Boolean).length).toBe(1)
    await database.setClocks(NOON + 2_000)
    expect(await two.lockRefresh(owner, refresh)).toBe(true)
    await two.save(owner, { name: 'a', sealed: sealed('2'), version })
    expect(await one.lockRefresh(owner, refresh)).toBe(false)
    expect(await one.lockRefresh(owner, { ...refresh, version: version + 1 })).toBe(true)
  })

  test('[ST432] a sign-in that has begun can be taken once, before it expires', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database)
    if (!one || !two) return
    const { appName, principalId } = owner
    for (const id of ['early', 'late'])
      await one.addAttempt(owner, { id, sealed: sealed(id), maxAgeMs: 1_000 })
    const taken = await Promise.all(
      [one, two, one, two].map((store) => store.takeAttempt(appName, 'early')),
    )
    const [first, ...more] = taken.filter((attempt) => attempt !== undefined)
    expect([first?.principalId, text(first?.sealed), more]).toEqual([principalId, 'early', []])
    expect(await one.takeAttempt('another app', 'late')).toBe(undefined)
    await database.setClocks(NOON + 1_000)
    expect(await two.takeAttempt(appName, 'late')).toBe(undefined)
  })

  test('[ST433] unused credentials are removed, and those of a principal with the principal', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database)
    if (!one || !two) return
    const { retention } = await database.open()
    await one.save(owner, { name: 'a', sealed: sealed('1') })
    await one.save(other, { name: 'a', sealed: sealed('2') })
    await one.addAttempt(owner, { id: 'attempt', sealed: sealed('3'), maxAgeMs: 100_000 })
    await database.setClocks(NOON + 5_000)
    await two.touch(owner, 'a')
    await two.removeOld(1_000)
    expect([(await one.list(owner)).length, (await one.list(other)).length]).toEqual([1, 0])
    if (!retention) return
    await retention.removeOwner(owner)
    expect(await one.list(owner)).toEqual([])
    expect(await one.takeAttempt(owner.appName, 'attempt')).toBe(undefined)
  })
}

async function openTwo(
  database: Awaited<ReturnType<StoreContractOptions['open']>>,
): Promise<[CredentialStore | undefined, CredentialStore | undefined]> {
  // Optional: without it, a bridge rejects the option `signIn`.
  return [(await database.open()).credentials, (await database.open()).credentials]
}

function text(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString()
}
