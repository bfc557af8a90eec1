import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

import { Pool } from 'pg'
import { expect, test } from 'vitest'

import { bundleProgram } from '../../../test/support/bundle-program.ts'
import { Cents, toCents } from '../src/agent/wallet/wallets.ts'
import { createDatabase } from '../../../packages/adk-stream-protocol/test/support/postgres.ts'
import { openPostgresWallets } from '../src/agent/wallet/postgres-wallets.ts'
import { openSqliteWallets } from '../src/agent/wallet/sqlite-wallets.ts'
import { temporaryDirectory } from '../../../test/support/temporary-directory.ts'

const cents = (value: number) => Cents.parse(value)

test('[DM2] a wallet starts with 1000 and decreases by exactly the amount paid', () => {
  using wallets = openSqliteWallets(':memory:')
  expect(wallets.balance('hanako')).toBe(100_000)

  const first = wallets.pay('hanako', { key: 'a', amount: cents(3000), recipient: 'Alice' })
  const second = wallets.pay('hanako', { key: 'b', amount: cents(4010), recipient: 'Bob' })

  expect(first).toMatchObject({ state: 'paid', balance: 97_000 })
  expect(second).toMatchObject({ state: 'paid', balance: 92_990 })
  expect(wallets.balance('hanako')).toBe(92_990)
})

test('[DM2] a hundred payments of ten cents cause no rounding error', () => {
  using wallets = openSqliteWallets(':memory:')
  const amount = toCents(0.1) ?? cents(0)
  for (let index = 0; index < 100; index += 1) {
    wallets.pay('hanako', { key: `${index}`, amount, recipient: 'Alice' })
  }
  expect(wallets.balance('hanako')).toBe(99_000)
})

test('[DM2] the balance is kept after a restart', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'wallets.db')
  {
    using wallets = openSqliteWallets(path)
    wallets.pay('hanako', { key: 'a', amount: cents(5000), recipient: 'Alice' })
  }
  using reopened = openSqliteWallets(path)
  expect(reopened.balance('hanako')).toBe(95_000)
})

test.each([
  [50, 5000],
  [19.99, 1999],
  [0.1, 10],
  [1.005, undefined],
  [0.001, undefined],
  [0, undefined],
  [-0, undefined],
  [-5, undefined],
  [Number.NaN, undefined],
  [Number.POSITIVE_INFINITY, undefined],
  [1e21, undefined],
  [Number.MAX_SAFE_INTEGER, undefined],
  [5e-324, undefined],
])('[DM3] reads %d as %s cents', (amount, expected) => {
  expect(toCents(amount)).toBe(expected)
})

test('[DM3] a payment is at most the whole balance', () => {
  using wallets = openSqliteWallets(':memory:')
  const tooMuch = wallets.pay('hanako', { key: 'a', amount: cents(100_001), recipient: 'Alice' })
  expect(tooMuch).toEqual({ state: 'insufficient-funds', balance: 100_000 })

  const all = wallets.pay('hanako', { key: 'b', amount: cents(100_000), recipient: 'Alice' })
  expect(all).toMatchObject({ state: 'paid', balance: 0 })
  const more = wallets.pay('hanako', { key: 'c', amount: cents(1), recipient: 'Alice' })
  expect(more).toEqual({ state: 'insufficient-funds', balance: 0 })
})

test('[DM4] the same call pays once and gets the same receipt', () => {
  using wallets = openSqliteWallets(':memory:')
  const payment = { key: 'call-1', amount: cents(3000), recipient: 'Alice' }
  const first = wallets.pay('hanako', payment)
  wallets.pay('hanako', { ...payment, key: 'call-2' })
  expect(wallets.pay('hanako', payment)).toEqual(first)
  expect(wallets.balance('hanako')).toBe(94_000)
})

test.each([{ amount: cents(3001) }, { recipient: 'Mallory' }])(
  '[DM4] a repeated call with %o is rejected',
  (change) => {
    using wallets = openSqliteWallets(':memory:')
    const payment = { key: 'call-1', amount: cents(3000), recipient: 'Alice' }
    wallets.pay('hanako', payment)
    const result = wallets.pay('hanako', { ...payment, ...change })
    expect(result).toEqual({ state: 'key-reused', balance: 97_000 })
  },
)

test('[DM5] a user pays from their own wallet only', () => {
  using wallets = openSqliteWallets(':memory:')
  wallets.pay('hanako', { key: 'a', amount: cents(3000), recipient: 'Alice' })
  expect(wallets.balance('taro')).toBe(100_000)
  // Keys of payments are unique per user.
  const same = wallets.pay('taro', { key: 'a', amount: cents(100), recipient: 'Bob' })
  expect(same).toMatchObject({ state: 'paid', balance: 99_900 })
})

test('[DM5] three concurrent processes cannot overdraw a wallet', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'wallets.db')
  using wallets = openSqliteWallets(path)

  // Each makes 40 payments of 10 dollars: 1200 dollars in total, and the balance is 1000.
  const paid = await Promise.all(['a', 'b', 'c'].map((name) => spendElsewhere(path, name)))

  expect(paid.reduce((sum, count) => sum + count, 0)).toBe(100)
  expect(wallets.balance('hanako')).toBe(0)
})

async function spendElsewhere(path: string, name: string): Promise<number> {
  const program = await bundleProgram(new URL('support/spend.ts', import.meta.url))
  const child = spawn(process.execPath, [program, path, name], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return Number(await text(child.stdout))
}

test('[DM200] wallets in PostgreSQL cannot be overdrawn by several instances, and a call pays once', async () => {
  await using database = await createDatabase()
  const pools = ['a', 'b', 'c'].map(() =>
    // A connection may be lost while its pool is being closed.
    new Pool({ connectionString: database.url, max: 2 }).on('error', () => undefined),
  )
  try {
    const instances = await Promise.all(pools.map(openPostgresWallets))
    const results = await Promise.all(
      instances.flatMap((wallets, instance) =>
        Array.from({ length: 40 }, (_, index) =>
          wallets.pay('hanako', {
            key: `${instance}/${index}`,
            amount: cents(1000),
            recipient: 'Alice',
          }),
        ),
      ),
    )
    expect(results.filter(({ state }) => state === 'paid')).toHaveLength(100)
    const [wallets] = instances
    expect(await wallets?.balance('hanako')).toBe(0)
    expect(await wallets?.balance('taro')).toBe(100_000)

    const payment = { key: 'call-1', amount: cents(3000), recipient: 'Alice' }
    const repeated = await Promise.all(instances.map((each) => each.pay('taro', payment)))
    expect(new Set(repeated.map((result) => JSON.stringify(result))).size).toBe(1)
    expect(await wallets?.pay('taro', { ...payment, amount: cents(1) })).toEqual({
      state: 'key-reused',
      balance: 97_000,
    })
    expect(await wallets?.balance('taro')).toBe(97_000)
  } finally {
    await Promise.all(pools.map((pool) => pool.end()))
  }
})
