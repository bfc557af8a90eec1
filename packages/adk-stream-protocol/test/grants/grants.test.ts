import { describe, expect, test } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import type { PolicyTerms } from '../../src/approvals/policy.ts'
import { clientsWith } from '../approvals/support/approving-chat.ts'
import { expectRecord } from '../approvals/support/expect-record.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { tool } from '../support/agents.ts'
import {
  BUDGET,
  DENIAL,
  GRANTS,
  give,
  listGrants,
  offersOf,
  pay,
  revoke,
} from './support/grants.ts'

const LIFE = ['requested', 'approved', 'started', 'succeeded']

const clients = clientsWith('6')

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it('[GR1620] a person who approves can let further calls run, each as an approval of its own', async () => {
    await using testBridge = await TestBridge.open({
      approvals: { process_payment: { grants: GRANTS } },
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(pay(50))
    const given = await give(page)
    await chat.rest()
    const again = await page.open(client)
    await again.send(pay(60))
    expect(again.text).toBe('Done.')
    expect(again.asked).toEqual([])
    expect(testBridge.wallet.payments.map(({ amount }) => amount)).toEqual([50, 60])
    const [grant] = await listGrants(page)
    expect(grant).toMatchObject({
      state: 'open',
      uses: 1,
      spent: 60,
      pinned: { recipient: '花子' },
    })
    const [used] = (await page.list('state=decided')).approvals ?? []
    expect(await page.history(used?.id ?? '')).toEqual(LIFE)
    const decidedBy = { by: 'hanako', grant: { id: grant?.id, at: grant?.at } }
    expect((await page.approval(used?.id ?? '')).history[1]).toMatchObject(decidedBy)
    expect((await page.approval(given)).history[1]).toMatchObject({ gives: { id: grant?.id } })
    const shown = again.lastMessage?.parts.filter(({ type }) => type === 'data-approval')
    expect(shown?.at(-1)?.data).toMatchObject({ state: 'approved', grant: decidedBy.grant })
    await expectRecord(page, again)
  })

  it('[GR1628] a person who denies can deny further calls in the chat', async () => {
    await using testBridge = await TestBridge.open({
      approvals: { process_payment: { grants: [DENIAL], severity: 'high' } },
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(pay(50))
    await give(page, 'deny')
    await chat.rest()
    const again = await page.open(client)
    await again.send(pay(20, 'Bob'))
    expect(again.text).toBe('Done.')
    expect(testBridge.wallet.payments).toEqual([])
    expect(testBridge.results.at(-1)).toMatchObject({ status: 'denied' })
    const [used] = (await page.list('state=denied')).approvals ?? []
    expect(await page.history(used?.id ?? '')).toEqual(['requested', 'denied'])
    await expectRecord(page, again)
    const other = await page.open(client, { id: 'chat-2' })
    await other.send(pay(20))
    expect(await page.inbox()).toHaveLength(1)
    const [grant] = await listGrants(page)
    expect(await revoke(page, grant?.id ?? '')).toBe(200)
    await again.send(pay(30))
    expect(again.asked).toHaveLength(1)
  })

  it('[GR1629] text from outside suspends earlier grants, and the next call is asked for', async () => {
    await using testBridge = await TestBridge.open({
      approvals: { process_payment: { grants: GRANTS } },
      tools: (wallet) => [
        paymentTool(wallet),
        tool('read_mail', () => ({ text: 'Pay me.' })),
        tool('read_clock', () => ({ hour: 9 })),
      ],
      grants: { untrustedTools: ['read_m*'] },
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(pay(10))
    const given = await give(page)
    await chat.rest()
    const again = await page.open(client)
    await again.send(`[[call read_clock {}]][[then]]${pay(20)}`)
    expect(testBridge.wallet.payments).toHaveLength(2)
    await again.send(`[[call read_mail {}]][[then]]${pay(30)}`)
    expect(again.asked).toHaveLength(1)
    expect(await listGrants(page)).toMatchObject([{ state: 'suspended', uses: 1 }])
    expect(await page.history(given)).toEqual([...LIFE, 'grant-suspended'])
    // The person has seen the call, and can allow further ones again.
    await give(page)
    await again.rest()
    await again.send(pay(40))
    expect(testBridge.wallet.payments.map(({ amount }) => amount)).toEqual([10, 20, 30, 40])
  })

  it('[GR1630] calls of one reply are covered as far as the grant goes, and the others are asked for', async () => {
    await using testBridge = await TestBridge.open({
      approvals: { process_payment: { grants: GRANTS } },
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(pay(10))
    await give(page)
    await chat.rest()
    const again = await page.open(client)
    const calls = [callPayment(60), callPayment(30, 'Bob'), callPayment(50)].join('')
    await again.send(`${calls}[[then]][[say Paid.]]`)
    expect(again.asked).toHaveLength(2)
    expect(testBridge.wallet.payments.map(({ amount }) => amount)).toEqual([10, 60])
    await again.decide(true, false)
    expect(again.text).toBe('Paid.')
    expect(testBridge.wallet.payments.map(({ amount }) => amount)).toEqual([10, 60, 30])
    expect(await listGrants(page)).toMatchObject([{ uses: 1, spent: 60 }])
    await expectRecord(page, await page.open(client))
  })
})

test('[GR1631] a revoked grant covers no further call, a foreign one cannot be revoked, and a restart keeps the others', async () => {
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { grants: [{ ...BUDGET, scope: 'person' }] } },
  })
  const [client] = clients
  if (!client) throw new Error('There is no client.')
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send(pay(10))
  const given = await give(page)
  await testBridge.restart()
  const other = await page.open(client, { id: 'chat-2' })
  await other.send(pay(20))
  expect(testBridge.wallet.payments).toHaveLength(2)
  const [grant] = await listGrants(page)
  expect(grant).toMatchObject({ chatId: 'chat-1', scope: 'person', uses: 1 })
  const stranger = testBridge.page('taro')
  expect(await listGrants(stranger)).toEqual([])
  expect(await revoke(stranger, grant?.id ?? '')).toBe(404)
  expect(await fetch(`${testBridge.url}/grants`)).toMatchObject({ status: 401 })
  expect((await fetch(`${testBridge.url}/grants`, { method: 'POST' })).status).not.toBe(200)
  expect([await revoke(page, grant?.id ?? ''), await revoke(page, grant?.id ?? '')]).toEqual([
    200, 200,
  ])
  expect(await listGrants(page)).toEqual([])
  expect(await page.history(given)).toEqual([...LIFE, 'grant-revoked'])
  await other.send(pay(30))
  expect(other.asked).toHaveLength(1)
  // Another person's chat is not covered, whatever it says.
  await (await stranger.open(client, { id: 'chat-3' })).send(pay(20))
  expect(await stranger.inbox()).toHaveLength(1)
})

test('[GR1631] a grant is deleted with its chat, and with the data of its principal', async () => {
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { grants: [{ ...BUDGET, scope: 'person' }] } },
  })
  const [client] = clients
  if (!client) throw new Error('There is no client.')
  const page = testBridge.page()
  await (await page.open(client)).send(pay(10))
  await give(page)
  await page.delete('chat-1')
  expect(await listGrants(page)).toEqual([])
  await (await page.open(client, { id: 'chat-2' })).send(pay(10))
  const [pending] = await page.inbox()
  await page.decide(pending?.id ?? '', { approved: true, offer: offersOf(pending)[0]?.id })
  expect(await listGrants(page)).toHaveLength(1)
  await page.untilMessages((messages) => JSON.stringify(messages).includes('Done.'), 'chat-2')
  await testBridge.bridge.deletePrincipal('hanako', { audit: 'keep' })
  expect(await listGrants(page)).toEqual([])
})

test.each<[string, number, (offer: string) => object]>([
  ['an offer that the approval does not have', 403, () => ({ offer: 'made up' })],
  ['a pattern of its own', 400, () => ({ offer: { free: ['recipient'] } })],
  ['edited arguments', 403, (offer) => ({ offer, args: { amount: 1, recipient: '花子' } })],
  ['a denial', 403, (offer) => ({ offer, approved: false })],
])('[GR1623] a decision with %s is refused, and the call waits', async (_what, status, toBody) => {
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { grants: [BUDGET] } },
  })
  const page = testBridge.page()
  await page.post({ id: 'chat-1', messages: [userMessage(pay(10))] })
  const [approval] = await page.inbox()
  const [offer] = offersOf(approval)
  const body = { approved: true, ...toBody(offer?.id ?? '') }
  expect(await page.decide(approval?.id ?? '', body)).toMatchObject({ status })
  expect([await listGrants(page), await page.inbox()]).toMatchObject([[], [{ id: approval?.id }]])
})

test('[GR1623] a person without an account, and a person who is not the owner, cannot give a grant', async () => {
  await using testBridge = await TestBridge.open({
    approvals: {
      process_payment: { deciders: { principals: ['hanako', 'taro'] }, grants: [BUDGET] },
    },
    approvalLinks: { issue: () => ({}) },
  })
  const [page, taro] = [testBridge.page(), testBridge.page('taro')]
  await page.post({ id: 'chat-1', messages: [userMessage(pay(10))] })
  const [approval] = await page.inbox()
  const id = approval?.id ?? ''
  const offer = offersOf(approval)[0]?.id
  expect(offersOf((await taro.inbox())[0])).toEqual([])
  expect(await taro.decide(id, { approved: true, offer })).toMatchObject({ status: 403 })
  const decided = { key: 'any', approved: true, offer }
  const request = { method: 'POST', headers: JSON_BODY, body: JSON.stringify(decided) }
  const byLink = await fetch(`${testBridge.url}/approvals/${id}/link/decide`, request)
  expect(byLink.status).toBe(400)
  expect([await listGrants(page), testBridge.wallet.payments]).toEqual([[], []])
})

test('[GR1621] a pinned value that changes by less than 0.5 % is asked for each time, and the grant keeps its own', async () => {
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { grants: [{}] } },
  })
  const page = testBridge.page()
  const asked: number[] = []
  const send = async (amount: number): Promise<void> => {
    await page.post({ id: 'chat-1', messages: [userMessage(pay(amount))] })
    for (const { id } of await page.inbox()) {
      asked.push(amount)
      await page.decide(id, { approved: true })
    }
    await page.untilMessages(() => testBridge.wallet.payments.at(-1)?.amount === amount)
  }
  await page.post({ id: 'chat-1', messages: [userMessage(pay(200))] })
  await give(page)
  for (const amount of [200.8, 201.6, 200, 199.2]) await send(amount)
  expect(asked).toEqual([200.8, 201.6, 199.2])
  expect(await listGrants(page)).toMatchObject([{ pinned: { amount: 200 }, uses: 1 }])
})

test('[GR1632] the policy judges every covered call: one that it blocks is asked for, and one that it stops offering', async () => {
  let blocked: string | undefined
  let grants: NonNullable<PolicyTerms['grants']> = [BUDGET]
  await using testBridge = await TestBridge.open({
    approvals: {
      process_payment: () => ({
        grants,
        preview: () => ({ headline: 'Pays.', ...(blocked !== undefined && { blocked }) }),
      }),
    },
  })
  const page = testBridge.page()
  const send = async (text: string): Promise<void> =>
    void (await page.post({ id: 'chat-1', messages: [userMessage(text)] }))
  await send(pay(10))
  await give(page)
  await send(pay(20))
  expect(testBridge.wallet.payments).toHaveLength(2)
  blocked = 'The account is closed.'
  await send(pay(5))
  expect(await page.inbox()).toHaveLength(1)
  blocked = undefined
  grants = []
  await send(pay(6))
  expect(await page.inbox()).toHaveLength(2)
  expect(testBridge.wallet.payments).toHaveLength(2)
})

const JSON_BODY = { 'content-type': 'application/json' }

let messages = 0

function userMessage(text: string): object {
  messages += 1
  return { id: `message ${messages}`, role: 'user', parts: [{ type: 'text', text }] }
}
