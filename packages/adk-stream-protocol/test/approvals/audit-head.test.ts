import { expect, test } from 'vitest'

import { collect } from '../../src/shared/async.ts'
import { callPayment } from './support/payments.ts'
import { TestBridge } from './support/test-bridge.ts'

async function ask(testBridge: TestBridge, chatId: string): Promise<void> {
  const parts = [{ type: 'text', text: callPayment(50) }]
  const messages = [{ id: `u-${chatId}`, role: 'user', parts }]
  await testBridge.page().post({ id: chatId, messages })
}

test('[LG1571] each request in the audit record has the version of the policy', async () => {
  await using testBridge = await TestBridge.open({ isLive: false, policyVersion: '2026-11-18' })
  await ask(testBridge, 'chat-1')
  const entries = await collect(testBridge.store.approvals.audit({}))
  expect(entries.map(({ event }) => event)).toMatchObject([
    { type: 'requested', policyVersion: '2026-11-18' },
  ])
})

test('[LG1570] the head of the audit record is reported when it has changed, and again after a failure', async () => {
  const heads: { readonly seq: number; readonly hash: string }[] = []
  const report = (head: (typeof heads)[number]): void => {
    heads.push(head)
    if (heads.length === 1) throw new Error('The log cannot be reached.')
  }
  const auditHead = { report, everyMs: 1_000 }
  await using testBridge = await TestBridge.open({ isLive: false, auditHead })
  await ask(testBridge, 'chat-1')
  await expect.poll(() => heads.length, { timeout: 20_000 }).toBe(2)
  expect(heads[1]).toEqual(heads[0])
  expect(testBridge.errors.map(String)).toEqual(['Error: The log cannot be reached.'])
  await ask(testBridge, 'chat-2')
  await expect.poll(() => heads.length, { timeout: 20_000 }).toBe(3)
  const { store } = testBridge
  const head = heads[2]
  expect(head && (await store.approvals.verifyAudit?.({ head }))?.fault).toBe(undefined)
  const forged = { seq: head?.seq ?? 0, hash: heads[0]?.hash ?? '' }
  expect((await store.approvals.verifyAudit?.({ head: forged }))?.fault).toBeDefined()
})
