import type { Approval } from '../../../src/approvals/approval.ts'
import type { AuditRecord } from '../../../src/approvals/audit-entry.ts'
import { isRefusal } from '../../../src/approvals/approval.ts'
import {
  editedArgs,
  type History,
  LEASE_MS,
  people,
  type Person,
  QUOTA,
  rules,
  shownArgs,
} from './plan.ts'
import type { LedgerSimulation } from './simulation.ts'
import { NEXT, stateAfter } from './state-machine.ts'

/** A violated invariant. */
class Violation extends Error {
  override readonly name = 'Violation'
}

export interface Tally {
  answered: number
  starts: number
  accepted: number
  refused: number
  withdrawn: number
  readonly ends: Map<string, number>
}

/** Checks the invariants of a history, independently of the code under test. Returns the violations, each with the name of its invariant. */
export async function checkHistory(simulation: LedgerSimulation, tally: Tally): Promise<string[]> {
  const { history } = simulation
  const audit: AuditRecord[] = []
  for await (const record of simulation.audit()) audit.push(record)
  const ends = await simulation.finalStates()
  const checks = [
    () => checkQuota(history),
    () => checkDecisions(simulation),
    () => checkWithdrawals(simulation),
  ]
  for (const [call, end] of ends.entries()) {
    const id = simulation.approvalId(call)
    const life = history.commits.filter(({ approval }) => approval.id === id)
    const own = audit.filter(({ approvalId }) => approvalId === id)
    checks.push(
      () => checkStarts(simulation, call, own),
      () => checkEnd(simulation, call, end),
      () => checkKept(simulation, end),
      () => checkLife(life),
      () => checkLosses(history, id),
      () => checkAudit(life, own),
      () => checkQuestion(simulation, call, own),
    )
    if (end?.terms.kind && end.state.name === 'succeeded') tally.answered += 1
    if (end) tally.ends.set(end.state.name, (tally.ends.get(end.state.name) ?? 0) + 1)
  }
  tally.starts += history.starts.length
  const accepted = history.decisions.filter(({ result }) => !isRefusal(result)).length
  tally.accepted += accepted
  tally.refused += history.decisions.length - accepted
  tally.withdrawn += history.withdrawals.filter(({ result }) => !isRefusal(result)).length
  return checks.flatMap(violationsOf)
}

function violationsOf(check: () => void): string[] {
  try {
    check()
    return []
  } catch (error) {
    if (error instanceof Violation) return [error.message]
    throw error
  }
}

type Commit = History['commits'][number]

/** An approval changes version by version as the state machine says, ends once, and does not expire early. */
function checkLife(life: readonly Commit[]): void {
  for (const [index, { at, latest, approval }] of life.entries()) {
    const { state, deadline, terms } = approval
    const before = life[index - 1]?.approval
    must(approval.version === index, 'lifecycle: a version is skipped or taken twice')
    if (before) {
      const isRetry =
        terms.idempotent && before.state.name === 'executing' && state.name === 'approved'
      must(
        isRetry || NEXT[before.state.name].includes(state.name),
        `lifecycle: ${before.state.name} became ${state.name}`,
      )
    }
    if (state.name === 'expired') must(latest >= deadline, 'expiry: expired before the deadline')
    if (
      (state.name === 'approved' && before?.state.name === 'requested') ||
      state.name === 'denied'
    )
      must(at < deadline, 'authorised: decided after the deadline')
  }
}

/** A call is taken from a worker only after its lease has expired, whatever the wall clock, and never by the worker itself. */
function checkLosses({ commits, signs }: History, id: string): void {
  let claim: Commit | undefined
  for (const [index, commit] of commits.entries()) {
    if (commit.approval.id !== id) continue
    const { name } = commit.approval.state
    if (claim?.approval.state.name === 'executing' && (name === 'unknown' || name === 'approved')) {
      const { worker } = claim.approval.state
      const given = signs.filter((sign) => sign.worker === worker && sign.commits <= index)
      const lastSign = Math.max(claim.leaseAt, ...given.map(({ leaseAt }) => leaseAt))
      must(
        commit.leaseAt - lastSign >= LEASE_MS,
        'lease: a call was taken from a worker that lives',
      )
      must(commit.by !== worker, 'own-call: a worker judged what it runs itself')
    }
    claim = name === 'executing' ? commit : undefined
  }
}

/** The audit record contains one entry for each transition. */
function checkAudit(life: readonly Commit[], audit: readonly AuditRecord[]): void {
  must(audit.length === life.length, 'the audit record has other transitions than the life')
  for (const [index, { version, event }] of audit.entries()) {
    must(version === index, 'the audit record skips or repeats a version')
    const { name } = life[index]?.approval.state ?? { name: 'none' }
    must(
      stateAfter(event) === name,
      `the audit record says ${event.type} where the state is ${name}`,
    )
  }
}

/** A call that starts was approved by the right people, for this call, and starts once. */
function checkStarts(
  simulation: LedgerSimulation,
  call: number,
  own: readonly AuditRecord[],
): void {
  const { starts, decisions } = simulation.history
  const retries = own.filter(({ event }) => event.type === 'lost' && event.becomes === 'approved')
  const started = starts.filter((start) => start.call === call)
  const isIdempotent = simulation.plans[call]?.idempotent === true
  must(
    started.length <= 1 + (isIdempotent ? retries.length : 0),
    'once: a call started more than once',
  )
  for (const { approvalId, args } of started) {
    must(
      approvalId === simulation.approvalId(call),
      'authorised: a call started by the approval of another',
    )
    const yes = own.filter(({ event }) => event.type === 'approved')
    must(yes.length === 1, 'authorised: a call started without one accepted approval')
    const rule = rules[simulation.plans[call]?.rule ?? 'owner']
    const voters = standingVoters(own)
    must(new Set(voters).size === voters.length, 'authorised: one person voted twice')
    must(
      voters.length === rule.deciders.length,
      'authorised: not the number of people who must approve',
    )
    const [event] = yes.map((record) => record.event)
    const isEdited = event?.type === 'approved' && event.editedArgs !== undefined
    const isAskedFor = decisions.length === 0 || !isEdited || rule.deciders.length === 1
    must(isAskedFor, 'decision: one of several people edited the arguments')
    const isApproval = simulation.plans[call]?.kind === undefined
    must(!isEdited || isApproval, 'decision: the arguments of a question were edited')
    const expected = isEdited ? editedArgs(call) : shownArgs(call)
    must(
      JSON.stringify(args) === JSON.stringify(expected),
      'authorised: other arguments ran than were shown',
    )
  }
}

/** A question has one answer, which the agent receives and which no crash makes unknown. Only a credential answers a sign-in. */
function checkQuestion(
  simulation: LedgerSimulation,
  call: number,
  own: readonly AuditRecord[],
): void {
  const kind = simulation.plans[call]?.kind
  if (kind === undefined) return
  const answers = own.flatMap(({ event }) => (event.type === 'approved' ? [event] : []))
  must(answers.length <= 1, 'question: a question was answered twice')
  const given = simulation.history.decisions.filter((decision) => decision.call === call)
  const types = own.map(({ event }) => event.type)
  if (kind === 'sign-in') {
    // The server may have crashed before it knew that its decision was stored.
    const isKnown = given.some(
      ({ result }) => !isRefusal(result) && result.state.name === 'approved',
    )
    const withCredential = given.some(({ approved, edited }) => approved && edited)
    must(!isKnown || withCredential, 'question: a sign-in was answered without a credential')
    const refused = given.filter(({ approved, edited }) => approved && !edited)
    must(
      refused.every(({ result }) => isRefusal(result)),
      'question: a client answered a sign-in',
    )
    return
  }
  must(!types.includes('failed'), 'question: an answer failed')
  must(
    own.every(({ event }) => event.type !== 'lost' || event.becomes === 'approved'),
    'question: an answer became unknown',
  )
  for (const { event } of own) {
    if (event.type !== 'succeeded') continue
    const [answer] = answers
    must(answer !== undefined, 'question: the agent received an answer that nobody gave')
    must(
      JSON.stringify(event.output) === JSON.stringify(answer?.payload),
      'question: the agent received another answer',
    )
  }
  const isStarted = simulation.history.starts.some(
    ({ approvalId }) => approvalId === simulation.approvalId(call),
  )
  must(!isStarted, 'question: a tool ran for an answer')
}

/** Every requested call has one outcome, and it is what happened. */
function checkEnd(simulation: LedgerSimulation, call: number, end: Approval | undefined): void {
  const { history } = simulation
  const asked = history.requests.some(
    (request) => request.call === call && !isRefusal(request.result),
  )
  must(!asked || end !== undefined, 'lifecycle: an approval that was asked is gone')
  if (!end) return
  const { name } = end.state
  must(NEXT[name].length === 0, `lifecycle: a call ends as ${name}`)
  const started = history.starts.filter((start) => start.approvalId === end.id).length
  const isAnswered = end.terms.kind === 'input'
  if ((name === 'succeeded' || name === 'failed') && !isAnswered)
    must(started >= 1, `outcome: ${name}, but it did not run`)
  if (name === 'denied' || name === 'expired') must(started === 0, `not-run: ${name}, but it ran`)
  if (name === 'cancelled' && !end.terms.idempotent)
    must(started === 0, 'not-run: cancelled, but it ran')
}

/** The outcome follows from the accepted and stored decision. */
function checkKept({ history }: LedgerSimulation, end: Approval | undefined): void {
  if (!end) return
  const { name } = end.state
  const isApproved = history.decisions.some(
    ({ result }) => !isRefusal(result) && result.id === end.id && result.state.name === 'approved',
  )
  if (isApproved)
    must(name !== 'expired' && name !== 'denied', `kept: an accepted approval ends as ${name}`)
  const lastLife = history.commits.filter(({ approval }) => approval.id === end.id).at(-1)?.approval
  must(
    lastLife?.version === end.version && lastLife.state.name === name,
    'lifecycle: the stored end is another',
  )
}

/** One decision is accepted and stays, the others get its outcome, and strangers learn nothing. */
function checkDecisions(simulation: LedgerSimulation): void {
  const { decisions, commits } = simulation.history
  for (const { call, who, approved, answeredAt, result } of decisions) {
    const id = simulation.approvalId(call)
    const life = commits
      .filter(({ approval }) => approval.id === id)
      .map(({ approval }) => approval)
    const { deciders } = rules[simulation.plans[call]?.rule ?? 'owner']
    if (!isRefusal(result)) {
      must(mayDecide(deciders, who), `authorised: ${who} decided`)
      must(
        !approved || result.votes.some((vote) => vote.step < deciders.length),
        'decision: accepted without a vote',
      )
      const kept = life.some(
        ({ version, state }) => version === result.version && state.name === result.state.name,
      )
      must(kept, 'kept: an acknowledged decision is not kept')
      const answers = decisions.filter((other) => other.call === call && !isRefusal(other.result))
      const versions = answers.map((other) => (isRefusal(other.result) ? -1 : other.result.version))
      must(
        new Set(versions).size === versions.length,
        'decision: two decisions were accepted as one',
      )
      const final = answers.filter(
        (other) => !isRefusal(other.result) && other.result.state.name !== 'requested',
      )
      must(final.length <= 1, 'decision: two decisions were accepted')
    } else if (who === 'stranger')
      must(result.refused === 'unknown-approval', 'not-run: a stranger learned of it')
    else if (who === 'hanako' && !mayDecide(deciders, who))
      must(
        ['not-allowed', 'unknown-approval'].includes(result.refused),
        'not-run: an owner decided for others',
      )
    else if (result.refused === 'expired') {
      const [asked] = life
      must(
        asked !== undefined && answeredAt >= asked.deadline,
        'expiry: rejected as late before the deadline',
      )
    } else if (result.refused === 'already-decided') {
      must(
        life.some(({ state }) => state.name === result.state.name),
        'decision: received an outcome that never occurred',
      )
    }
  }
}

/** The people with a vote that is not withdrawn, in vote order. */
function standingVoters(audit: readonly AuditRecord[]): string[] {
  let voters: string[] = []
  for (const { event } of audit) {
    if (event.type === 'voted' || event.type === 'approved') voters.push(event.by)
    if (event.type === 'withdrawn')
      voters = voters.filter((voter) => voter !== event.by && !event.dropped.includes(voter))
  }
  return voters
}

/** Only its owner withdraws a vote, while nothing is decided. Strangers learn nothing. */
function checkWithdrawals(simulation: LedgerSimulation): void {
  const { history } = simulation
  for (const { call, who, result } of history.withdrawals) {
    const by = people[who].id
    if (isRefusal(result)) {
      if (who === 'stranger')
        must(result.refused === 'unknown-approval', 'lease: a stranger learned of it')
      continue
    }
    must(result.state.name === 'requested', 'lease: a vote was taken back after the decision')
    must(!result.votes.some((vote) => vote.principalId === by), 'lease: the vote is still there')
    const life = history.commits.filter(
      ({ approval }) => approval.id === simulation.approvalId(call),
    )
    const before = life[result.version - 1]?.approval
    must(before?.state.name === 'requested', 'lease: a decision was undone')
    const vote = before?.votes.find(({ principalId }) => principalId === by)
    must(vote !== undefined, 'lease: a vote was taken back that was not given')
    const late = result.votes.filter(({ step }) => step > (vote?.step ?? 0))
    must(late.length === 0, 'lease: a vote stands that was given on the strength of another')
  }
}

function mayDecide(deciders: readonly (readonly Person[])[], who: Person): boolean {
  return deciders.some((step) => step.includes(who))
}

/** The quota is respected. */
function checkQuota({ pendings }: History): void {
  for (const { ofChat, ofPrincipal } of pendings)
    must(ofChat <= QUOTA.perChat && ofPrincipal <= QUOTA.perPrincipal, 'quota: too many wait')
}

function must(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new Violation(rule)
}
