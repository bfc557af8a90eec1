import { describe, expect, test } from 'vitest'
import type { Approval } from '../src/approvals/approval.ts'
import type { ApprovalStore } from '../src/approvals/approval-store.ts'
import {
  after,
  approve,
  askedFor,
  chat,
  claimOf,
  deny,
  entryOf,
  hanako,
  NOON,
  step,
} from './ledger/fixture.ts'
import { subjects } from './ledger/subjects.ts'

const QUOTA = { perChat: 16, perPrincipal: 100 }

async function insert(store: ApprovalStore, ...approvals: Approval[]): Promise<void> {
  for (const approval of approvals)
    expect(await store.insert(approval, entryOf(approval), QUOTA)).toBe('inserted')
}

async function ids(approvals: Promise<Approval[]>): Promise<string[]> {
  return (await approvals).map(({ id }) => id)
}

describe.each(Object.entries(subjects))('%s', (_, open) => {
  test('[LG38] an approved or ended call is unreported until it is marked as reported', async () => {
    await using subject = await open()
    const { store } = subject
    const [given, denied, running] = ['given', 'denied', 'running'].map((id) =>
      askedFor({ id, toolCallId: id }),
    ) as [Approval, Approval, Approval]
    await insert(store, askedFor({ id: 'asked', toolCallId: 'asked' }), given, denied, running)
    await insert(store, askedFor({ id: 'foreign', chat: { ...chat, appName: 'other' } }))
    for (const transition of [
      step(given, approve(hanako), NOON),
      step(denied, deny(hanako), NOON),
      step(running, approve(hanako), NOON),
      step(after(running, approve(hanako)), claimOf(running), NOON),
      step(askedFor({ id: 'foreign', chat: { ...chat, appName: 'other' } }), deny(hanako), NOON),
    ])
      expect(await store.replace(transition)).toBe(true)
    const unreported = (limit = 10) =>
      ids(store.unreported({ appName: 'demo', leaseMs: 100, limit }))
    // An ended call is left to the worker that ended it until its lease expires.
    expect(await unreported()).toEqual([given.id])
    await subject.setClock(NOON + 100)
    expect([await unreported(), await unreported(1)]).toEqual([[given.id, denied.id], [given.id]])
    // An approved call has not ended and cannot be marked as reported.
    await store.markReported(chat, [given.toolCallId, denied.toolCallId, 'none'])
    expect(await unreported()).toEqual([given.id])
    const succeeded = { type: 'succeed', worker: 'worker-1', output: 1 } as const
    const claimed = after(running, approve(hanako), claimOf(running))
    expect(await store.replace(step(claimed, succeeded, NOON))).toBe(true)
    await subject.setClock(NOON + 199)
    expect(await unreported()).toEqual([given.id])
    await subject.setClock(NOON + 200)
    expect(await unreported()).toEqual([given.id, running.id])
    await store.deleteChat(chat, 'deleted')
    await subject.setClock(NOON + 1_000)
    expect(await unreported()).toEqual([])
  })

  test('[LG38] a call that a worker with a valid lease may report is not unreported', async () => {
    await using subject = await open()
    const { store } = subject
    const approval = askedFor()
    await insert(store, approval)
    expect(await store.replace(step(approval, deny(hanako), NOON))).toBe(true)
    const unreported = () => ids(store.unreported({ appName: 'demo', leaseMs: 100, limit: 10 }))
    await store.lockChat(chat, { worker: 'w-1', token: 't-1', leaseMs: 100, background: false })
    await subject.setClock(NOON + 90)
    await store.heartbeat('w-1')
    await subject.setClock(NOON + 189)
    expect(await unreported()).toEqual([])
    await subject.setClock(NOON + 190)
    expect(await unreported()).toEqual([approval.id])
    await store.unlockChat(chat, 't-1')
    expect(await unreported()).toEqual([approval.id])
  })
})
