import { expect, test } from 'vitest'

import type { Approval, ApprovalStateName } from '../../src/approvals/approval.ts'
import { isRefusal } from '../../src/approvals/approval.ts'
import { maySee, type Decider } from '../../src/approvals/deciders.ts'
import { argsToRun, nextApproval, type ApprovalCommand } from '../../src/approvals/next-approval.ts'
import {
  NOON,
  after,
  approve,
  askedFor,
  claimOf,
  deny,
  executive,
  executiveStep,
  hanako,
  manager,
  managerStep,
  otherManager,
  ownerStep,
  step,
  stranger,
  termsOf,
} from './support/fixture.ts'

const asked = askedFor()
const idempotent = askedFor({ terms: { ...termsOf(), idempotent: true } })
const succeed: ApprovalCommand = { type: 'succeed', worker: 'worker-1', output: { ok: true } }
const fail: ApprovalCommand = { type: 'fail', worker: 'worker-1', error: 'no money' }
const lose: ApprovalCommand = { type: 'lose', worker: 'worker-1' }
const cancel: ApprovalCommand = { type: 'cancel', reason: 'a new message came' }
const expire: ApprovalCommand = { type: 'expire' }

const commands: Record<string, ApprovalCommand> = {
  approve: approve(hanako),
  deny: deny(hanako),
  withdraw: { type: 'withdraw', by: hanako },
  expire,
  cancel,
  claim: claimOf(asked),
  succeed,
  fail,
  lose,
}

const lives: Record<ApprovalStateName, Approval> = {
  requested: asked,
  approved: after(asked, approve(hanako)),
  denied: after(asked, deny(hanako)),
  expired: step(asked, expire, asked.deadline).next,
  cancelled: after(asked, cancel),
  executing: after(asked, approve(hanako), claimOf(asked)),
  succeeded: after(asked, approve(hanako), claimOf(asked), succeed),
  failed: after(asked, approve(hanako), claimOf(asked), fail),
  unknown: after(asked, approve(hanako), claimOf(asked), lose),
}

const table: Record<ApprovalStateName, Record<string, string>> = {
  requested: {
    approve: 'approved',
    deny: 'denied',
    withdraw: 'not-voted',
    expire: 'not-due',
    cancel: 'cancelled',
    claim: 'not-approved',
    succeed: 'not-approved',
    fail: 'not-approved',
    lose: 'not-approved',
  },
  approved: {
    approve: 'already-decided',
    deny: 'already-decided',
    withdraw: 'already-decided',
    expire: 'already-decided',
    cancel: 'cancelled',
    claim: 'executing',
    succeed: 'already-decided',
    fail: 'already-decided',
    lose: 'already-decided',
  },
  executing: {
    approve: 'already-decided',
    deny: 'already-decided',
    withdraw: 'already-decided',
    expire: 'already-decided',
    cancel: 'already-decided',
    claim: 'already-decided',
    succeed: 'succeeded',
    fail: 'failed',
    lose: 'unknown',
  },
  denied: every('already-decided'),
  succeeded: every('already-decided'),
  failed: every('already-decided'),
  unknown: every('already-decided'),
  expired: every('expired'),
  cancelled: every('cancelled'),
}

function every(word: string): Record<string, string> {
  return Object.fromEntries(Object.keys(commands).map((name) => [name, word]))
}

function answer(approval: Approval, command: ApprovalCommand, now = NOON + 1_000): string {
  const result = nextApproval(approval, command, now)
  return isRefusal(result) ? result.refused : result.next.state.name
}

test.each(Object.entries(table))('[LG3] %s changes as the state machine says', (name, answers) => {
  // `table` has a line for every state.
  const approval = lives[name as ApprovalStateName]
  expect(approval.state.name).toBe(name)
  const given = Object.entries(commands).map(([word, command]) => [word, answer(approval, command)])
  expect(Object.fromEntries(given)).toEqual(answers)
})

test('[LG3] a transition only changes state, votes and version, and writes one audit entry for that version', () => {
  const { next, entry } = step(asked, approve(hanako))
  expect({ ...next, state: asked.state, votes: asked.votes, version: 0 }).toEqual(asked)
  expect([next.version, entry.version, entry.at]).toEqual([1, 1, NOON + 1_000])
})

test('[AP6] a decision at the deadline is late, even before the sweep', () => {
  expect(answer(asked, approve(hanako), asked.deadline - 1)).toBe('approved')
  expect(answer(asked, approve(hanako), asked.deadline)).toBe('expired')
  expect(answer(asked, deny(hanako), asked.deadline + 1)).toBe('expired')
})

test('[AP6] a decision must be stored before the deadline, other transitions need not', () => {
  expect(step(asked, approve(hanako)).before).toBe(asked.deadline)
  expect(step(asked, deny(hanako)).before).toBe(asked.deadline)
  expect(step(asked, cancel).before).toBeUndefined()
  expect(step(lives.approved, claimOf(asked)).before).toBeUndefined()
})

test('[LG3] only pending approvals expire, and not before the deadline', () => {
  expect(answer(asked, expire, asked.deadline - 1)).toBe('not-due')
  expect(answer(asked, expire, asked.deadline)).toBe('expired')
  expect(answer(lives.approved, expire, asked.deadline + 1)).toBe('already-decided')
  expect(answer(lives.approved, claimOf(asked), asked.deadline + 1)).toBe('executing')
})

test('[AP17] every step needs its number of different people, in order', () => {
  const two = askedFor({ terms: termsOf({ ...managerStep, count: 2 }, executiveStep) })
  const once = after(two, approve(manager))
  expect([once.state.name, answer(once, approve(manager))]).toEqual(['requested', 'already-voted'])
  expect(answer(once, approve(executive))).toBe('not-allowed')
  const twice = after(once, approve(otherManager))
  expect([twice.state.name, answer(twice, claimOf(two))]).toEqual(['requested', 'not-approved'])
  const both = after(twice, approve(executive))
  expect(both.state.name).toBe('approved')
  expect(both.votes.map(({ principalId, step: at }) => [principalId, at])).toEqual([
    [manager.id, 0],
    [otherManager.id, 0],
    [executive.id, 1],
  ])
})

test('[AP17] a person votes once, even with the roles of several steps', () => {
  const both = { id: 'boss', roles: ['manager', 'executive'] }
  const chain = askedFor({ terms: termsOf(managerStep, executiveStep) })
  const once = after(chain, approve(both))
  expect(answer(once, approve(both))).toBe('already-voted')
  expect(answer(once, deny(both))).toBe('already-voted')
})

test('[AP17] the first denial by an eligible person decides', () => {
  const two = askedFor({ terms: termsOf({ ...managerStep, count: 2 }) })
  const denied = after(two, approve(manager), deny(otherManager, '高すぎる'))
  expect(denied.state).toEqual({
    name: 'denied',
    at: NOON + 1_000,
    by: otherManager.id,
    reason: '高すぎる',
  })
})

test('[AP17] a person of a later step cannot deny yet', () => {
  const chain = askedFor({ terms: termsOf(managerStep, executiveStep) })
  expect(answer(chain, deny(executive))).toBe('not-allowed')
})

test('[AP5] arguments may be edited only if one vote decides', () => {
  const edit: ApprovalCommand = {
    type: 'decide',
    by: hanako,
    approved: true,
    editedArgs: { amount: 40 },
  }
  const edited = after(asked, edit)
  expect(argsToRun(edited)).toEqual({ amount: 40 })
  expect(edited.args).toEqual(asked.args)
  const running = step(edited, claimOf(asked))
  expect(running.entry.event).toEqual({ type: 'started', worker: 'worker-1', args: { amount: 40 } })
  expect(argsToRun(after(running.next, succeed))).toEqual({ amount: 40 })
  const byManager = { ...edit, by: manager }
  const two = askedFor({ terms: termsOf({ ...managerStep, count: 2 }) })
  const chain = askedFor({ terms: termsOf(managerStep, executiveStep) })
  expect([answer(two, byManager), answer(chain, byManager)]).toEqual([
    'not-editable',
    'not-editable',
  ])
  const last = after(chain, approve(otherManager))
  expect(answer(last, { ...edit, by: executive })).toBe('not-editable')
})

test('[AP25] a stranger gets unknown-approval, an owner who may not decide gets not-allowed', () => {
  const forManager = askedFor({ terms: termsOf(managerStep) })
  for (const approval of [forManager, after(forManager, approve(manager))]) {
    expect(answer(approval, approve(stranger))).toBe('unknown-approval')
    expect(answer(approval, approve(hanako))).toBe('not-allowed')
  }
  expect([maySee(forManager, hanako), maySee(forManager, stranger)]).toEqual([true, false])
  expect([maySee(forManager, manager), maySee(forManager, executive)]).toEqual([true, false])
})

test('[AP25] a principal with the name of a role does not have the role', () => {
  const forManager = askedFor({ terms: termsOf(managerStep) })
  expect(answer(forManager, approve({ id: 'manager', roles: [] }))).toBe('unknown-approval')
  const forHanako = askedFor({ terms: termsOf(ownerStep) })
  expect(answer(forHanako, approve({ id: 'x', roles: ['hanako'] }))).toBe('unknown-approval')
})

test('[AP25] a chain without people cannot be decided', () => {
  const nobody = { count: 1, principals: [], roles: [] }
  expect(answer(askedFor({ terms: termsOf(nobody) }), approve(hanako))).toBe('not-allowed')
  expect(answer(askedFor({ terms: { chain: [], idempotent: false } }), approve(hanako))).toBe(
    'not-allowed',
  )
})

test('[AP13] a repeated or contradicting decision gets the outcome', () => {
  const { approved } = lives
  const refusal = { refused: 'already-decided', state: approved.state }
  expect(nextApproval(approved, approve(hanako), NOON + 2_000)).toEqual(refusal)
  expect(nextApproval(approved, deny(hanako), NOON + 2_000)).toEqual(refusal)
})

test('[LG19] only the call that was shown can be claimed', () => {
  const claim = { toolCallId: 'call-1', toolName: asked.toolName, digest: asked.digest }
  for (const change of [
    { toolCallId: 'call-2' },
    { toolName: 'get_weather' },
    { digest: askedFor({ args: { amount: 51, recipient: '花子' } }).digest },
  ]) {
    const other: ApprovalCommand = { type: 'claim', worker: 'w', ...claim, ...change }
    expect(answer(lives.approved, other)).toBe('mismatch')
  }
})

test('[LG19] a record whose arguments do not match its digest can be neither decided nor run', () => {
  const forged = { ...asked, args: { amount: 50_000, recipient: '花子' } }
  expect(answer(forged, approve(hanako))).toBe('mismatch')
  expect(answer({ ...lives.approved, args: forged.args }, claimOf(asked))).toBe('mismatch')
})

test('[LG13] only the worker that runs the call records its outcome', () => {
  const other = { worker: 'worker-2' }
  expect(answer(lives.executing, { ...succeed, ...other })).toBe('not-approved')
  expect(answer(lives.executing, { ...lose, ...other })).toBe('not-approved')
  expect(answer(lives.executing, claimOf(asked, 'worker-2'))).toBe('already-decided')
})

test('[LG14] the call of a lost worker is unknown, or approved again if the tool is idempotent', () => {
  expect(lives.unknown.state).toEqual({ name: 'unknown', at: NOON + 1_000 })
  const edit: ApprovalCommand = {
    type: 'decide',
    by: hanako,
    approved: true,
    editedArgs: { amount: 1 },
  }
  const lost = after(idempotent, edit, claimOf(idempotent), lose)
  expect(lost.state.name).toBe('approved')
  const again = after(lost, claimOf(idempotent, 'worker-2'))
  expect(argsToRun(again)).toEqual({ amount: 1 })
  expect(answer(again, succeed)).toBe('not-approved')
})

test('[LG3] a running call cannot be cancelled', () => {
  expect(answer(lives.approved, cancel)).toBe('cancelled')
  expect(answer(lives.executing, cancel)).toBe('already-decided')
})

const back = (by: Decider): ApprovalCommand => ({ type: 'withdraw', by })

test('[AP142] a vote can be withdrawn while others have to decide, and given again', () => {
  const two = askedFor({ terms: termsOf({ ...managerStep, count: 2 }) })
  const once = after(two, approve(manager))
  const { next, entry, before } = step(once, back(manager))
  expect([next.votes, next.state.name, next.version]).toEqual([[], 'requested', 2])
  expect(entry.event).toEqual({ type: 'withdrawn', by: manager.id, step: 0, dropped: [] })
  expect(before).toBe(two.deadline)
  expect(answer(next, back(manager))).toBe('not-voted')
  expect(answer(once, back(otherManager))).toBe('not-voted')
  expect(answer(once, back(stranger))).toBe('unknown-approval')
  expect(answer(once, back(manager), two.deadline)).toBe('expired')
  const again = after(next, approve(manager), approve(otherManager))
  expect(again.state.name).toBe('approved')
  expect(answer(again, back(manager))).toBe('already-decided')
  // A person who has lost the role since can still withdraw the vote.
  expect(answer(once, back({ ...manager, roles: [] }))).toBe('requested')
})

test('[AP142] withdrawing a vote drops the votes of later steps', () => {
  const executives = { ...executiveStep, count: 2 }
  const chain = askedFor({ terms: termsOf(managerStep, executives) })
  const voted = after(chain, approve(manager), approve(executive))
  const { next, entry } = step(voted, { type: 'withdraw', by: manager })
  expect(next.votes).toEqual([])
  expect(entry.event).toMatchObject({ dropped: [executive.id] })
  expect(answer(next, approve(executive))).toBe('not-allowed')
})

test('[AP420] a question takes its answer as a payload, and its arguments cannot be edited', () => {
  const question = askedFor({ terms: { ...termsOf(), kind: 'input', schema: { type: 'string' } } })
  const answered = after(question, {
    type: 'decide',
    by: hanako,
    approved: true,
    payload: 'Nara',
  })
  expect(answered.state).toMatchObject({ name: 'approved', payload: 'Nara' })
  const edited = nextApproval(
    question,
    { type: 'decide', by: hanako, approved: true, editedArgs: {} },
    NOON,
  )
  expect(edited).toEqual({ refused: 'not-editable' })
  expect(after(question, deny(hanako)).state.name).toBe('denied')
})
