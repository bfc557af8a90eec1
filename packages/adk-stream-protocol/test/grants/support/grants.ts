import type { Page, ApprovalRecord } from '../../approvals/support/page.ts'
import type { GrantOffer, ShownGrant } from '../../../src/protocol/grants.ts'
import type { PolicyTerms } from '../../../src/approvals/policy.ts'
import { callPayment } from '../../approvals/support/payments.ts'

type PolicyGrant = NonNullable<PolicyTerms['grants']>[number]

/** Payments to the same recipient, up to 100 in all, and a denial for the rest of the chat. */
export const BUDGET: PolicyGrant = { budget: { argument: 'amount', max: 100 }, maxUses: 5 }

export const DENIAL: PolicyGrant = { effect: 'deny' }

export const GRANTS: readonly PolicyGrant[] = [BUDGET, DENIAL]

/** The script of a turn that pays. */
export function pay(amount: number, recipient?: string): string {
  return `${callPayment(amount, recipient)}[[then]][[say Done.]]`
}

/** Returns the offers of an approval, as its owner sees them. */
export function offersOf(approval: ApprovalRecord['approval'] | undefined): readonly GrantOffer[] {
  return (approval?.['offers'] ?? []) as readonly GrantOffer[]
}

/** Decides the only approval that waits, and chooses its offer with this effect. Returns the id of the approval. */
export async function give(page: Page, effect: GrantOffer['effect'] = 'approve'): Promise<string> {
  const [approval] = await page.inbox()
  const offer = offersOf(approval).find((each) => each.effect === effect)
  const id = approval?.id ?? ''
  const answer = await page.decide(id, { approved: effect === 'approve', offer: offer?.id })
  if (answer.status !== 200) throw new Error(`The grant was not given: ${JSON.stringify(answer)}`)
  await page.untilMessages((messages) => JSON.stringify(messages).includes('Done.'))
  return id
}

/** Returns the grants that a person sees. */
export async function listGrants(page: Page): Promise<readonly ShownGrant[]> {
  const response = await page.fetch('http://page/grants')
  return ((await response.json()) as { grants: ShownGrant[] }).grants
}

/** Revokes a grant. Returns the status of the response. */
export async function revoke(page: Page, id: string): Promise<number> {
  return (await page.fetch(`http://page/grants/${id}`, { method: 'DELETE' })).status
}
