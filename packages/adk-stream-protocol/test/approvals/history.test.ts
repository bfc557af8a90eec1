import { expect, test } from 'vitest'

import { callPayment } from './support/payments.ts'
import { TestBridge } from './support/test-bridge.ts'

const POLICY = {
  process_payment: {
    chain: [{ principals: ['hanako', 'taro'] }, { roles: ['manager'] }],
    receipt: () => ({ headline: 'Sent' }),
  },
}

/** Requests a payment in a chat of its own. */
async function ask(testBridge: TestBridge, person: 'hanako' | 'taro', chatId: string) {
  const page = testBridge.page(person)
  const text = `${callPayment(50)}[[then]][[say Paid.]]`
  const message = { id: `u-${chatId}`, role: 'user', parts: [{ type: 'text', text }] }
  await page.post({ id: chatId, messages: [message] })
  const { approvals = [] } = await page.list(`state=requested&requester=${person}&limit=1`)
  return approvals[0]?.id ?? ''
}

test('[AP453] decided approvals are listed for everyone who may see them, newest first, with who decided, when and why', async () => {
  await using testBridge = await TestBridge.open({ approvals: POLICY })
  const [hanako, taro, mari, erin] = (['hanako', 'taro', 'mari', 'erin'] as const).map((person) =>
    testBridge.page(person),
  )
  const paid = await ask(testBridge, 'hanako', 'a')
  const denied = await ask(testBridge, 'taro', 'b')
  const open = await ask(testBridge, 'hanako', 'c')
  await hanako?.decide(paid, { approved: true })
  await mari?.decide(paid, { approved: true })
  await taro?.decide(denied, { approved: true })
  await mari?.decide(denied, { approved: false, reason: 'Too much' })
  await hanako?.untilState(paid, 'succeeded')

  const decided = await mari?.list('state=decided')
  expect(decided).toMatchObject({
    status: 200,
    approvals: [
      { id: denied, state: 'denied', by: [{ id: 'mari', own: true }], reason: 'Too much' },
      { id: paid, state: 'succeeded', by: [{ id: 'hanako' }, { id: 'mari', own: true }] },
    ],
  })
  for (const { at, whyNot } of decided?.approvals ?? []) {
    expect(typeof at).toBe('number')
    expect(whyNot).toBe('decided')
  }
  // The receipt is part of the result (AP140): only the owner of the chat sees it.
  expect(JSON.stringify(decided)).not.toContain('Sent')
  expect((await hanako?.list('state=succeeded'))?.approvals).toMatchObject([
    { id: paid, receipt: { headline: 'Sent' } },
  ])
  const ids = async (query: string) =>
    (await mari?.list(query))?.approvals?.map(({ id }) => id) ?? []
  expect(await ids('state=all')).toEqual([open, denied, paid])
  expect(await ids('state=requested')).toEqual([open])
  expect(await ids('state=denied,succeeded')).toEqual([denied, paid])
  expect(await ids('requester=taro')).toEqual([denied])
  expect(await ids('state=decided&requester=hanako')).toEqual([paid])
  expect(await ids('tool=process_payment&state=denied')).toEqual([denied])
  expect(await ids('tool=other')).toEqual([])
  // Without a filter: the pending ones that wait for this person, as before.
  expect(await ids('')).toEqual([])
  expect((await erin?.list('state=all'))?.approvals).toEqual([])
})

test('[AP453] decided approvals are read in pages; an invalid query is rejected', async () => {
  await using testBridge = await TestBridge.open({ approvals: POLICY })
  const page = testBridge.page()
  const asked: string[] = []
  for (const chatId of ['a', 'b', 'c']) {
    const id = await ask(testBridge, 'hanako', chatId)
    await page.decide(id, { approved: false })
    asked.unshift(id)
  }
  const first = await page.list('state=decided&limit=2')
  expect(first.approvals?.map(({ id }) => id)).toEqual(asked.slice(0, 2))
  expect(first.next).toBe(asked[1])
  // An approval that is requested meanwhile does not move the pages.
  await ask(testBridge, 'hanako', 'd')
  const second = await page.list(`state=decided&limit=2&after=${first.next}`)
  expect(second.approvals?.map(({ id }) => id)).toEqual(asked.slice(2))
  expect(second.next).toBeUndefined()
  for (const query of ['state=', 'state=gone', 'state=denied,gone', 'tool=', 'state=all&limit=0'])
    expect([query, (await page.list(query)).status]).toEqual([query, 400])
  // The cursor of an approval that this person may not see.
  expect((await testBridge.page('erin').list(`state=all&after=${asked[0]}`)).status).toBe(400)
})
