import { expect, test } from 'vitest'

import type { AuditPage } from '../../src/server/routes/audit-and-timeline.ts'
import { tool } from '../support/agents.ts'
import { callPayment } from './support/payments.ts'
import { TestBridge } from './support/test-bridge.ts'

const MANAGERS = {
  mayReadAudit: ({ roles = [] }: { readonly roles?: readonly string[] }) =>
    roles.includes('manager'),
}

/** Approves one payment in each of two chats. */
async function approveTwo(testBridge: TestBridge): Promise<string[]> {
  const page = testBridge.page()
  const ids: string[] = []
  for (const id of ['chat-1', 'chat-2']) {
    const text = `${callPayment(50)}[[then]][[say Paid.]]`
    await page.post({ id, messages: [{ id: 'u1', role: 'user', parts: [{ type: 'text', text }] }] })
    const [asked] = await page.inbox()
    const approvalId = asked?.id ?? ''
    await page.decide(approvalId, { approved: true, reason: `For ${id}.` })
    await page.untilState(approvalId, 'succeeded')
    ids.push(approvalId)
  }
  return ids
}

const NOT_ALLOWED =
  'You may not read the audit record. Ask the operator of this server for a role that may.'

const STEPS = ['requested', 'approved', 'started', 'succeeded']

test('[AP220] an application reads the audit record by chat, approval and time, in pages', async () => {
  await using testBridge = await TestBridge.open()
  const [first = '', second = ''] = await approveTwo(testBridge)
  const { bridge } = testBridge
  const all = await bridge.audit()
  expect(all.entries.map(({ event }) => event.type)).toEqual([...STEPS, ...STEPS])
  expect(all.next).toBeUndefined()
  expect(all.entries[1]).toMatchObject({
    approvalId: first,
    chat: { principalId: 'hanako', chatId: 'chat-1' },
    event: { type: 'approved', by: 'hanako', reason: 'For chat-1.' },
  })

  const chat = { principalId: 'hanako', chatId: 'chat-2' }
  expect((await bridge.audit({ chat })).entries).toEqual(all.entries.slice(4))
  expect((await bridge.audit({ chat: { ...chat, principalId: 'taro' } })).entries).toEqual([])
  expect((await bridge.audit({ approvalId: second })).entries).toEqual(all.entries.slice(4))
  expect((await bridge.audit({ to: all.entries[0]?.at ?? 0 })).entries).toEqual([])
  expect((await bridge.audit({ from: 0, to: Date.now() + 60_000 })).entries).toHaveLength(8)

  const read = []
  let page: AuditPage = { entries: [], next: 0 }
  while (page.next !== undefined) {
    page = await bridge.audit({ limit: 3, after: page.next })
    expect(page.entries.length).toBeLessThanOrEqual(3)
    read.push(...page.entries)
  }
  expect(read).toEqual(all.entries)
})

test('[AP221] an operator reads the audit record over HTTP; other principals are rejected', async () => {
  await using testBridge = await TestBridge.open(MANAGERS)
  const [, second = ''] = await approveTwo(testBridge)
  const get = async (query: string, person: 'mari' | 'hanako' = 'mari') => {
    const response = await testBridge.page(person).fetch(`http://page/audit${query}`)
    return { status: response.status, body: (await response.json()) as AuditPage }
  }
  const { entries } = await testBridge.bridge.audit()
  expect(await get('')).toEqual({ status: 200, body: { entries } })
  expect((await get('?principalId=hanako&chatId=chat-1')).body.entries).toEqual(entries.slice(0, 4))
  expect((await get(`?approvalId=${second}`)).body.entries).toEqual(entries.slice(4))
  expect((await get('?from=2020-01-01&to=2020-01-02T00:00:00Z')).body.entries).toEqual([])
  const { body } = await get('?limit=5')
  expect(body.next).toBe(entries[4]?.seq)
  expect((await get(`?after=${body.next}`)).body).toEqual({ entries: entries.slice(5) })
  for (const query of [
    '?limit=0',
    '?limit=101',
    '?after=x',
    '?from=noon',
    '?chatId=chat-1',
    '?colour=red',
  ])
    expect(await get(query)).toMatchObject({
      status: 400,
      body: { error: { code: 'bad-request' } },
    })

  // The principal whose calls they are has no permission either.
  expect(await get('', 'hanako')).toMatchObject({
    status: 403,
    body: { error: { code: 'not-allowed', message: NOT_ALLOWED } },
  })
  expect((await fetch(`${testBridge.url}/audit`)).status).toBe(401)
})

test('[AP221] without the option, or if it does not return true, no principal reads the audit record', async () => {
  for (const options of [{}, { mayReadAudit: () => 1 as unknown as boolean }]) {
    await using testBridge = await TestBridge.open(options)
    expect((await testBridge.page('mari').fetch('http://page/audit')).status).toBe(403)
  }
})

test('[AP221] only the application reads the text of an exception', async () => {
  await using testBridge = await TestBridge.open({
    ...MANAGERS,
    approvals: { process_payment: true },
    tools: () => [
      tool('process_payment', () => {
        throw new Error('password=hunter2')
      }),
    ],
  })
  const page = testBridge.page()
  const text = `${callPayment(50)}[[then]][[say Sorry.]]`
  await page.post({
    id: 'c',
    messages: [{ id: 'u1', role: 'user', parts: [{ type: 'text', text }] }],
  })
  const [asked] = await page.inbox()
  await page.decide(asked?.id ?? '', { approved: true })
  await page.untilState(asked?.id ?? '', 'failed')
  const response = await testBridge.page('mari').fetch('http://page/audit')
  const body = await response.text()
  expect(body).toContain('The tool failed.')
  expect(body).not.toContain('hunter2')
  expect(JSON.stringify(await testBridge.bridge.audit())).toContain('hunter2')
})
