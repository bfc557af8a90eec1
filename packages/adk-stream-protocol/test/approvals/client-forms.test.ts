import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { shareOf } from '../../../../test/support/long-run.ts'
import type { PolicyTerms } from '../../src/approvals/policy.ts'
import type { ApprovalPolicy } from '../../src/server/index.ts'
import { withoutUndefined } from '../../src/shared/collections.ts'
import { toolParts } from '../support/chat-probe.ts'
import {
  BLOCKED,
  CLIENT_FORMS,
  type ClientForm,
  type FormDecision,
  TEST_CHANNEL,
} from './support/client-forms.ts'
import { callPayment } from './support/payments.ts'
import { TestBridge } from './support/test-bridge.ts'

type FormName = (typeof CLIENT_FORMS)[number]['name']

/** How a decision ends: the code that the client receives, the state of the approval, and its number of votes. */
interface Ending {
  readonly told?: string
  readonly state: string
  readonly votes: number
  /** The amount that was paid, if the call ran. */
  readonly paid?: number
}

const RUNS: Ending = { state: 'succeeded', votes: 1, paid: 5 }
const WAITS: Ending = { state: 'requested', votes: 0 }
const VOTED: Ending = { state: 'requested', votes: 1 }

interface Feature {
  readonly name: string
  readonly terms: PolicyTerms
  readonly decision?: FormDecision
  /** The ending for every form that `except` does not name. */
  readonly ends: Ending
  /** The forms with another ending. `none`: the form has no way to do this. */
  readonly except?: Partial<Record<FormName, Ending | 'none'>>
  /** How it ends when a manager has approved after that. */
  readonly afterManager?: Ending
}

const MANAGER_TOO = { principals: ['hanako'], roles: ['manager'] }

/** A call of more than the balance would fail. */
const preview: PolicyTerms['preview'] = ({ amount }) => ({
  headline: `Send $${String(amount)}`,
  ...(Number(amount) > 1_000_000 && { blocked: BLOCKED }),
})

const blocked: PolicyTerms['preview'] = () => ({ blocked: BLOCKED })

const throws: PolicyTerms['preview'] = () => {
  throw new Error('The bank does not answer.')
}

const NEVER_REPLIES = { 'a typed reply': WAITS } as const
/** A client of this dialect has the output of the confirmation, which cannot be asked for again. */
const VOTE_IS_ERROR = {
  'the dialect `confirmation`': { ...VOTED, told: 'approval-voted' },
} as const
/** These clients have no place for edited arguments. */
const NEVER_EDITS = {
  'a link': { ...WAITS, told: 'bad-request' },
  'several at once': { ...WAITS, told: 'bad-request' },
  'a channel': 'none',
  'a text frame': 'none',
  'a typed reply': 'none',
} as const

const DENIED: Ending = { state: 'denied', votes: 0 }
const EXPIRED: Ending = { state: 'expired', votes: 0 }

const FEATURES: readonly Feature[] = [
  { name: 'no feature', terms: {}, ends: RUNS },
  { name: 'a preview', terms: { preview }, ends: RUNS },
  {
    name: 'a preview that is required',
    terms: { preview, requirePreview: true },
    ends: { ...WAITS, told: 'preview-changed' },
    // The person replies to the preview that the chat showed.
    except: { 'a typed reply': RUNS },
  },
  {
    name: 'a blocked call',
    terms: { preview: blocked },
    ends: { ...WAITS, told: 'call-blocked' },
    except: NEVER_REPLIES,
  },
  {
    name: 'a preview that throws',
    terms: { preview: throws },
    ends: { ...WAITS, told: 'preview-failed' },
    except: NEVER_REPLIES,
  },
  {
    name: 'a blocked call that is denied',
    terms: { preview: blocked },
    decision: { approved: false },
    ends: DENIED,
  },
  {
    name: 'a preview that throws, and a denial',
    terms: { preview: throws },
    decision: { approved: false },
    ends: DENIED,
  },
  {
    name: 'two people',
    terms: { deciders: MANAGER_TOO, approvers: 2 },
    ends: VOTED,
    except: { ...NEVER_REPLIES, ...VOTE_IS_ERROR },
    afterManager: { state: 'succeeded', votes: 2 },
  },
  {
    name: 'two people and a blocked call',
    terms: { deciders: MANAGER_TOO, approvers: 2, preview: blocked },
    ends: { ...WAITS, told: 'call-blocked' },
    except: NEVER_REPLIES,
  },
  {
    name: 'a chain',
    terms: { chain: [{ principals: ['hanako'] }, { roles: ['manager'] }] },
    ends: VOTED,
    except: { ...NEVER_REPLIES, ...VOTE_IS_ERROR },
    afterManager: { state: 'succeeded', votes: 2 },
  },
  {
    name: 'a chain and a preview that throws',
    terms: { chain: [{ principals: ['hanako'] }, { roles: ['manager'] }], preview: throws },
    ends: { ...WAITS, told: 'preview-failed' },
    except: NEVER_REPLIES,
  },
  {
    name: 'an edit',
    terms: { preview },
    decision: { approved: true, args: { amount: 7, recipient: 'an edit' } },
    ends: { ...RUNS, paid: 7 },
    except: NEVER_EDITS,
  },
  {
    name: 'an edit to a blocked call',
    terms: { preview },
    decision: {
      approved: true,
      args: { amount: 2_000_000, recipient: 'an edit to a blocked call' },
    },
    ends: { ...WAITS, told: 'call-blocked' },
    except: NEVER_EDITS,
  },
  {
    name: 'an edit of a blocked call',
    terms: { preview: ({ amount }) => (amount === 5 ? { blocked: BLOCKED } : {}) },
    decision: { approved: true, args: { amount: 7, recipient: 'an edit of a blocked call' } },
    ends: { ...RUNS, paid: 7 },
    except: NEVER_EDITS,
  },
  {
    name: 'a deadline that has passed',
    terms: { deadlineMs: 10 },
    ends: { ...EXPIRED, told: 'approval-expired' },
    // AP6: a client that approves too late in the chat receives the rest of the turn.
    except: {
      'stock ai 6 over SSE': EXPIRED,
      'stock ai 7 over SSE': EXPIRED,
      'stock ai 7 over a socket': EXPIRED,
      'the dialect `confirmation`': EXPIRED,
      'AG-UI, @ag-ui/client 1.0.0': EXPIRED,
      'AG-UI, @ag-ui/client 0.0.59': EXPIRED,
      'a text frame': EXPIRED,
      'a typed reply': EXPIRED,
      // No link is created. The next sweep ends the approval.
      'a link': { ...WAITS, told: 'approval-expired' },
    },
  },
]

/** The policy of each feature, by the recipient of the payment. */
const approvals: ApprovalPolicy = {
  process_payment: ({ args: { recipient } }) => {
    const { terms = {} } = FEATURES.find(({ name }) => name === recipient) ?? {}
    return { acceptReplies: true, ...terms }
  },
}

let testBridge: TestBridge

beforeAll(async () => {
  testBridge = await TestBridge.open({
    approvals,
    approvalLinks: {
      issue: ({ principal: { id }, step: { roles, principals } }) =>
        roles.length > 0 ? { roles } : { principalId: principals[0] ?? id },
    },
    notify: { channels: { test: TEST_CHANNEL }, plan: () => [] },
    // A late decision finds an approval that no sweep has ended.
    limits: { sweepMs: 3_600_000, maxPendingPerPrincipal: 10_000, maxSocketsPerPrincipal: 1_000 },
  })
})

afterAll(() => testBridge[Symbol.asyncDispose]())

const FORMS: readonly (ClientForm & { readonly name: FormName })[] = CLIENT_FORMS

/** In `npm test`, the features share the forms whose ending is the usual one. A form with an ending of its own always runs. */
function formsOf(feature: Feature): typeof FORMS {
  const { except = {} } = feature
  const usual = FORMS.filter((form) => except[form.name] === undefined)
  const shared = shareOf(usual, { group: FEATURES.indexOf(feature), groups: 3 })
  return FORMS.filter((form) => except[form.name] !== undefined || shared.includes(form))
}

describe.each(FEATURES)('$name', (feature) => {
  const { name, terms, decision, ends, except = {}, afterManager } = feature
  test.each(formsOf(feature))('[AP1040] ends as the policy says, by $name', async (form) => {
    const expected = except[form.name] ?? ends
    if (expected === 'none') return
    const page = testBridge.page()
    const chatId = crypto.randomUUID()
    const text = `${callPayment(5, name)}[[then]][[say Paid.]]`
    await using asked = await form.ask({ testBridge, page }, { chatId, text })
    if (terms.deadlineMs !== undefined) await untilDeadline(asked.id)
    const told = await asked.decide(decision ?? { approved: true })
    expect(await readEnding(chatId, asked.id, expected.state, told)).toEqual(expected)
    if (!afterManager || expected === WAITS) return
    await testBridge.page('mari').decide(asked.id, { approved: true })
    expect(await readEnding(chatId, asked.id, afterManager.state)).toEqual({
      ...afterManager,
      paid: 5,
    })
  })
})

/** Resolves when the deadline of an approval has passed by the clock of the store. */
async function untilDeadline(id: string): Promise<void> {
  const { approvals: ledger } = testBridge.store
  const { deadline = 0 } = (await ledger.get(id)) ?? {}
  await expect.poll(() => ledger.now()).toBeGreaterThanOrEqual(deadline)
}

async function readEnding(
  chatId: string,
  id: string,
  state: string,
  told?: string,
): Promise<Ending> {
  const page = testBridge.page()
  if (state === 'succeeded') await page.untilState(id, state)
  const { approval } = await page.approval(id)
  const parts = (await page.messages(chatId)).flatMap((message) => toolParts(message))
  const output = parts.find(({ state: shown }) => shown === 'output-available')?.output
  const paid = (output as { amount?: number } | undefined)?.amount
  const votes = (approval['votes'] as unknown[]).length
  return { state: approval.state, votes, ...withoutUndefined({ told, paid }) }
}
