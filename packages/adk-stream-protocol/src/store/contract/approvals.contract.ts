import type { Approval } from '../../approvals/approval.ts'
import type { ApprovalStore } from '../../approvals/approval-store.ts'
import type { ApprovalSubject, ContractTest } from './contract-test.ts'
import { expect } from './contract-test.ts'
import {
  after,
  approve,
  askedFor,
  chat,
  claimOf,
  collect,
  deny,
  entryOf,
  executive,
  executiveStep,
  hanako,
  ids,
  insert,
  manager,
  managerStep,
  NOON,
  numbered,
  otherManager,
  QUOTA,
  step,
  stranger,
  termsOf,
} from './fixtures.ts'
import { leaseContract } from './locks.contract.ts'

type Open = () => Promise<ApprovalSubject>

/** Defines the tests of an approval store. */
export function approvalContract(test: ContractTest, open: Open): void {
  testTransitions(test, open)
  testLists(test, open)
  testAudit(test, open)
  leaseContract(test, open)
}

function testTransitions(test: ContractTest, open: Open): void {
  test('[LG20] returns stored approvals by id and by call, before and after a restart', async () => {
    await using subject = await open()
    const { store } = subject
    const args = JSON.parse(
      '{"__proto__": {"a": 1}, "text": "\\u0000\\ud800 花子", "list": [1, null]}',
    ) as Approval['args']
    const approval = askedFor({ args })
    await insert(store, approval)
    expect(await store.get(approval.id)).toEqual(approval)
    expect(await store.findByCall(chat, 'call-1')).toEqual(approval)
    const decided = step(approval, approve(hanako))
    expect(await store.replace(decided)).toBe(true)
    const again = await subject.restart()
    expect(await again.get(approval.id)).toEqual(decided.next)
    expect(await again.get('\0')).toBeUndefined()
    expect(await again.get('\ud800')).toBeUndefined()
    expect(await again.findByCall({ ...chat, chatId: 'other' }, 'call-1')).toBeUndefined()
    expect(await again.findByCall(chat, '\0')).toBeUndefined()
  })

  test('[LG20] changes to a returned approval do not affect the store', async () => {
    await using subject = await open()
    const approval = askedFor()
    await insert(subject.store, approval)
    const read = await subject.store.get(approval.id)
    Object.assign(read?.args ?? {}, { amount: 1_000_000 })
    expect(await subject.store.get(approval.id)).toEqual(approval)
  })

  test('[LG21] a known id or call is not added again', async () => {
    await using subject = await open()
    const approval = askedFor()
    await insert(subject.store, approval)
    const sameId = askedFor({ id: approval.id, toolCallId: 'call-2' })
    const sameCall = askedFor({ id: 'other' })
    expect(await subject.store.insert(sameId, entryOf(sameId), QUOTA)).toBe('exists')
    expect(await subject.store.insert(sameCall, entryOf(sameCall), QUOTA)).toBe('exists')
    expect(await subject.store.get('other')).toBeUndefined()
    expect(await collect(subject.store.audit({}))).toHaveLength(1)
  })

  test('[AP52] the quota limits pending approvals per chat and per principal', async () => {
    await using subject = await open()
    const { store } = subject
    const quota = { perChat: 2, perPrincipal: 3 }
    const add = (number: number, chatId: string, principalId = 'hanako') => {
      const approval = askedFor({
        id: `a-${number}`,
        toolCallId: `call-${number}`,
        chat: { ...chat, chatId, principalId },
      })
      return store.insert(approval, entryOf(approval), quota)
    }
    expect([await add(1, 'one'), await add(2, 'one'), await add(3, 'one')]).toEqual([
      'inserted',
      'inserted',
      'too-many-pending',
    ])
    expect([await add(4, 'two'), await add(5, 'two')]).toEqual(['inserted', 'too-many-pending'])
    expect(await add(6, 'one', 'taro')).toBe('inserted')
    const first = await store.get('a-1')
    expect(await store.replace(step(first ?? askedFor(), deny(hanako)))).toBe(true)
    expect(await add(7, 'one')).toBe('inserted')
  })

  test('[LG21] of two transitions from one version, only the first is stored, with its audit entry', async () => {
    await using subject = await open()
    const { store } = subject
    const approval = askedFor()
    await insert(store, approval)
    const [yes, no] = [step(approval, approve(hanako)), step(approval, deny(hanako))]
    expect([await store.replace(no), await store.replace(yes), await store.replace(no)]).toEqual([
      true,
      false,
      false,
    ])
    expect(await store.get(approval.id)).toEqual(no.next)
    const audit = await collect(store.audit({ approvalId: approval.id }))
    expect(audit.map(({ seq: _seq, ...entry }) => entry)).toEqual([entryOf(approval), no.entry])
    const missing = askedFor({ id: 'missing' })
    expect(await store.replace(step(missing, approve(hanako)))).toBe(false)
  })

  test('[LG210] consecutive transitions are stored together or not at all', async () => {
    await using subject = await open()
    const { store } = subject
    const approval = askedFor()
    await insert(store, approval)
    const approved = step(approval, approve(hanako))
    const claimed = step(approved.next, claimOf(approval))
    const late = { ...approved, before: NOON }
    expect(await store.replaceAll([late, claimed])).toBe(false)
    expect(await store.get(approval.id)).toEqual(approval)
    await expect(store.replaceAll([approved, approved])).rejects.toThrow('consecutive')
    const again = await subject.restart()
    expect(await again.get(approval.id)).toEqual(approval)
    expect(await again.replaceAll([approved, claimed])).toBe(true)
    expect(await again.replaceAll([approved, claimed])).toBe(false)
    expect(await again.get(approval.id)).toEqual(claimed.next)
    const audit = await collect(again.audit({ approvalId: approval.id }))
    expect(audit.map(({ event }) => event.type)).toEqual(['requested', 'approved', 'started'])
  })

  test('[LG21] a decision that reaches the store after the deadline is not stored', async () => {
    await using subject = await open()
    const approval = askedFor()
    await insert(subject.store, approval)
    const late = step(approval, approve(hanako), approval.deadline - 1)
    await subject.setClock(approval.deadline)
    expect(await subject.store.replace(late)).toBe(false)
    await subject.setClock(approval.deadline - 1)
    expect(await subject.store.replace(late)).toBe(true)
  })
}

function testLists(test: ContractTest, open: Open): void {
  test('[LG25] lists the open questions of MCP servers', async () => {
    await using subject = await open()
    const { store } = subject
    const question = { ...termsOf(), kind: 'elicitation' as const }
    await insert(
      store,
      askedFor({ id: '1', toolCallId: '1' }),
      askedFor({ id: '2', toolCallId: '2', terms: question, args: { message: '\0\ud800 "' } }),
      askedFor({ id: '3', toolCallId: '3', terms: { ...termsOf(), kind: 'input' } }),
      askedFor({ id: '4', toolCallId: '4', terms: question, chat: { ...chat, appName: 'other' } }),
      askedFor({ id: '5', toolCallId: '5', terms: question }),
      askedFor({ id: '6', toolCallId: '6', args: { terms: { kind: 'elicitation' } } }),
    )
    const filter = { appName: 'demo', states: ['requested'], kind: 'elicitation' } as const
    expect(await ids(store.list({ ...filter, limit: 10 }))).toEqual(['2', '5'])
    expect(await ids(store.list({ ...filter, limit: 1 }))).toEqual(['2'])
    expect(await ids(store.list({ ...filter, limit: 1, after: '2' }))).toEqual(['5'])
  })

  test('[LG25] lists by principal, chat, state and decider, in pages, oldest first', async () => {
    await using subject = await open()
    const { store } = subject
    const [one, two, three, four, five] = [
      askedFor({ id: '1', toolCallId: '1' }),
      askedFor({ id: '2', toolCallId: '2', chat: { ...chat, chatId: 'chat-2' } }),
      askedFor({ id: '3', toolCallId: '3', terms: termsOf(managerStep, executiveStep) }),
      askedFor({ id: '4', toolCallId: '4', chat: { ...chat, principalId: 'taro' } }),
      askedFor({ id: '5', toolCallId: '5', chat: { ...chat, appName: 'other' } }),
    ]
    await insert(store, one, two, three, four, five)
    expect(await store.replace(step(two, approve(hanako)))).toBe(true)
    const limit = 10
    expect(await ids(store.list({ limit }))).toEqual(['1', '2', '3', '4', '5'])
    expect(await ids(store.list({ limit, appName: 'demo', principalId: 'hanako' }))).toEqual([
      '1',
      '2',
      '3',
    ])
    expect(await ids(store.list({ limit, chat }))).toEqual(['1', '3'])
    expect(await ids(store.list({ limit, states: ['approved', 'denied'] }))).toEqual(['2'])
    expect(await ids(store.list({ limit, states: [] }))).toEqual([])
    const waitsFor = (principal: typeof hanako) => ids(store.list({ limit, waitsFor: principal }))
    expect(await ids(store.list({ limit, appName: 'demo', waitsFor: hanako }))).toEqual([
      '1',
      '3',
      '4',
    ])
    expect(await waitsFor(otherManager)).toEqual(['3'])
    expect(await waitsFor(stranger)).toEqual([])
    // A person with the name of a role does not have the role.
    expect(await waitsFor({ id: 'manager', roles: [] })).toEqual([])
    expect(await ids(store.list({ limit: 2 }))).toEqual(['1', '2'])
    expect(await ids(store.list({ limit: 2, after: '2' }))).toEqual(['3', '4'])
    expect(await ids(store.list({ limit, after: '5' }))).toEqual([])
    expect(await ids(store.list({ limit, chat, after: '\0' }))).toEqual(['1', '3'])
  })

  test('[LG450] lists the approvals that a principal may see, pending and decided, newest first, in pages', async () => {
    await using subject = await open()
    const { store } = subject
    // The method is optional.
    if (!store.listVisible) return
    const ofTaro = { ...chat, principalId: 'taro' }
    const odd = { count: 1, principals: ['a"\\\u0000\ud800b'], roles: ['"', '花子'] }
    const approvals = [
      askedFor({ id: '1', toolCallId: '1' }),
      askedFor({ id: '2', toolCallId: '2', terms: termsOf(managerStep, executiveStep) }),
      askedFor({ id: '3', toolCallId: '3', chat: ofTaro, terms: termsOf(managerStep) }),
      askedFor({ id: '4', toolCallId: '4', chat: ofTaro, toolName: 'other', terms: termsOf(odd) }),
      askedFor({ id: '5', toolCallId: '5', chat: { ...chat, appName: 'other' } }),
    ] as const
    await insert(store, ...approvals)
    expect(await store.replace(step(approvals[0], deny(hanako)))).toBe(true)
    expect(await store.replace(step(approvals[1], approve(manager)))).toBe(true)
    expect(await store.replace(step(approvals[2], approve(otherManager)))).toBe(true)
    const listed = (
      reader: typeof hanako,
      filter: Partial<Parameters<NonNullable<ApprovalStore['listVisible']>>[0]> = {},
    ) => ids(store.listVisible?.({ appName: 'demo', reader, limit: 10, ...filter }) ?? never())
    expect(await listed(hanako)).toEqual(['2', '1'])
    // Also after they have decided, and before it is their turn.
    expect(await listed(manager)).toEqual(['3', '2'])
    expect(await listed(executive)).toEqual(['2'])
    expect(await listed({ id: 'taro', roles: [] })).toEqual(['4', '3'])
    expect(await listed(stranger)).toEqual([])
    // A person with the name of a role does not have the role.
    expect(await listed({ id: 'manager', roles: [] })).toEqual([])
    expect(await listed({ id: 'x', roles: ['hanako'] })).toEqual([])
    // Any name is compared exactly.
    expect(await listed({ id: 'a"\\\u0000\ud800b', roles: [] })).toEqual(['4'])
    expect(await listed({ id: 'x', roles: ['花子'] })).toEqual(['4'])
    expect(await listed({ id: 'x', roles: ['"', '花子'] })).toEqual(['4'])
    // Several names of one person, without duplicates, in one order.
    const all = { id: 'taro', roles: ['manager', 'executive', '"'] }
    expect(await listed(all)).toEqual(['4', '3', '2'])
    expect(await listed(all, { limit: 2 })).toEqual(['4', '3'])
    expect(await listed(all, { limit: 2, after: '3' })).toEqual(['2'])
    expect(await listed(all, { after: '2' })).toEqual([])
    expect(await listed(all, { after: '\0' })).toEqual([])
    expect(await listed(all, { states: ['requested'] })).toEqual(['4', '2'])
    expect(await listed(all, { states: ['approved'], limit: 1 })).toEqual(['3'])
    expect(await listed(hanako, { states: ['denied'] })).toEqual(['1'])
    expect(await listed(all, { states: [] })).toEqual([])
    expect(await listed(all, { toolName: 'other' })).toEqual(['4'])
    expect(await listed(all, { toolName: 'Other' })).toEqual([])
    expect(await listed(all, { requester: 'hanako' })).toEqual(['2'])
    expect(await listed(all, { requester: 'taro', toolName: 'process_payment' })).toEqual(['3'])
    expect(await listed(all, { requester: '\0' })).toEqual([])
    const reopened = await subject.restart()
    const again = reopened.listVisible?.({ appName: 'demo', reader: all, limit: 10 })
    expect(await ids(again ?? never())).toEqual(['4', '3', '2'])
  })

  test('[LG25] a chain lists an approval for those who can decide now and those who can withdraw their vote', async () => {
    await using subject = await open()
    const { store } = subject
    const asked = askedFor({
      id: '1',
      chat: { ...chat, principalId: 'taro' },
      terms: termsOf({ ...managerStep, count: 2 }, executiveStep),
    })
    await insert(store, asked)
    const seenBy = async () => {
      const seen: string[] = []
      for (const principal of [manager, otherManager, executive]) {
        const found = await ids(store.list({ limit: 10, appName: 'demo', waitsFor: principal }))
        if (found.length > 0) seen.push(principal.id)
      }
      return seen
    }
    const both = [manager.id, otherManager.id]
    const all = [...both, executive.id]
    let current = asked
    const move = async (command: Parameters<typeof step>[1]) => {
      expect(await store.replace(step(current, command))).toBe(true)
      current = after(current, command)
    }
    expect(await seenBy()).toEqual(both)
    await move(approve(manager))
    expect(await seenBy()).toEqual(both)
    await move(approve(otherManager))
    expect(await seenBy()).toEqual(all)
    await move({ type: 'withdraw', by: manager })
    expect(await seenBy()).toEqual(both)
    await move(approve(manager))
    await move(approve(executive))
    expect(await seenBy()).toEqual([])
  })

  test('[LG25] lists pending approvals past their deadline by the clock of the store, most overdue first', async () => {
    await using subject = await open()
    const { store } = subject
    const deadlines = [NOON + 30, NOON + 10, NOON + 20, NOON + 10]
    const all = numbered(4).map((approval, index) => ({
      ...approval,
      deadline: deadlines[index] ?? 0,
    }))
    await insert(store, ...all)
    const [, , , decided = askedFor()] = all
    expect(await store.replace(step(decided, approve(hanako), NOON))).toBe(true)
    expect(await ids(store.due(10))).toEqual([])
    await subject.setClock(NOON + 20)
    expect(await store.now()).toBe(NOON + 20)
    expect(await ids(store.due(10))).toEqual(['a-1', 'a-2'])
    expect(await ids(store.due(1))).toEqual(['a-1'])
  })

  test('[LG21] an approval can be read together with the time of the store', async () => {
    await using subject = await open()
    const { store } = subject
    // Optional: for stores in which reading the time takes as long as reading an approval.
    if (!store.getWithTime) return
    await insert(store, askedFor())
    await subject.setClock(NOON + 20)
    expect(await store.getWithTime(askedFor().id)).toEqual({ approval: askedFor(), now: NOON + 20 })
    expect(await store.getWithTime('unknown')).toEqual({ approval: undefined, now: NOON + 20 })
    expect((await store.getWithTime('\0')).approval).toBe(undefined)
  })
}

function testAudit(test: ContractTest, open: Open): void {
  test('[LG27] the audit record is read in write order, by approval, by chat and from any position', async () => {
    await using subject = await open()
    const { store } = subject
    const other = { ...chat, chatId: 'chat-2' }
    expect(await store.lastSeq()).toBe(0)
    const [one = askedFor(), two = askedFor()] = numbered(2)
    const three = askedFor({ id: 'a-2', chat: other })
    await insert(store, one, two, three)
    for (const transition of [step(two, deny(hanako)), step(one, approve(hanako))])
      expect(await store.replace(transition)).toBe(true)
    const all = await collect(store.audit({}))
    expect(all.map(({ approvalId, event }) => [approvalId, event.type])).toEqual([
      ['a-0', 'requested'],
      ['a-1', 'requested'],
      ['a-2', 'requested'],
      ['a-1', 'denied'],
      ['a-0', 'approved'],
    ])
    const second = all[1]?.seq ?? 0
    expect(await collect(store.audit({ after: second }))).toEqual(all.slice(2))
    expect(await collect(store.audit({ after: second, limit: 2 }))).toEqual(all.slice(2, 4))
    expect(await collect(store.audit({ chat: other }))).toEqual([all[2]])
    expect(await collect(store.audit({ approvalId: 'a-1' }))).toEqual([all[1], all[3]])
    expect(await collect(store.audit({ appName: 'none' }))).toEqual([])
    expect(await store.lastSeq()).toBe(all.at(-1)?.seq)
  })

  test('[LG27] the audit record is read by time, in pages', async () => {
    await using subject = await open()
    const { store } = subject
    const [one = askedFor(), two = askedFor(), three = askedFor()] = numbered(3)
    await insert(store, one, two, three)
    for (const [approval, at] of [
      [two, NOON + 30],
      [three, NOON + 20],
      [one, NOON + 40],
    ] as const)
      expect(await store.replace(step(approval, approve(hanako), at))).toBe(true)
    const all = await collect(store.audit({}))
    expect(await collect(store.audit({ from: NOON + 30 }))).toEqual([all[3], all[5]])
    expect(await collect(store.audit({ to: NOON + 30, after: 3 }))).toEqual([all[4]])
    expect(await collect(store.audit({ from: NOON + 20, to: NOON + 40 }))).toEqual([all[3], all[4]])
    expect(await collect(store.audit({ from: NOON + 20, limit: 2 }))).toEqual([all[3], all[4]])
    expect(await collect(store.audit({ from: NOON + 20, limit: 2, after: 5 }))).toEqual([all[5]])
    expect(await collect(store.audit({ approvalId: 'a-1', to: NOON + 30 }))).toEqual([all[1]])
  })

  test('[LG27] a long audit record is read completely and in order', async () => {
    await using subject = await open()
    await insert(
      subject.store,
      ...numbered(1_001, { chat }).map((approval, number) => ({
        ...approval,
        chat: { ...chat, principalId: `p-${number}` },
      })),
    )
    const seqs: number[] = []
    for await (const { seq } of subject.store.audit({})) seqs.push(seq)
    expect(seqs).toHaveLength(1_001)
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b))
  })
}

function never(): never {
  throw new Error('The store has no `listVisible` any more.')
}
