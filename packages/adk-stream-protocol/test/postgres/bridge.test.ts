import { describe, expect, test } from 'vitest'

import { approvingClients, liveClient } from '../approvals/support/approving-chat.ts'
import { expectRecord } from '../approvals/support/expect-record.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { openPair } from '../faults/support/pair.ts'
import { defer } from '../support/agents.ts'
import { openStoreDatabase } from '../support/postgres-stores.ts'

const PAY = `${callPayment(50)}[[then]][[say Paid.]]`
const LIFE = ['requested', 'approved', 'started', 'succeeded']

describe.each([...approvingClients.slice(0, 1), liveClient])('$name', (client) => {
  test.each([true, false])('[ST230] a call is decided on PostgreSQL: %s', async (approved) => {
    await using database = await openStoreDatabase()
    await using testBridge = await TestBridge.open({ openStore: database.openStore })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    await chat.decide(approved)
    expect(chat.text).toBe('Paid.')
    expect(testBridge.wallet.payments).toHaveLength(approved ? 1 : 0)
    expect(await page.history(id)).toEqual(approved ? LIFE : ['requested', 'denied'])
    await expectRecord(page, chat)
    expect(await testBridge.store.approvals.verifyAudit?.()).not.toHaveProperty('fault')
  })
})

test('[ST230] an approval survives a restart of the server on PostgreSQL', async () => {
  await using database = await openStoreDatabase()
  await using testBridge = await TestBridge.open({ openStore: database.openStore })
  const [client] = approvingClients
  if (client === undefined) throw new Error('There is no client.')
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send(PAY)
  const [id = ''] = chat.asked
  await testBridge.restart()
  const again = testBridge.page()
  expect(await again.decide(id, { approved: true })).toMatchObject({ status: 200 })
  await again.untilState(id, 'succeeded')
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[ST230] two servers on one PostgreSQL: one chat has one turn, and a decision at the other server runs the call once', async () => {
  await using database = await openStoreDatabase()
  await using pair = await openPair({ openStore: database.openStore })
  const answer = await pair.atOne.begin('[[say One.]][[wait gate]][[say Two.]]')
  expect(await pair.atTwo.say('[[say Me too.]]')).toMatchObject({
    status: 409,
    code: 'turn-running',
  })
  pair.one.emulator.release('gate')
  expect(await answer.text()).toContain('Two.')
  const { approvalId } = await pair.atOne.ask()
  const decisions = await Promise.all(
    [pair.atOne, pair.atTwo].map((person) => person.decide(approvalId, { approved: true })),
  )
  expect(decisions.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
  await expect
    .poll(async () => (await pair.store.approvals.get(approvalId))?.state.name)
    .toBe('succeeded')
  expect(pair.effects()).toHaveLength(1)
})

test('[ST230] a message waits for a turn that another server runs in the background on PostgreSQL', async () => {
  const started = defer()
  const gate = defer()
  const reached = async (moment: string) => {
    if (moment !== 'before effect') return
    started.resolve()
    await gate.promise
  }
  await using database = await openStoreDatabase()
  await using pair = await openPair({ openStore: database.openStore, ofOne: { reached } })
  const { approvalId } = await pair.atOne.ask()
  await pair.atOne.decide(approvalId, { approved: true })
  await started.promise
  const answered = pair.atTwo.say('[[say Next.]]')
  await pair.untilTaken(2)
  gate.resolve()
  expect((await answered).body).toContain('Next.')
  expect(pair.effects()).toHaveLength(1)
})
