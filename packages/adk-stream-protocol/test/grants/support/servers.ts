import { randomUUID } from 'node:crypto'

import type { Approval, ApprovalTerms } from '../../../src/approvals/approval.ts'
import { Ledger } from '../../../src/approvals/ledger.ts'
import { resolvePolicy } from '../../../src/approvals/policy.ts'
import type { PriorDecisions } from '../../../src/calls/prior-decisions.ts'
import { openGrants } from '../../../src/modules/grants/grants-module.ts'
import { byGiving, endGrant } from '../../../src/modules/grants/next-grant.ts'
import { chat, hanako, requestOf, taken } from '../../../src/store/contract/fixtures.ts'
import type { Store } from '../../../src/store/store.ts'
import { digestDeclaration } from '../../../src/calls/arguments-schema.ts'
import { PlanTool } from '../../../src/modules/grants/plan-tool.ts'
import { giveGrants } from '../../../src/modules/grants/plans.ts'
import { tool } from '../../support/agents.ts'
import type { PolicyTerms } from '../../../src/approvals/policy.ts'

/** The part of a server that gives and uses grants. */
export interface GrantServer {
  readonly ledger: Ledger
  readonly store: Pick<Store, 'approvals' | 'grants'>
  readonly prior: PriorDecisions
}

export function openServer(
  store: Pick<Store, 'approvals' | 'grants'>,
  worker?: string,
): GrantServer {
  const options = { store: store.approvals, appName: chat.appName, policyVersion: 'v1' }
  const quota = { perChat: 1_000, perPrincipal: 1_000 }
  const ledger = new Ledger({ ...options, quota, ...(worker !== undefined && { worker }) })
  const module = openGrants({
    appName: chat.appName,
    agents: new Map(),
    approvals: {},
    onError: () => undefined,
  })
  // It reads only the grants of the store.
  const prior = module.openPrior?.(store as Store)
  if (!prior) throw new Error('The store has no grants.')
  return { ledger, store, prior }
}

const RECIPIENT = { recipient: '花子' }

export async function termsOf(policy: PolicyTerms): Promise<ApprovalTerms> {
  const call = { chat, toolName: 'process_payment', args: { amount: 1, ...RECIPIENT } }
  const resolved = await resolvePolicy({ process_payment: policy }, call, { required: () => true })
  if (!resolved) throw new Error('The call needs approval.')
  const { deadlineMs: _, ...terms } = resolved
  return { ...terms, declaration: 'as listed' }
}

/** Requests a call, approves it, and gives the first grant that its terms offer. */
export async function giveGrant(
  { ledger }: Pick<GrantServer, 'ledger'>,
  terms: ApprovalTerms,
  id = 'given',
): Promise<void> {
  const args = { amount: 1, ...RECIPIENT }
  taken(await ledger.request(requestOf({ id, toolCallId: id, args, terms })))
  const { policyVersion } = ledger
  const offerId = terms.offers?.[0]?.id ?? ''
  // A test gives more grants in a minute than a person may.
  const means = byGiving({ grantId: randomUUID(), offerId, policyVersion, recent: [] })
  taken(await ledger.decide(id, { by: hanako, approved: true, means }))
}

/** Approves a plan that has the same call several times. Returns the terms of this call. */
export async function givePlan(
  { ledger }: GrantServer,
  offered: ApprovalTerms,
  count: number,
): Promise<ApprovalTerms> {
  const [toolName, args] = ['process_payment', { amount: 10, ...RECIPIENT }]
  const payment = tool(toolName, () => ({}))
  const terms = { ...offered, declaration: digestDeclaration(payment, undefined) }
  const plan = { chat, toolCallId: 'plan', toolName: 'propose_plan', args: {} }
  taken(await ledger.request(requestOf({ id: 'plan', ...plan, terms })))
  taken(await ledger.decide('plan', { by: hanako, approved: true }))
  const step = { call: { chat, toolName, args }, terms, functions: {}, expiresMs: 60_000 }
  const steps = Array.from({ length: count }, () => step)
  const declared = new PlanTool({ tools: [payment] })
  const giver = { by: hanako.id, policyVersion: 'v1' }
  taken(await ledger.note('plan', giveGrants(steps, declared, giver)))
  return terms
}

/** Makes a call. Returns its approval if a grant covers it, and the call has started. */
export async function callTool(
  { ledger, prior }: GrantServer,
  {
    id,
    amount,
    terms,
  }: { readonly id: string; readonly amount: number; readonly terms: ApprovalTerms },
): Promise<Approval | undefined> {
  const { toolName, messageId, deadlineMs } = requestOf()
  const call = { chat, toolCallId: id, toolName, args: { amount, ...RECIPIENT } }
  const decision = await prior.find({ ...call, terms, events: [] }, ledger)
  return decision && ledger.requestDecided({ id, ...call, messageId, terms, deadlineMs }, decision)
}

/** Revokes all open grants. */
export async function revokeAll({ ledger, store }: GrantServer): Promise<void> {
  for (const grant of (await store.grants?.list(chat)) ?? [])
    taken(await ledger.note(grant.approvalId, endGrant(grant, { revokedBy: hanako.id })))
}
