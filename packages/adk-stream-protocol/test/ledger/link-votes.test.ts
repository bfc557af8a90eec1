import { expect, test } from 'vitest'

import type { Approval } from '../../src/approvals/approval.ts'
import { isRefusal } from '../../src/approvals/approval.ts'
import { digestCall } from '../../src/approvals/digest.ts'
import type { ApprovalCommand } from '../../src/approvals/next-approval.ts'
import { nextApproval } from '../../src/approvals/next-approval.ts'
import { byLink, createLink, hashSecret, openLink } from '../../src/modules/links/next-link.ts'

const CALL = {
  chat: { appName: 'app', principalId: 'owner', chatId: 'chat-1' },
  toolCallId: 'call-1',
  toolName: 'pay',
  args: { amount: 600 },
}

function request(chain: Approval['terms']['chain']): Approval {
  return {
    ...CALL,
    id: 'approval-1',
    messageId: 'message-1',
    digest: digestCall(CALL),
    terms: { chain, idempotent: false },
    requestedAt: 0,
    deadline: 1_000,
    votes: [],
    state: { name: 'requested' },
    version: 1,
  }
}

/** One way to approve: with an account, or with a link of `by`, opened in a browser with the credentials of `browser`. */
interface Act {
  readonly name: string
  readonly by: string
  readonly link?: { readonly as?: string; readonly browser?: string }
}

const LEADS = ['ann', 'ben'] as const
/** Nobody, the leads, and a person with an account who may not decide. */
const BROWSERS = [undefined, ...LEADS, 'mallory'] as const

const ACTS: readonly Act[] = [
  ...LEADS.map((by) => ({ name: `${by} votes`, by })),
  ...LEADS.flatMap((by) =>
    BROWSERS.flatMap((browser) =>
      [undefined, ...LEADS].map((as) => ({
        name: `a link of ${by} for ${as ?? 'anybody'} in the browser of ${browser ?? 'nobody'}`,
        by,
        link: { ...(as !== undefined && { as }), ...(browser !== undefined && { browser }) },
      })),
    ),
  ),
]

/** The people who may be behind an act. */
function peopleOf({ by, link }: Act): string[] {
  return [by, link?.as, link?.browser].filter((id) => id !== undefined)
}

/** A sequence of commands that approves, in which each command depends on the one before. */
function toCommands(
  { by, link }: Act,
  key: string,
  lead = { id: by, roles: ['lead'] },
): ApprovalCommand[] {
  if (!link) return [{ type: 'decide', by: lead, approved: true }]
  const as = { id: link.as ?? `link-${key}`, roles: ['lead'] }
  const token = `token-${key}`
  const created = { id: key, tokenHash: hashSecret(token), as, by }
  const browser = link.browser === undefined ? {} : { browser: link.browser }
  return [
    { type: 'note', next: createLink({ by: lead, link: created, expiresMs: 500 }) },
    { type: 'note', next: openLink({ token, keyHash: hashSecret(key), ...browser }) },
    { type: 'decide', by: as, approved: true, means: byLink(key, link.browser) },
  ]
}

function run(start: Approval, commands: readonly ApprovalCommand[]): Approval {
  return commands.reduce((approval, command) => {
    const result = nextApproval(approval, command, 10)
    return isRefusal(result) ? approval : result.next
  }, start)
}

function openAgain(index: number, browser?: string): ApprovalCommand {
  const keyHash = hashSecret(`key-${index}`)
  const known = browser === undefined ? {} : { browser }
  return { type: 'note', next: openLink({ token: 'token-one', keyHash, ...known }) }
}

const CHAINS = {
  'approvers: 2': [{ count: 2, principals: [], roles: ['lead'] }],
  'two steps of one role': [
    { count: 1, principals: [], roles: ['lead'] },
    { count: 1, principals: [], roles: ['lead'] },
  ],
}

test.each(Object.entries(CHAINS))(
  '[AP1041] two votes count only if different people are behind them: %s',
  (_name, chain) => {
    const wrong: string[] = []
    let approved = 0
    for (const one of ACTS)
      for (const other of ACTS) {
        const [first, second] = [toCommands(one, 'one'), toCommands(other, 'other')]
        const shared = peopleOf(one).some((id) => peopleOf(other).includes(id))
        // One after the other, and with both links open before anybody votes.
        const orders = [
          [...first, ...second],
          [...first.slice(0, -1), ...second.slice(0, -1), ...first.slice(-1), ...second.slice(-1)],
        ]
        for (const order of orders) {
          const { state } = run(request(chain), order)
          if (state.name === 'approved') approved += 1
          if (state.name === 'approved' && shared) wrong.push(`${one.name}, ${other.name}`)
        }
      }
    expect(wrong).toEqual([])
    // Two accounts, an account and a link, two links of two people.
    expect(approved).toBeGreaterThan(10)
  },
)

test('[AP1041] a lead whose link was used can still deny, and a withdrawn vote frees the link', () => {
  const start = request(CHAINS['approvers: 2'])
  const [create, open, decide] = toCommands({ name: '', by: 'ann', link: {} }, 'one')
  const ann = { id: 'ann', roles: ['lead'] }
  const used = run(
    start,
    [create, open, decide].filter((command) => command !== undefined),
  )
  expect(used.votes).toMatchObject([{ linkBy: 'ann', sharesRight: true }])
  const vote = { type: 'decide', by: ann, approved: true } as const
  expect(nextApproval(used, vote, 10)).toEqual({ refused: 'already-counted' })
  expect(run(used, [{ ...vote, approved: false }]).state).toMatchObject({ name: 'denied' })
  const voted = run(start, [vote])
  const refused = create && nextApproval(voted, create, 10)
  expect(refused).toEqual({ refused: 'already-counted' })
  const freed = run(voted, [
    { type: 'withdraw', by: ann },
    ...toCommands({ name: '', by: 'ann', link: {} }, 'two'),
  ])
  expect(freed.votes).toHaveLength(1)
})

test('[AP1041] the requester of a chain may ask for the step that they cannot decide, once', () => {
  const owner = { id: 'owner', roles: [] }
  const chain = [
    { count: 1, principals: ['owner'], roles: [] },
    { count: 2, principals: [], roles: ['lead'] },
  ]
  const voted = run(request(chain), [{ type: 'decide', by: owner, approved: true }])
  const link = (key: string) => toCommands({ name: '', by: 'owner', link: {} }, key, owner)
  expect(run(voted, [...link('one'), ...link('two')]).votes).toHaveLength(2)
})

test('[AP1042] a link can be opened ten times, and only the browser that opened it last decides', () => {
  const [create, , decide] = toCommands({ name: '', by: 'ann', link: {} }, 'one')
  if (!create || !decide) throw new Error('There is no link.')
  const start = run(request(CHAINS['approvers: 2']), [create])
  const opened = run(
    start,
    Array.from({ length: 9 }, (_, index) => openAgain(index, 'mallory')),
  )
  const last = run(opened, [openAgain(9)])
  expect(last.links).toMatchObject([{ keyHash: hashSecret('key-9'), openings: 10 }])
  // The vote belongs to the last browser only.
  expect(last.links?.[0]).not.toHaveProperty('browser')
  expect(nextApproval(last, openAgain(10), 10)).toMatchObject({ refused: 'invalid-means' })
  const [vote] = run(last, [decide]).votes
  expect(vote).toMatchObject({ linkBy: 'ann' })
  expect(vote).not.toHaveProperty('browser')
  expect(run(opened, [decide]).votes).toMatchObject([{ browser: 'mallory' }])
})
