import { FunctionTool } from '@google/adk'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'

import { Ledger } from '../../src/approvals/ledger.ts'
import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { assistant } from '../support/agents.ts'
import { serve } from '../support/serve.ts'
import { openTestSetup } from './support/test-setup.ts'
import { openPair, type Pair } from './support/pair.ts'

const APP = { appName: 'adk-stream-protocol' }
const CHAT = { ...APP, principalId: 'hanako', chatId: 'chat-1' }
const LIMITS = { leaseMs: 60_000, sweepMs: 20 }
const HANAKO = { id: 'hanako', roles: [] }

/** Reads the session without a server. */
async function stored({ store }: Pick<Pair, 'store'>): Promise<string> {
  const { appName, principalId: userId, chatId: sessionId } = CHAT
  const session = await store.sessions.getSession({ appName, userId, sessionId })
  return JSON.stringify(session?.events)
}

/** A server that decides and crashes before it reports: only its ledger. */
function dyingServer({ store }: Pick<Pair, 'store'>): Ledger {
  return new Ledger({ store: store.approvals, ...APP, leaseMs: LIMITS.leaseMs })
}

/** Ends the leases when no server holds the chat any more. */
async function expireLeases({ store, leases }: Pair): Promise<void> {
  await expect.poll(() => store.approvals.findLockHolder(CHAT), POLLING).toBeUndefined()
  await leases.expire()
}

/** Resolves when a server has looked for unreported outcomes twice more. */
async function untilSwept(approvals: Store['approvals']): Promise<void> {
  const unreported = vi.spyOn(approvals, 'unreported')
  await expect.poll(() => unreported.mock.calls.length, POLLING).toBeGreaterThan(2)
  unreported.mockRestore()
}

test.each([
  ['denied', (ledger: Ledger, id: string) => ledger.decide(id, { by: HANAKO, approved: false })],
  ['cancelled', (ledger: Ledger, id: string) => ledger.cancel(id, 'no longer needed')],
])(
  '[AP70] an approval that a crashed server left as %s is reported once, without any client',
  async (state, end) => {
    await using pair = await openPair({ limits: LIMITS })
    const { approvalId } = await pair.atOne.ask()
    expect(await end(dyingServer(pair), approvalId)).toMatchObject({ state: { name: state } })
    await expireLeases(pair)
    await expect.poll(() => stored(pair), POLLING).toContain(`"status":"${state}"`)
    const unreported = () => pair.store.approvals.unreported({ ...APP, leaseMs: 0, limit: 10 })
    await expect.poll(unreported, POLLING).toEqual([])
    // The approval request at one server, and its outcome at both.
    const asked = () => pair.one.emulator.requests.length + pair.two.emulator.requests.length
    await expect.poll(asked, POLLING).toBe(2)
    await expireLeases(pair)
    await Promise.all([pair.ofFirst, pair.ofSecond].map((approvals) => untilSwept(approvals)))
    expect(asked()).toBe(2)
    expect(pair.effects()).toEqual([])
    expect([pair.one.errors, pair.two.errors]).toEqual([[], []])
  },
)

test('[AP70] an outcome is marked as reported when its turn ends', async () => {
  await using setup = await openTestSetup()
  const person = setup.person()
  const asked = await person.ask()
  await person.answer(asked, { approved: true })
  await person.answer(await person.ask(), { approved: false })
  const unreported = () => setup.store.approvals.unreported({ ...APP, leaseMs: 0, limit: 10 })
  await expect.poll(unreported).toEqual([])
  expect(setup.effects()).toHaveLength(1)
})

/** Asks for a call, and continues the chat with a server whose agent does not have its tool. */
async function withoutTool() {
  const pay = new FunctionTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({}),
    requireConfirmation: true,
    execute: () => ({ paid: true }),
  })
  const store = await openSqliteStore({ path: ':memory:' })
  // There is one server at a time, so none can lose its lease to another one.
  const options = { store, authenticate: () => HANAKO, limits: { ...LIMITS, leaseMs: 300 } }
  const before = await serve({
    ...options,
    agent: (model) => assistant(model, { tools: [pay] }),
  })
  await (await before.browser().say('[[call pay {}]]')).text()
  await before[Symbol.asyncDispose]()
  const [approval] = await store.approvals.list({ limit: 1 })
  return { options, id: approval?.id ?? '' }
}

test('[AP70] an outcome is reported although its tool no longer exists', async () => {
  const { options, id } = await withoutTool()
  await using store = options.store
  await dyingServer({ store }).decide(id, { by: HANAKO, approved: false })
  await using server = await serve(options)
  const unreported = () => store.approvals.unreported({ ...APP, leaseMs: 0, limit: 10 })
  await expect.poll(unreported, POLLING).toEqual([])
  expect(await stored({ store })).toContain('"status":"denied"')
  expect(server.emulator.requests).toHaveLength(0)
})

test('[AP114] an approved call whose tool no longer exists is cancelled after two attempts', async () => {
  const { options, id } = await withoutTool()
  await using store = options.store
  const onError = vi.fn<(error: unknown) => void>()
  await using server = await serve({ ...options, onError })
  const response = await server.browser().post(`/approvals/${id}`, { approved: true })
  expect(response.status).toBe(200)
  await expect.poll(() => stored({ store }), POLLING).toContain('could not continue with it')
  // Each attempt fails in ADK, and the last one is reported.
  expect(onError.mock.calls.length).toBeLessThanOrEqual(3)
})

const POLLING = { timeout: 120_000, interval: 20 }
