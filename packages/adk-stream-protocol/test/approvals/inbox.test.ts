import { expect, test } from 'vitest'

import { adkApi } from '../../src/client/index.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { assistant, tool } from '../support/agents.ts'
import { serve } from '../support/serve.ts'
import { TestBridge } from './support/test-bridge.ts'
import type { Answer } from './support/page.ts'
import { callPayment } from './support/payments.ts'

const MANAGER_THEN_EXECUTIVE = {
  process_payment: { chain: [{ roles: ['manager'] }, { roles: ['executive'] }] },
} as const

/** Sends a message that leads to a payment, which waits for approval. */
async function requestPayment(testBridge: TestBridge) {
  const page = testBridge.page()
  const text = `${callPayment(50)}[[then]][[say Paid.]]`
  const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text }] }
  await page.post({ id: 'chat-1', messages: [message] })
  const [approval] = await page.inbox()
  return { page, id: approval?.id ?? '' }
}

/** Returns the status and the error code of a response. */
async function codeOf(answer: Promise<Answer>) {
  const { status, body } = await answer
  return [status, body.error?.code]
}

test('[AP140] an approver who does not own the chat sees the outcome of a call, not its result', async () => {
  await using testBridge = await TestBridge.open({ approvals: MANAGER_THEN_EXECUTIVE })
  const { page, id } = await requestPayment(testBridge)
  await testBridge.page('mari').decide(id, { approved: true })
  await testBridge.page('erin').decide(id, { approved: true })
  await page.untilState(id, 'succeeded')
  const own = (await page.approval(id)).history.at(-1)
  expect(own).toMatchObject({ type: 'succeeded', output: { success: true } })
  for (const approver of [testBridge.page('mari'), testBridge.page('erin')]) {
    const { approval, history } = await approver.approval(id)
    expect(approval.state).toBe('succeeded')
    expect(history.at(-1)).toEqual({ at: own?.['at'], type: 'succeeded' })
    expect(JSON.stringify(history)).not.toContain('success"')
  }
})

test('[AP1700] decisions in one request stand for themselves: each runs, is refused or waits as if it were alone', async () => {
  await using testBridge = await TestBridge.open({
    approvals: {
      process_payment: ({ args: { amount } }) => ({
        severity: Number(amount) > 90 ? 'high' : 'low',
        ...(amount === 3 && { deciders: { roles: ['manager'] } }),
      }),
    },
  })
  const page = testBridge.page()
  const paid = [1, 2, 3, 99].map((amount) => callPayment(amount))
  const calls = [...paid, callPayment(4, 'Ana\u202Eana')].join('')
  const parts = [{ type: 'text', text: `${calls}[[then]][[say Done.]]` }]
  await page.post({ id: 'chat-1', messages: [{ id: 'u1', role: 'user', parts }] })
  const { approvals = [] } = await page.list('state=requested')
  const idOf = (amount: number): string =>
    approvals.find(({ args }) => JSON.stringify(args).includes(`"amount":${amount},`))?.id ?? ''
  const api = adkApi({ url: testBridge.url, headers: { 'x-api-key': 'hanako' } })
  const refused = await api.decideTogether([
    { approvalId: idOf(99), approved: true },
    { approvalId: idOf(3), approved: true },
    { approvalId: idOf(4), approved: true },
    { approvalId: idOf(1), approved: true },
    { approvalId: 'none', approved: true },
    { approvalId: idOf(2), approved: false, reason: 'Not this one.' },
  ])
  const codes = [...refused].map(([id, { code }]) => [id, code])
  expect(codes).toEqual([
    [idOf(99), 'not-allowed'],
    [idOf(3), 'not-allowed'],
    [idOf(4), 'not-allowed'],
    ['none', 'unknown-approval'],
  ])
  await page.untilState(idOf(1), 'succeeded')
  await page.untilState(idOf(2), 'denied')
  expect(testBridge.wallet.payments.map(({ amount }) => amount)).toEqual([1])
  // A call of high severity can be denied together with others, and approved by itself.
  await expect(api.decideTogether([{ approvalId: idOf(99), approved: false }])).resolves.toEqual(
    new Map(),
  )
  const twice = { approvalId: idOf(1), approved: true }
  for (const wrong of [
    [],
    [twice, twice],
    Array.from({ length: 51 }, (_, n) => ({ ...twice, approvalId: `a${n}` })),
  ])
    await expect(api.decideTogether(wrong)).rejects.toMatchObject({ code: 'bad-request' })
})

test('[AP1700] of calls that are approved together, one does not change the preview of another', async () => {
  const balance = { read: () => 0 }
  const preview = (): { headline: string } => ({ headline: `Balance: ${balance.read()}` })
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { preview, requirePreview: true } },
  })
  balance.read = () => testBridge.wallet.balance
  const page = testBridge.page()
  const calls = [1, 2, 3].map((amount) => callPayment(amount)).join('')
  const parts = [{ type: 'text', text: `${calls}[[then]][[say Done.]]` }]
  await page.post({ id: 'chat-1', messages: [{ id: 'u1', role: 'user', parts }] })
  const api = adkApi({ url: testBridge.url, headers: { 'x-api-key': 'hanako' } })
  const listed = await api.listApprovals()
  const decisions = listed.map((approval) => ({
    approvalId: approval.id,
    approved: true,
    preview: approval.preview?.digest,
  }))
  expect(decisions).toHaveLength(3)
  expect(await api.decideTogether(decisions)).toEqual(new Map())
  for (const { approvalId } of decisions) await page.untilState(approvalId, 'succeeded')
})

test('[AP142] a vote can be withdrawn while other people still have to decide, and nothing runs', async () => {
  await using testBridge = await TestBridge.open({ approvals: MANAGER_THEN_EXECUTIVE })
  const { page, id } = await requestPayment(testBridge)
  const [mari, erin, taro] = [
    testBridge.page('mari'),
    testBridge.page('erin'),
    testBridge.page('taro'),
  ]
  expect(await codeOf(mari.withdraw(id))).toEqual([409, 'not-voted'])
  expect(await codeOf(page.withdraw(id))).toEqual([409, 'not-voted'])
  expect(await codeOf(taro.withdraw(id))).toEqual([404, 'unknown-approval'])
  await mari.decide(id, { approved: true })
  expect(await mari.withdraw(id)).toMatchObject({
    status: 200,
    body: { approval: { state: 'requested', voted: false, approvals: { given: 0, needed: 2 } } },
  })
  expect(await codeOf(erin.decide(id, { approved: true }))).toEqual([403, 'not-allowed'])
  expect(testBridge.wallet.payments).toEqual([])
  // A person who has withdrawn a vote may deny, or approve again.
  await mari.decide(id, { approved: true })
  await erin.decide(id, { approved: true })
  await page.untilState(id, 'succeeded')
  expect(await codeOf(mari.withdraw(id))).toEqual([409, 'approval-decided'])
  expect(testBridge.wallet.payments).toHaveLength(1)
  const { history } = await page.approval(id)
  expect(history.map(({ type }) => type)).toEqual([
    'requested',
    'voted',
    'withdrawn',
    'voted',
    'approved',
    'started',
    'succeeded',
  ])
  expect(history[2]).toMatchObject({ by: 'mari', step: 0, dropped: [] })
})

test('[LG25] an approval is in the inbox of a person when it is their turn in the chain', async () => {
  await using testBridge = await TestBridge.open({ approvals: MANAGER_THEN_EXECUTIVE })
  const { page, id } = await requestPayment(testBridge)
  const [mari, mike, erin] = [
    testBridge.page('mari'),
    testBridge.page('mike'),
    testBridge.page('erin'),
  ]
  const listed = async () =>
    Promise.all([page, mari, mike, erin].map(async (person) => (await person.inbox()).length))
  expect(await listed()).toEqual([1, 1, 1, 0])
  await mari.decide(id, { approved: true })
  expect(await listed()).toEqual([1, 1, 0, 1])
  await mari.withdraw(id)
  expect(await listed()).toEqual([1, 1, 1, 0])
  await mike.decide(id, { approved: true })
  await erin.decide(id, { approved: true })
  expect(await listed()).toEqual([0, 0, 0, 0])
})

test('[AP142] of a withdrawal and a deciding vote at the same time, one comes first', async () => {
  await using testBridge = await TestBridge.open({ approvals: MANAGER_THEN_EXECUTIVE })
  const { page, id } = await requestPayment(testBridge)
  const [mari, erin] = [testBridge.page('mari'), testBridge.page('erin')]
  await mari.decide(id, { approved: true })
  const [withdrawn, decided] = await Promise.all([
    mari.withdraw(id),
    erin.decide(id, { approved: true }),
  ])
  // Either the vote is withdrawn, and it is not the turn of the second person; or the vote has decided, and cannot be withdrawn.
  const isWithdrawn = withdrawn.status === 200
  expect([withdrawn.status, decided.status]).toEqual(isWithdrawn ? [200, 403] : [409, 200])
  await page.untilState(id, isWithdrawn ? 'requested' : 'succeeded')
  expect(testBridge.wallet.payments).toHaveLength(isWithdrawn ? 0 : 1)
})

test('[AP141] the inbox is read in pages, oldest first, with the approvals of the person’s own chats and of others', async () => {
  const store = await openSqliteStore({ path: ':memory:' })
  const ledger = new Ledger({
    store: store.approvals,
    appName: 'adk-stream-protocol',
    quota: { perChat: 1_000, perPrincipal: 1_000 },
  })
  const request = (index: number, principalId: string, roles: string[] = []) =>
    ledger.request({
      id: `approval-${index}`,
      chat: { appName: ledger.appName, principalId, chatId: 'chat-1' },
      toolCallId: `call-${index}`,
      toolName: 'pay',
      args: { index },
      messageId: 'm1',
      terms: { chain: [{ count: 1, principals: [principalId], roles }], idempotent: false },
      deadlineMs: 60_000,
    })
  // Mari is a manager. The first 240 approvals are her own or wait for a manager; the last 10 wait only for taro.
  for (let index = 0; index < 240; index += 1)
    await request(index, index % 2 === 0 ? 'mari' : 'taro', ['manager'])
  for (let index = 240; index < 250; index += 1) await request(index, 'taro')
  await using server = await serve({
    store,
    agent: (model) => assistant(model, { tools: [tool('pay', () => ({}))] }),
    authenticate: ({ headers }) => {
      const id = headers.get('x-api-key') ?? ''
      return { id, ...(id === 'mari' && { roles: ['manager'] }) }
    },
  })
  const get = async (query: string, id = 'mari') => {
    const response = await fetch(`${server.url}/approvals${query}`, {
      headers: { 'x-api-key': id },
    })
    const body = (await response.json()) as {
      approvals?: { id: string }[]
      next?: string
      error?: { code: string }
    }
    return { status: response.status, ...body, ids: body.approvals?.map((each) => each.id) ?? [] }
  }
  const first = await get('')
  expect([first.ids.length, first.next]).toEqual([100, 'approval-99'])
  const second = await get(`?limit=70&after=${first.next}`)
  expect([second.ids.length, second.next]).toEqual([70, 'approval-169'])
  // Decided approvals are not listed any more, and the cursor of a page stays valid.
  await ledger.decide('approval-169', { by: { id: 'taro', roles: [] }, approved: false })
  const third = await get(`?after=${second.next}`)
  expect([third.ids.length, third.next]).toEqual([70, undefined])
  const all = [...first.ids, ...second.ids, ...third.ids]
  expect(all).toEqual(Array.from({ length: 240 }, (_, index) => `approval-${index}`))
  expect((await get('', 'taro')).ids).toHaveLength(100)
  for (const query of [
    '?limit=0',
    '?limit=101',
    '?limit=x',
    '?after=nothing',
    '?after=approval-245',
  ])
    expect([query, (await get(query)).error?.code]).toEqual([query, 'bad-request'])

  const api = adkApi({ url: server.url, headers: { 'x-api-key': 'mari' } })
  expect(await api.listApprovals()).toHaveLength(239)
  const page = await api.listApprovalsPage({ limit: 2, after: 'approval-1' })
  expect([page.approvals.map(({ id }) => id), page.next]).toEqual([
    ['approval-2', 'approval-3'],
    'approval-3',
  ])
  await store.close()
})
