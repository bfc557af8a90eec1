import { expect, test } from 'vitest'

import type { Approval, ApprovalTerms } from '../../src/approvals/approval.ts'
import { isRefusal } from '../../src/approvals/approval.ts'
import type { StoredGrant } from '../../src/approvals/grant.ts'
import { nextApproval, type Decision } from '../../src/approvals/next-approval.ts'
import { resolvePolicy, type PolicyTerms } from '../../src/approvals/policy.ts'
import type { UndecidedCall } from '../../src/calls/prior-decisions.ts'
import { byGiving, decideByGrant } from '../../src/modules/grants/next-grant.ts'
import { askedFor, chat, hanako, manager, NOON } from '../../src/store/contract/fixtures.ts'
import { fromExactAmount, toExactAmount, unitOf } from '../../src/shared/exact-amounts.ts'
import { BUDGET } from './support/grants.ts'

const ARGS = { amount: 50, recipient: '花子', currency: 'USD' }
const DECIMALS: PolicyTerms = { grants: [{ budget: { argument: 'amount', max: '1.00' } }] }

async function termsOf(
  policy: PolicyTerms = {},
  args: Readonly<Record<string, unknown>> = ARGS,
): Promise<ApprovalTerms> {
  const call = { chat, toolName: 'process_payment', args }
  const verdict = { grants: [BUDGET], ...policy }
  const resolved = await resolvePolicy({ process_payment: verdict }, call, { required: () => true })
  const { deadlineMs: _, ...terms } = resolved ?? { chain: [], idempotent: false, deadlineMs: 0 }
  return { ...terms, ...(terms.offers && { declaration: 'as listed' }) }
}

/** Approves a call at noon, and chooses an offer. Returns the grant, or the code of the refusal. */
function choose(
  approval: Approval,
  decision: Partial<Decision> = {},
  offerId = approval.terms.offers?.[0]?.id ?? '',
  recent: readonly Approval[] = [],
): StoredGrant | string {
  const means = byGiving({ grantId: 'grant-1', offerId, policyVersion: 'v1', recent })
  const command = { type: 'decide', by: hanako, approved: true, means, ...decision } as const
  const result = nextApproval(approval, command, NOON)
  if (isRefusal(result)) return result.refused
  const { writes } = result
  if (writes?.type !== 'open') throw new Error('Nothing was granted.')
  return { ...writes.grant, state: 'open', uses: 0, spent: 0 }
}

async function grantOf(
  policy: PolicyTerms = {},
  args: Readonly<Record<string, unknown>> = ARGS,
): Promise<StoredGrant> {
  const grant = choose(askedFor({ args, terms: await termsOf(policy, args) }))
  if (typeof grant === 'string') throw new Error(grant)
  return grant
}

async function callOf(
  fields: Partial<UndecidedCall> = {},
  policy: PolicyTerms = {},
): Promise<UndecidedCall> {
  const args = fields.args ?? ARGS
  const terms = await termsOf(policy, args)
  return {
    chat,
    toolCallId: 'call-2',
    toolName: 'process_payment',
    events: [],
    terms,
    ...fields,
    args,
  }
}

const withArgs = (args: object): Promise<UndecidedCall> => callOf({ args: { ...ARGS, ...args } })

const SECOND = 1_000

/** Approvals of a person that were requested some time before noon, each decided after a delay. */
function approvedBefore(
  count: number,
  { requested = 30 * SECOND, took = SECOND, by = 'hanako', ...vote }: Approved = {},
): Approval[] {
  const requestedAt = NOON - requested
  const given = { principalId: by, step: 0, at: requestedAt + took, ...vote }
  return Array.from({ length: count }, () => ({ ...askedFor(), requestedAt, votes: [given] }))
}

interface Approved extends Pick<Approval['votes'][number], 'grant'> {
  readonly requested?: number
  readonly took?: number
  readonly by?: string
}

test.each<[string, Approval[], boolean]>([
  ['ten calls at once', approvedBefore(10), false],
  ['ten calls over a minute ago', approvedBefore(10, { requested: 62 * SECOND }), true],
  ['nine calls at once', approvedBefore(9), true],
  ['ten calls, each after two seconds', approvedBefore(10, { took: 2 * SECOND }), true],
  ['ten calls by a grant', approvedBefore(10, { grant: { id: 'grant-0', at: NOON } }), true],
  ['no call, while another person approves ten', approvedBefore(10, { by: 'taro' }), true],
])('[GR1634] a person who has approved %s', async (_what, recent, isGiven) => {
  const approval = askedFor({
    args: ARGS,
    terms: await termsOf({ grants: [BUDGET, { effect: 'deny' }] }),
  })
  const [approve, deny] = (approval.terms.offers ?? []).map(({ id }) => id)
  expect(typeof choose(approval, {}, approve, recent)).toBe(isGiven ? 'object' : 'string')
  // A grant to deny is always given.
  expect(typeof choose(approval, { approved: false }, deny, recent)).toBe('object')
})

test.each<[string, () => Promise<UndecidedCall>]>([
  ['the same call', () => callOf()],
  ['another amount', () => withArgs({ amount: 1 })],
  ['the whole budget', () => withArgs({ amount: 100 })],
  [
    'arguments in another order',
    () => callOf({ args: { currency: 'USD', recipient: '花子', amount: 5 } }),
  ],
])('[GR1621] a grant covers %s', async (_what, call) => {
  const decision = decideByGrant(await grantOf(), await call(), 'v1')
  expect(decision).toMatchObject({ by: { id: 'hanako' }, approved: true })
})

test.each<[string, () => Promise<UndecidedCall>]>([
  ['another recipient', () => withArgs({ recipient: '太郎' })],
  ['a look-alike recipient', () => withArgs({ recipient: '花⼦' })],
  ['the same letters in another Unicode form', () => withArgs({ recipient: '花子\u0301' })],
  ['an extra argument', () => withArgs({ memo: 'now' })],
  ['a missing argument', () => callOf({ args: { amount: 5, recipient: '花子' } })],
  ['a negative amount', () => withArgs({ amount: -5 })],
  ['no amount', () => withArgs({ amount: 0 })],
  ['an amount that is not finite', () => withArgs({ amount: Number('1e309') })],
  ['an amount that is not a number', () => withArgs({ amount: Number.NaN })],
  ['an amount as text', () => withArgs({ amount: '10' })],
  ['a fraction', () => withArgs({ amount: 0.1 + 0.2 })],
  ['a missing amount', () => withArgs({ amount: undefined })],
  ['more than the budget', () => withArgs({ amount: 101 })],
  ['another chat', () => callOf({ chat: { ...chat, chatId: 'chat-2' } })],
  ['another tool', () => callOf({ toolName: 'process_payments' })],
  [
    'a tool with another declaration',
    async () => callOf({ terms: { ...(await termsOf()), declaration: 'as listed later' } }),
  ],
  [
    'a call in an agent that is used as a tool',
    async () => callOf({ terms: { ...(await termsOf()), path: ['desk'] } }),
  ],
  ['a call that a higher severity applies to', () => callOf({}, { severity: 'low' })],
  ['a severe call', () => callOf({}, { severity: 'high' })],
  [
    'a call that two people decide',
    () => callOf({}, { approvers: 2, deciders: { principals: ['hanako', 'taro'] } }),
  ],
  ['a call that somebody else decides', () => callOf({}, { deciders: { principals: ['taro'] } })],
  ['a call that a role decides', () => callOf({}, { deciders: { roles: ['manager'] } })],
  ['a call with a smaller offer', () => callOf({}, { grants: [{ ...BUDGET, maxUses: 1 }] })],
  ['a call without an offer', () => callOf({}, { grants: [] })],
  [
    'a call with a required preview',
    () => callOf({}, { preview: () => ({}), requirePreview: true }),
  ],
  ['a value that could mislead', () => withArgs({ recipient: '花子\u202E' })],
])('[GR1621] a grant does not cover %s', async (_what, call) => {
  expect(decideByGrant(await grantOf(), await call(), 'v1')).toBe(undefined)
})

test('[GR1621] a grant ends with the version of the policy, its uses and its budget', async () => {
  const grant = await grantOf()
  const call = await callOf()
  expect(decideByGrant(grant, call, 'v2')).toBe(undefined)
  expect(decideByGrant(grant, call, undefined)).toBe(undefined)
  expect(decideByGrant({ ...grant, uses: 5 }, call, 'v1')).toBe(undefined)
  expect(decideByGrant({ ...grant, spent: 51 }, call, 'v1')).toBe(undefined)
  expect(decideByGrant({ ...grant, spent: 50 }, call, 'v1')).toMatchObject({ approved: true })
  for (const state of ['revoked', 'suspended', 'replaced'] as const)
    expect(decideByGrant({ ...grant, state }, call, 'v1')).toBe(undefined)
})

test('[GR1621] only arguments that the offer names may differ, and a grant of a person covers all chats', async () => {
  const policy: PolicyTerms = { grants: [{ free: ['amount', 'memo'], scope: 'person' }] }
  const grant = await grantOf(policy)
  const elsewhere = { chat: { ...chat, chatId: 'chat-2' }, args: { ...ARGS, amount: 7, memo: 'x' } }
  expect(grant.pinned).toEqual({ recipient: '花子', currency: 'USD' })
  expect(decideByGrant(grant, await callOf(elsewhere, policy), 'v1')).toMatchObject({
    approved: true,
  })
  expect(decideByGrant(grant, await callOf({ args: { ...ARGS, to: 'x' } }, policy), 'v1')).toBe(
    undefined,
  )
})

test('[GR1622] amounts are summed exactly: 0.10 and 0.20 are 0.30', async () => {
  const unit = unitOf('1.00')
  if (!unit) throw new Error('This is an amount.')
  const sum = ['0.10', '0.2'].reduce((total, text) => total + (toExactAmount(text, unit) ?? 0), 0)
  expect(fromExactAmount(sum, unit)).toBe('0.30')
  const grant = await grantOf(DECIMALS, { amount: '0.10' })
  const cover = async (amount: unknown, spent = 0): Promise<boolean> =>
    decideByGrant({ ...grant, spent }, await callOf({ args: { amount } }, DECIMALS), 'v1') !==
    undefined
  expect(await Promise.all(['0.10', '1', '1.00', '0.70'].map((text) => cover(text)))).toEqual([
    true,
    true,
    true,
    true,
  ])
  const refused = ['1.01', '0.001', '-0.10', '.5', '1e-2', '01.0', ' 1', '１', '', 0.1, 1, null]
  expect(await Promise.all(refused.map((text) => cover(text)))).toEqual(refused.map(() => false))
  expect([await cover('0.30', 70), await cover('0.31', 70)]).toEqual([true, false])
})

test.each<[string, () => Promise<string | StoredGrant>]>([
  [
    'of another approval',
    async () => choose(askedFor({ terms: await termsOf() }), {}, 'of another'),
  ],
  ['with a denial', async () => choose(askedFor({ terms: await termsOf() }), { approved: false })],
  [
    'with edited arguments',
    async () => choose(askedFor({ terms: await termsOf() }), { editedArgs: ARGS }),
  ],
  [
    'to a severe call',
    async () => {
      const { offers } = await termsOf()
      const terms = { ...(await termsOf({ severity: 'high' })), ...(offers && { offers }) }
      return choose(askedFor({ terms }))
    },
  ],
  [
    'to a call with a value that could mislead',
    async () => {
      const args = { ...ARGS, recipient: '花子\u202E' }
      return choose(askedFor({ args, terms: await termsOf({}, args) }))
    },
  ],
  [
    'to a call of an agent that is used as a tool',
    async () => choose(askedFor({ terms: { ...(await termsOf()), path: ['desk'] } })),
  ],
  [
    'by somebody else than the owner',
    async () => {
      const deciders = { principals: ['hanako', manager.id] }
      return choose(askedFor({ terms: await termsOf({ deciders }) }), { by: manager })
    },
  ],
])('[GR1623] an offer %s cannot be chosen', async (_what, chosen) => {
  expect(await chosen()).toBe('not-offered')
})

test.each<[string, PolicyTerms]>([
  ['severe calls', { severity: 'high' }],
  ['two approvers', { approvers: 2, deciders: { principals: ['hanako', 'taro'] } }],
  ['a chain', { chain: [{ principals: ['hanako'] }, { principals: ['taro'] }] }],
  ['roles', { deciders: { roles: ['manager'] } }],
  ['a required preview', { preview: () => ({}), requirePreview: true }],
])('[GR1623] nothing is offered for %s', async (_what, policy) => {
  expect((await termsOf(policy)).offers).toBe(undefined)
})

test.each<[string, NonNullable<PolicyTerms['grants']>[number]]>([
  ['longer than 8 hours', { expiresMs: 8 * 3_600_000 + 1 }],
  ['more than 100 uses', { maxUses: 101 }],
  ['a fraction as the budget', { budget: { argument: 'amount', max: 0.5 } }],
  ['a budget that is not exact', { budget: { argument: 'amount', max: 1e300 } }],
  ['text that is no amount as the budget', { budget: { argument: 'amount', max: 'a lot' } }],
])('[GR1624] an offer with %s is invalid', async (_what, offer) => {
  const errors: unknown[] = []
  const call = { chat, toolName: 'process_payment', args: ARGS }
  const policy = { process_payment: { grants: [offer] } }
  const onError = (error: unknown): void => void errors.push(error)
  const terms = await resolvePolicy(policy, call, { required: () => false, onError })
  expect([terms?.offers, errors.length]).toEqual([undefined, 1])
})
