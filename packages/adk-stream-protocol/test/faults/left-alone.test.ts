import { InMemorySessionService } from '@google/adk'
import { expect, test } from 'vitest'

import { Ledger } from '../../src/approvals/ledger.ts'
import { nextApproval } from '../../src/approvals/next-approval.ts'
import { isRefusal } from '../../src/approvals/approval.ts'
import { fenceSessions } from '../../src/server/chats/turns/chat-locker.ts'
import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { FREE_MODEL } from '../approvals/support/test-bridge.ts'
import { joinLive, openLiveTestBridge, untilAsked } from '../live/support/live-test-bridge.ts'
import { textEvent } from '../../src/store/contract/fixtures.ts'
import { defer } from '../support/agents.ts'
import { openPair, type Pair } from './support/pair.ts'

const LEASE_MS = 300
const PATIENCE = { timeout: 120_000, interval: 20 }
/** A turn that was stopped ends without its tool after a second. */
const ABANDONED_MS = 1_000

test.each(['pay', 'top_up'])(
  '[AP81] a call of %s continues after its client has disconnected, for longer than a lease, and runs once',
  async (tool) => {
    const started = defer()
    const gate = defer()
    const reached = async (moment: string) => {
      if (moment !== 'before effect') return
      started.resolve()
      await gate.promise
    }
    const limits = { leaseMs: LEASE_MS, sweepMs: 20 }
    await using pair = await openPair({ limits, ofOne: { reached } })
    const asked = await pair.atOne.ask(`[[call ${tool} {"to": "花子", "amount": 50}]]`)
    const part = { type: `tool-${tool}` }
    const answer = await pair.atOne.beginAnswer(asked, { approved: true }, part)
    await started.promise
    await answer.body?.cancel()
    await untilLater(ABANDONED_MS + 4 * LEASE_MS)
    expect(await historyOf(pair, asked.approvalId)).toEqual(['requested', 'approved', 'started'])
    gate.resolve()
    const whole = ['requested', 'approved', 'started', 'succeeded']
    await expect.poll(() => historyOf(pair, asked.approvalId), PATIENCE).toEqual(whole)
    expect(pair.effects()).toHaveLength(1)
    const states = async () => (await pair.atTwo.calls()).map(({ state }) => state)
    await expect.poll(states, PATIENCE).toEqual(['output-available'])
  },
)

async function historyOf({ atTwo }: Pair, approvalId: string): Promise<unknown> {
  return (await atTwo.approval(approvalId))?.history.map(({ type }) => type)
}

async function untilLater(ms: number): Promise<void> {
  const until = performance.now() + ms
  await expect.poll(() => performance.now(), PATIENCE).toBeGreaterThan(until)
}

/** Settles a call as another process does after the lease of its worker. */
async function loseCall({ approvals }: Store, approvalId: string): Promise<void> {
  const approval = await approvals.get(approvalId)
  if (approval?.state.name !== 'executing') throw new Error('it does not run')
  const { worker } = approval.state
  const lost = nextApproval(approval, { type: 'lose', worker }, await approvals.now())
  if (isRefusal(lost) || !(await approvals.replace(lost))) throw new Error('it is not lost')
}

test('[AP80] a live conversation that lost its call ends, and reports no success', async () => {
  const [started, gate] = [defer(), defer()]
  const before = async () => {
    started.resolve()
    await gate.promise
  }
  await using testBridge = await openLiveTestBridge({
    liveModel: FREE_MODEL,
    tools: (wallet) => [paymentTool(wallet, { before })],
  })
  await using client = await joinLive(testBridge)
  // The model still speaks when the call is lost, so the stream of its reply is open.
  client.say(`${callPayment(50)} [[say One moment.]] [[wait never]] [[then]] [[say All is paid.]]`)
  const [approvalId = ''] = await untilAsked(client)
  client.send({ type: 'decide', decisionId: 'd-1', id: 'chat-1', approvalId, approved: true })
  await started.promise
  await loseCall(testBridge.store, approvalId)
  gate.resolve()
  await client.next((frame) => JSON.stringify(frame).includes('"turn-lost"'))
  const received = JSON.stringify(client.frames)
  expect(received).not.toContain('"type":"tool-output-available"')
  expect(received).not.toContain('All is paid.')
  expect((await testBridge.store.approvals.get(approvalId))?.state.name).toBe('unknown')
})

test('[TU80] nothing is written to a session service of the application for a chat whose lock was lost', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const [one, two] = [1, 2].map(
    () => new Ledger({ store: store.approvals, appName: 'demo', leaseMs: 0 }),
  ) as [Ledger, Ledger]
  const own = new InMemorySessionService()
  const sessions = fenceSessions(own, one)
  const key = { appName: 'demo', userId: 'hanako', sessionId: 'chat-1' }
  const chat = { appName: 'demo', principalId: 'hanako', chatId: 'chat-1' }
  const session = await sessions.createSession(key)
  const token = (await one.locks.lock(chat)) ?? ''
  await sessions.appendEvent({ session, event: textEvent('e-1') })
  await two.locks.lock(chat)
  const late = sessions.appendEvent({ session, event: textEvent('late') })
  await expect(late).rejects.toMatchObject({ code: 'turn-lost' })
  await one.locks.unlock(chat, token)
  const { events = [] } = (await own.getSession(key)) ?? {}
  expect(events.map(({ id }) => id)).toEqual(['e-1'])
})
