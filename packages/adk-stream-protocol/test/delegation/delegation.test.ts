import { expect, test } from 'vitest'

import type { Approval } from '../../src/approvals/approval.ts'
import { isRefusal } from '../../src/approvals/approval.ts'
import type { Decider } from '../../src/approvals/deciders.ts'
import { nextApproval } from '../../src/approvals/next-approval.ts'
import type { PolicyTerms } from '../../src/approvals/policy.ts'
import { adkApi } from '../../src/client/index.ts'
import { byDelegate, mayDecideFor } from '../../src/modules/delegation/next-delegation.ts'
import { collect, defer } from '../../src/shared/async.ts'
import { askedFor, NOON } from '../../src/store/contract/fixtures.ts'
import type { ApprovalSummary } from '../../src/modules/notify/notice.ts'
import { callPayment } from '../approvals/support/payments.ts'
import type { Person, TestBridgeOptions } from '../approvals/support/test-bridge.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'

const HOUR = 3_600_000
const MANAGERS: PolicyTerms = { deciders: { roles: ['manager'] }, mayDelegate: true }

async function open(policy: PolicyTerms = { mayDelegate: true }, options: TestBridgeOptions = {}) {
  const testBridge = await TestBridge.open({
    ...options,
    isLive: false,
    approvals: { process_payment: policy },
    delegation: { allow: (_from, to) => to !== 'nobody', maxMs: 24 * HOUR },
  })
  const api = (person: Person) =>
    adkApi({
      url: testBridge.url,
      fetch: (url, init) => {
        const headers = new Headers(init?.headers)
        headers.set('x-api-key', person)
        return fetch(url, { ...init, headers })
      },
    })
  return {
    testBridge,
    api,
    pay: async (person: Person = 'hanako') => {
      const text = `${callPayment(50)}[[then]][[say Paid.]]`
      const messages = [{ id: 'u-1', role: 'user', parts: [{ type: 'text', text }] }]
      await testBridge.page(person).post({ id: `chat-${person}`, messages })
      const all = await collect(testBridge.store.approvals.audit({}))
      return all.findLast(({ event }) => event.type === 'requested')?.approvalId ?? ''
    },
    [Symbol.asyncDispose]: () => testBridge[Symbol.asyncDispose](),
  }
}

test('[DG1650] [DG1653] a delegate reads and decides in the place of a person, and the record names both', async () => {
  await using opened = await open()
  const [hanako, taro] = [opened.api('hanako'), opened.api('taro')]
  const id = await opened.pay()
  const given = await hanako.delegate('taro', HOUR)
  expect(await hanako.listDelegations()).toEqual({ given: [given], received: [] })
  expect(await taro.listDelegations()).toEqual({ given: [], received: [given] })
  const [shown, ...rest] = await taro.listDelegated(given.id)
  expect(rest).toEqual([])
  expect(shown).toMatchObject({ id, own: false, mayDecide: true, args: { amount: 50 } })
  expect(shown?.chatId).toBe(undefined)
  expect(await taro.decideDelegated(given.id, id, { approved: true })).not.toBe('requested')
  await expect.poll(() => opened.testBridge.wallet.payments).toHaveLength(1)
  const entries = await collect(opened.testBridge.store.approvals.audit({}))
  const approved = entries.find(({ event }) => event.type === 'approved')
  expect(approved?.event).toMatchObject({ by: 'hanako', delegate: 'taro' })
  const { approval } = await hanako.readApproval(id)
  expect(approval.votes).toMatchObject([{ by: { id: 'hanako' }, delegate: { id: 'taro' } }])
  expect(await taro.listDelegated(given.id)).toEqual([])
})

test('[DG1650] a delegate decides with the roles of the person, also a denial, and a restart keeps the delegation', async () => {
  await using opened = await open(MANAGERS)
  const given = await opened.api('mari').delegate('taro', HOUR)
  const id = await opened.pay()
  await opened.testBridge.restart()
  const taro = opened.api('taro')
  expect(await taro.listDelegated(given.id)).toMatchObject([{ id }])
  const denied = { approved: false, reason: 'Too much.' }
  expect(await taro.decideDelegated(given.id, id, denied)).toBe('denied')
  const entries = await collect(opened.testBridge.store.approvals.audit({}))
  expect(entries.find(({ event }) => event.type === 'denied')?.event).toMatchObject({
    by: 'mari',
    delegate: 'taro',
    reason: 'Too much.',
  })
})

test('[DG1651] without `mayDelegate` in its policy, a call is neither shown to a delegate nor decided by one', async () => {
  await using opened = await open({})
  const id = await opened.pay()
  const given = await opened.api('hanako').delegate('taro', HOUR)
  const taro = opened.api('taro')
  expect(await taro.listDelegated(given.id)).toEqual([])
  const decided = taro.decideDelegated(given.id, id, { approved: true })
  await expect(decided).rejects.toMatchObject({ code: 'unknown-approval' })
  expect(opened.testBridge.wallet.payments).toEqual([])
})

test('[DG1652] a delegation is only for the delegate, is not passed on, and ends when either person says so', async () => {
  await using opened = await open(MANAGERS)
  const [mari, hanako, taro] = [opened.api('mari'), opened.api('hanako'), opened.api('taro')]
  const id = await opened.pay('erin')
  const given = await mari.delegate('hanako', HOUR)
  const further = await hanako.delegate('taro', HOUR)
  const approve = { approved: true }
  // A stranger with the id, and the delegate of a delegate.
  const unknown = { code: 'unknown-record' }
  await expect(taro.decideDelegated(given.id, id, approve)).rejects.toMatchObject(unknown)
  await expect(taro.decideDelegated(further.id, id, approve)).rejects.toMatchObject({
    code: 'unknown-approval',
  })
  await expect(taro.endDelegation(given.id)).rejects.toMatchObject(unknown)
  expect(await taro.listDelegated(further.id)).toEqual([])
  await mari.endDelegation(given.id)
  await expect(hanako.decideDelegated(given.id, id, approve)).rejects.toMatchObject(unknown)
  await taro.endDelegation(further.id)
  expect(await hanako.listDelegations()).toEqual({ given: [], received: [] })
  expect(opened.testBridge.wallet.payments).toEqual([])
})

test('[DG1652] nobody names themselves, a person whom the application does not allow, or somebody for too long', async () => {
  await using opened = await open()
  const hanako = opened.api('hanako')
  const refused = { code: 'not-allowed' }
  await expect(hanako.delegate('hanako', HOUR)).rejects.toMatchObject(refused)
  await expect(hanako.delegate('nobody', HOUR)).rejects.toMatchObject(refused)
  await expect(hanako.delegate('taro', 25 * HOUR)).rejects.toMatchObject(refused)
  await expect(hanako.delegate('taro', 1)).rejects.toMatchObject({ code: 'bad-request' })
  // The same person again replaces the delegation.
  const [one, two] = [await hanako.delegate('taro', HOUR), await hanako.delegate('taro', 2 * HOUR)]
  expect(two.id).toBe(one.id)
  expect((await hanako.listDelegations()).given).toEqual([two])
})

test('[DG1822] the feed of a delegate reports the approvals of the giver, while the delegation lasts', async () => {
  await using opened = await open(MANAGERS)
  const [mari, taro] = [opened.api('mari'), opened.api('taro')]
  const told: unknown[] = []
  const opens = defer()
  const unwatch = taro.watch((event) =>
    event.type === 'open' ? opens.resolve() : told.push(event),
  )
  await opens.promise
  const given = await mari.delegate('taro', HOUR)
  const id = await opened.pay('erin')
  await expect.poll(() => told).toEqual([{ type: 'approval', approvalId: id, state: 'requested' }])
  await mari.endDelegation(given.id)
  await mari.decide(id, { approved: false })
  // An own approval is reported after everything before it.
  const own = await opened.pay('taro')
  await expect.poll(() => JSON.stringify(told)).toContain(own)
  expect(told.filter((event) => JSON.stringify(event).includes(id))).toHaveLength(1)
  unwatch()
})

test('[DG1655] a plan learns of the delegates of the people who decide, if the policy lets them', async () => {
  const planned: ApprovalSummary['deciders'][] = []
  const plan = ({ deciders }: ApprovalSummary) => {
    planned.push(deciders)
    return []
  }
  const notify = { channels: { chat: { send: async () => undefined } }, plan }
  await using opened = await open({ mayDelegate: true }, { notify })
  await opened.api('hanako').delegate('taro', HOUR)
  await opened.pay()
  await expect
    .poll(() => planned)
    .toEqual([{ principals: ['hanako'], roles: [], delegates: ['taro'] }])
})

const [mari, mike, taro]: Decider[] = [
  { id: 'mari', roles: ['manager'] },
  { id: 'mike', roles: ['manager'] },
  { id: 'taro', roles: ['manager'] },
]

type Decision = readonly [by: Decider | undefined, delegate?: string]

/** Decides one after the other. Returns the state, or the first refusal. */
function decideAll(approval: Approval, decisions: readonly Decision[]): string {
  let current = approval
  for (const [by, delegate] of decisions) {
    if (!by) throw new Error('Nobody decides.')
    const means = delegate === undefined ? undefined : byDelegate({ id: 'd', delegate })
    const command = { type: 'decide', by, approved: true, ...(means && { means }) } as const
    const result = nextApproval(current, command, NOON)
    if (isRefusal(result)) return result.refused
    current = result.next
  }
  return current.state.name
}

const ROLE = { principals: [], roles: ['manager'] }
const QUORUM = [{ ...ROLE, count: 2 }]
const STEPS = [
  { ...ROLE, count: 1 },
  { ...ROLE, count: 1 },
]

test.each<[string, readonly Decision[], string]>([
  ['two people, of whom one has a delegate', [[mari], [mike, 'erin']], 'approved'],
  ['a person and their delegate', [[mari], [mari, 'erin']], 'already-voted'],
  ['a delegate and the person', [[mari, 'erin'], [mari]], 'already-voted'],
  [
    'one delegate for two people',
    [
      [mari, 'erin'],
      [mike, 'erin'],
    ],
    'already-counted',
  ],
  ['a delegate, and then as themselves', [[mari, 'taro'], [taro]], 'already-counted'],
  ['a person, and then as a delegate', [[taro], [mari, 'taro']], 'already-counted'],
  [
    'two delegates of each other',
    [
      [mari, 'mike'],
      [mike, 'mari'],
    ],
    'already-counted',
  ],
  [
    'two people, each with a delegate',
    [
      [mari, 'erin'],
      [mike, 'ken'],
    ],
    'approved',
  ],
  ['the requester as a delegate', [[mari, 'hanako']], 'invalid-means'],
])('[DG1654] nobody counts twice: %s', (_what, decisions, outcome) => {
  for (const chain of [QUORUM, STEPS]) {
    const asked = askedFor()
    const approval = { ...asked, terms: { ...asked.terms, chain, mayDelegate: true as const } }
    expect(decideAll(approval, decisions)).toBe(outcome)
    // What is listed for a delegate is what they can decide.
    const listed = decisions
      .slice(0, 1)
      .filter(([by, delegate = '']) => by && mayDecideFor(approval, by, delegate))
    expect(listed).toHaveLength(outcome === 'invalid-means' ? 0 : 1)
  }
})
