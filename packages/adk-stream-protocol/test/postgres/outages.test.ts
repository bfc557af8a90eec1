import { expect, test } from 'vitest'

import { openPair } from '../faults/support/pair.ts'
import { Person } from '../faults/support/person.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import type { Store } from '../../src/store/index.ts'
import { defer } from '../support/agents.ts'
import { textOf } from '../support/chat-probe.ts'
import { postgresLeaseTimes } from '../support/lease-times.ts'
import { createDatabase } from '../support/postgres.ts'
import { openProxy } from '../support/postgres-proxy.ts'

const POLLING = { timeout: 60_000, interval: 50 }
/** No test waits for it: a server may get no CPU time for seconds. */
const LEASE_MS = 60_000

test('[LG1020] servers whose database was away for two leases keep their calls, although one returns later', async () => {
  await using database = await createDatabase()
  await using first = await openProxy(database.url)
  await using second = await openProxy(database.url)
  const urls = [database.url, first.url, second.url]
  const openStore = (): Promise<Store> =>
    openPostgresStore({
      connectionString: urls.shift() ?? '',
      schema: 'public',
      busyTimeoutMs: 5_000,
    })
  const tools = ['pay', 'top_up'] as const
  // The payment ends while the database is away, the other call after that.
  const gates = { pay: defer(), top_up: defer() }
  const running = new Set<string>()
  const reached = async (moment: string, chatId: string): Promise<void> => {
    if (moment !== 'before effect') return
    running.add(chatId)
    await (chatId === 'pay' ? gates.pay : gates.top_up).promise
  }
  const limits = { leaseMs: LEASE_MS, sweepMs: 50 }
  await using pair = await openPair({ openStore, limits, ofOne: { reached } })
  const leases = postgresLeaseTimes(database)
  const asked = await Promise.all(
    tools.map(async (tool) => {
      const person = new Person(pair.one.url, { chatId: tool })
      const call = `[[call ${tool} {"to": "花子", "amount": 50}]][[then]][[say Done.]]`
      const { approvalId } = await person.ask(call)
      expect((await person.decide(approvalId, { approved: true })).status).toBe(200)
      return { tool, approvalId, atTwo: new Person(pair.two.url, { chatId: tool }) }
    }),
  )
  await expect.poll(() => running.size, POLLING).toBe(tools.length)

  const servers = [pair.one, pair.two]
  const before = servers.map(({ errors }) => errors.length)
  for (const proxy of [first, second]) proxy.goAway()
  gates.pay.resolve()
  await expect.poll(() => pair.effects().length, POLLING).toBe(1)
  for (const [index, { errors }] of servers.entries())
    await expect.poll(() => errors.length, POLLING).toBeGreaterThan(before[index] ?? 0)
  await leases.passUnwritten(2 * LEASE_MS)

  second.comeBack()
  for (let sweep = 0; sweep < 3; sweep += 1) {
    const tick = await leases.readTick()
    await expect.poll(() => leases.readTick(), POLLING).not.toBe(tick)
  }
  for (const { approvalId } of asked)
    expect((await pair.store.approvals.get(approvalId))?.state.name).toBe('executing')
  first.comeBack()
  gates.top_up.resolve()
  for (const { tool, approvalId, atTwo } of asked) {
    const history = async () => (await atTwo.approval(approvalId))?.history.map(({ type }) => type)
    await expect.poll(history, POLLING).toEqual(['requested', 'approved', 'started', 'succeeded'])
    const text = async () => textOf((await atTwo.messages()).at(-1))
    await expect.poll(text, POLLING).toBe('Done.')
    expect((await atTwo.calls()).map(({ state }) => state)).toEqual(['output-available'])
    expect(pair.effects().filter(({ chatId }) => chatId === tool)).toHaveLength(1)
  }
})
