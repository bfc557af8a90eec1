import { InMemorySessionService } from '@google/adk'
import { expect, test } from 'vitest'

import { Ledger } from '../../src/approvals/ledger.ts'
import { nextApproval } from '../../src/approvals/next-approval.ts'
import { isRefusal } from '../../src/approvals/approval.ts'
import { fenceSessions } from '../../src/server/chats/turns/chat-locker.ts'
import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { approvingClients } from '../approvals/support/approving-chat.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { FREE_MODEL } from '../approvals/support/test-bridge.ts'
import {
  joinLive,
  nextUnasked,
  openLiveTestBridge,
  unasked,
  untilAsked,
} from '../live/support/live-test-bridge.ts'
import { textEvent } from '../../src/store/contract/fixtures.ts'
import { defer } from '../support/agents.ts'
import { readFrames } from '../support/wire-rules.ts'
import { openPair, type Pair } from './support/pair.ts'
import type { Asked } from './support/person.ts'

const LEASE_MS = 60_000
/** The limits of a server that cannot lose its lease, because there is no other one. */
const ALONE = { leaseMs: 300 }
const POLLING = { timeout: 120_000, interval: 20 }
const PAY = '[[call pay {"to": "花子", "amount": 50}]]'
const CHAT = { appName: 'adk-stream-protocol', principalId: 'hanako', chatId: 'chat-1' }

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
    // The turn ends without its tool.
    await expect.poll(() => pair.store.approvals.findLockHolder(CHAT), POLLING).toBeUndefined()
    await pair.leases.passWhileRenewed(LEASE_MS)
    expect(await historyOf(pair, asked.approvalId)).toEqual(['requested', 'approved', 'started'])
    gate.resolve()
    const whole = ['requested', 'approved', 'started', 'succeeded']
    await expect.poll(() => historyOf(pair, asked.approvalId), POLLING).toEqual(whole)
    expect(pair.effects()).toHaveLength(1)
    const states = async () => (await pair.atTwo.calls()).map(({ state }) => state)
    await expect.poll(states, POLLING).toEqual(['output-available'])
  },
)

async function historyOf({ atTwo }: Pair, approvalId: string): Promise<unknown> {
  return (await atTwo.approval(approvalId))?.history.map(({ type }) => type)
}

/** Settles a call as another process does after the lease of its worker. */
async function loseCall({ approvals }: Store, approvalId: string): Promise<void> {
  const approval = await approvals.get(approvalId)
  if (approval?.state.name !== 'executing') throw new Error('it does not run')
  const { worker } = approval.state
  const lost = nextApproval(approval, { type: 'lose', worker }, await approvals.now())
  if (isRefusal(lost) || !(await approvals.replace(lost))) throw new Error('it is not lost')
}

/** A call that runs on the first server after its turn was stopped, and a client that sends its decision again on the second one. */
interface Stopped extends AsyncDisposable {
  readonly pair: Pair
  readonly asked: Asked
  readonly response: Response
  /** Lets the call end. */
  readonly finish: () => void
}

async function openStopped(
  limits = { leaseMs: 15_000, sweepMs: 20 },
  reply = '[[say Paid.]]',
): Promise<Stopped> {
  const [started, gate] = [defer(), defer()]
  const reached = async (moment: string) => {
    if (moment !== 'before effect') return
    started.resolve()
    await gate.promise
  }
  const pair = await openPair({ limits, ofOne: { reached } })
  const asked = await pair.atOne.ask(`${PAY}[[then]]${reply}`)
  const answer = await pair.atOne.beginAnswer(asked, { approved: true })
  await started.promise
  await pair.atOne.post('/chats/chat-1/stop', {})
  await answer.text()
  const response = await pair.atTwo.beginAnswer(asked, { approved: true })
  expect(response.status).toBe(200)
  const finish = (): void => gate.resolve()
  const dispose = async (): Promise<void> => {
    finish()
    await pair[Symbol.asyncDispose]()
  }
  return { pair, asked, response, finish, [Symbol.asyncDispose]: dispose }
}

test('[AP13] a decision that is sent again to another server receives the outcome of the call that still runs', async () => {
  await using stopped = await openStopped()
  const { pair, asked, response } = stopped
  stopped.finish()
  const body = await response.text()
  expect(body).toContain('"outcome":"succeeded"')
  expect(body).toContain('"type":"tool-output-available"')
  expect(body).toContain('"type":"finish"')
  expect(body).not.toContain('Paid.')
  const life = ['requested', 'approved', 'started', 'succeeded']
  expect(await historyOf(pair, asked.approvalId)).toEqual(life)
  expect(pair.effects()).toHaveLength(1)
})

test('[AP795] if the server that runs the call is lost, the client that waits at another one receives an unknown outcome and the reply', async () => {
  await using stopped = await openStopped({ leaseMs: LEASE_MS, sweepMs: 20 })
  const { pair, asked, response } = stopped
  await loseCall(pair.store, asked.approvalId)
  await pair.leases.expire()
  const body = await response.text()
  expect(body).toContain('"state":"unknown"')
  expect(body).toContain('"type":"tool-output-error"')
  expect(body).toContain('Paid.')
  expect(body).toContain('"type":"finish"')
  expect(pair.effects()).toEqual([])
})

test('[TU1984] if the model fails after the outcome of a call, a client that waits for it at another server receives the error', async () => {
  await using stopped = await openStopped(
    { leaseMs: LEASE_MS, sweepMs: 20 },
    '[[fail 400 Too long.]]',
  )
  const { pair, asked, response } = stopped
  await loseCall(pair.store, asked.approvalId)
  await pair.leases.expire()
  const { chunks } = readFrames(await response.text())
  const [, reply] = await pair.atTwo.messages()
  const end = chunks.findLast(({ type }) => type === 'message-metadata')
  expect(end).toMatchObject({ messageMetadata: { error: { code: 'model-refused' } } })
  expect(reply?.metadata).toEqual(end?.['messageMetadata'])
  expect(chunks.at(-1)).toMatchObject({ type: 'error' })
})

test('[AP795] a server that closes does not wait for the call of another one, and asks the client to retry', async () => {
  await using stopped = await openStopped()
  const { pair, asked, response } = stopped
  await pair.two.bridge.close()
  expect(await response.text()).toContain('"code":"unavailable"')
  const approval = await pair.store.approvals.get(asked.approvalId)
  expect(approval?.state.name).toBe('executing')
})

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

test('[AP80] a client whose stream has ended receives the outcome of a call that its live conversation lost', async () => {
  const [started, gate] = [defer(), defer()]
  const before = async () => {
    started.resolve()
    await gate.promise
  }
  await using testBridge = await openLiveTestBridge({
    tools: (wallet) => [paymentTool(wallet, { before })],
    limits: ALONE,
  })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(`${callPayment(50)}[[then]][[say I do not know.]]`)
  const [approvalId = ''] = await untilAsked(client)
  await client.nextOf('end', 'r1')
  client.send({ type: 'decide', decisionId: 'd-1', id: 'chat-1', approvalId, approved: true })
  await started.promise
  await loseCall(testBridge.store, approvalId)
  gate.resolve()
  const requestId = await nextUnasked(client)
  await client.nextOf('end', requestId)
  const types = client.chunks(requestId).map(({ type }) => type)
  expect(types).toContain('tool-output-error')
  expect(types).not.toContain('tool-output-available')
  expect(client.text(requestId)).toBe('I do not know.')
})

test.each(['a turn', 'the run that stays open', 'the run that stays open beside a turn'])(
  '[TU80] nothing is written to a session service of the application for a chat if the lock of %s was lost',
  async (of) => {
    await using store = await openSqliteStore({ path: ':memory:' })
    const [one, two] = [1, 2].map(
      () => new Ledger({ store: store.approvals, appName: 'demo', leaseMs: 0 }),
    ) as [Ledger, Ledger]
    const own = new InMemorySessionService()
    const sessions = fenceSessions(own, one)
    const key = { appName: 'demo', userId: 'hanako', sessionId: 'chat-1' }
    const chat = { appName: 'demo', principalId: 'hanako', chatId: 'chat-1' }
    const session = await sessions.createSession(key)
    const lock = ({ locks }: Ledger) =>
      of === 'a turn'
        ? locks.lock(chat).then((token = '') => ({ chat, token }))
        : locks.lockOpenRun(chat)
    if (of.endsWith('beside a turn')) await one.locks.lock(chat)
    const lost = await lock(one)
    await sessions.appendEvent({ session, event: textEvent('e-1') })
    await lock(two)
    const late = sessions.appendEvent({ session, event: textEvent('late') })
    await expect(late).rejects.toMatchObject({ code: 'turn-lost' })
    // The response to a call needs the lock of the turn only.
    const content = { role: 'user', parts: [{ functionResponse: { id: 'c', name: 'pay' } }] }
    const result = sessions.appendEvent({ session, event: textEvent('result', { content }) })
    const results = await result.then(
      () => ['result'],
      () => [],
    )
    expect(results).toEqual(of === 'a turn' ? [] : ['result'])
    if (lost) await one.locks.unlock(lost.chat, lost.token)
    const { events = [] } = (await own.getSession(key)) ?? {}
    expect(events.map(({ id }) => id)).toEqual(['e-1', ...results])
  },
)

/** Approves and claims a call as a process does that crashes then. */
async function claimAndCrash({ approvals }: Store, approvalId: string): Promise<void> {
  const by = { id: 'hanako', roles: [] }
  const asked = await approvals.get(approvalId)
  if (!asked) throw new Error('There is no approval.')
  const { toolCallId, toolName, digest } = asked
  const claim = { type: 'claim', toolCallId, toolName, digest, worker: 'crashed' } as const
  for (const command of [{ type: 'decide', by, approved: true } as const, claim]) {
    const approval = await approvals.get(approvalId)
    const next = approval && nextApproval(approval, command, await approvals.now())
    if (!next || isRefusal(next) || !(await approvals.replace(next)))
      throw new Error(`${command.type} was refused.`)
  }
}

test('[AP796] clients that watch a chat on a socket receive the unknown outcome of a call of a crashed server', async () => {
  await using testBridge = await openLiveTestBridge({ limits: ALONE })
  await using client = await joinLive(testBridge)
  const [stock] = approvingClients
  if (!stock) throw new Error('There is no client.')
  const chat = await testBridge.page().open(stock)
  await chat.send(`${callPayment(50)}[[then]][[say I do not know.]]`)
  const [approvalId = ''] = chat.asked
  client.send({ type: 'watch', id: 'chat-1' })
  await client.nextOf('status')
  // As if the client had connected after the crash: this server reads nothing that the other one has done before.
  const { approvals } = testBridge.store
  const last = approvals.lastSeq()
  approvals.lastSeq = () => last
  await claimAndCrash(testBridge.store, approvalId)
  const requestId = await nextUnasked(client)
  await client.nextOf('end', requestId)
  expect(client.chunks(requestId).map(({ type }) => type)).toContain('tool-output-error')
  expect(client.text(requestId)).toBe('I do not know.')
  expect(unasked(client)).toHaveLength(1)
  expect(testBridge.wallet.payments).toEqual([])
})
