import { expect, test, vi } from 'vitest'

import { createNameLookup } from '../../src/server/routes/principal-names.ts'
import { callPayment } from './support/payments.ts'
import { TestBridge, type TestBridgeOptions } from './support/test-bridge.ts'

const TEXT = `Pay Hanako back ${callPayment(50)}[[then]][[say Paid.]]`
const CHAIN = [{ principals: ['hanako'] }, { roles: ['manager'], count: 2 }]

/** Asks for a payment, and returns its approval id. */
async function ask(testBridge: TestBridge, text = TEXT): Promise<string> {
  const page = testBridge.page()
  const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text }] }
  await page.post({ id: 'chat-1', messages: [message] })
  const [asked] = await page.inbox()
  return asked?.id ?? ''
}

function open(
  terms: Record<string, unknown> = {},
  options: TestBridgeOptions = {},
): Promise<TestBridge> {
  return TestBridge.open({ approvals: { process_payment: { chain: CHAIN, ...terms } }, ...options })
}

test('[AP450] an approver sees the requester, the votes with names and times, and the steps of the policy', async () => {
  await using testBridge = await open(
    {},
    { namePrincipal: (id) => ({ hanako: 'Hanako Sato', mari: 'Mari' })[id] },
  )
  const id = await ask(testBridge)
  await testBridge.page().decide(id, { approved: true })
  await testBridge.page('mari').decide(id, { approved: true })
  const { approval } = await testBridge.page('mike').approval(id)
  expect(approval).toMatchObject({
    requester: { id: 'hanako', name: 'Hanako Sato' },
    votes: [
      { by: { id: 'hanako', name: 'Hanako Sato' }, step: 0 },
      { by: { id: 'mari', name: 'Mari' }, step: 1 },
    ],
    steps: [
      { needed: 1, given: 1, principals: [{ id: 'hanako', name: 'Hanako Sato' }], roles: [] },
      { needed: 2, given: 1, principals: [], roles: ['manager'] },
    ],
    mayDecide: true,
  })
  // The same in the list, and for the person who has voted.
  const [listed] = await testBridge.page('mari').inbox()
  expect(listed).toMatchObject({
    votes: [{}, { by: { id: 'mari', own: true } }],
    mayDecide: false,
    whyNot: 'voted',
  })
})

test('[AP450] a name that cannot be determined is left out, and the error is reported', async () => {
  const fault = new Error('directory is down')
  await using testBridge = await open(
    {},
    {
      namePrincipal: () => {
        throw fault
      },
    },
  )
  const id = await ask(testBridge)
  const { approval } = await testBridge.page().approval(id)
  expect(approval['requester']).toEqual({ id: 'hanako', own: true })
  expect(testBridge.errors).toContain(fault)
})

test('[AP801] a name that is not found in time is left out, and the error is reported', async () => {
  vi.useFakeTimers()
  const errors: unknown[] = []
  const findNames = createNameLookup(
    () => new Promise(() => undefined),
    (error) => errors.push(error),
  )
  const names = findNames(['hanako'])
  await vi.advanceTimersByTimeAsync(5_000)
  expect(await names).toEqual(new Map())
  expect(errors.map(String)).toEqual(['Error: `namePrincipal` took longer than 5000 ms.'])
  vi.useRealTimers()
})

test('[AP451] a person who cannot decide learns why', async () => {
  await using testBridge = await TestBridge.open({
    approvals: {
      process_payment: { chain: [{ roles: ['manager'] }, { roles: ['executive'] }] },
    },
  })
  const id = await ask(testBridge)
  const whyNot = async (person: 'hanako' | 'mari' | 'mike' | 'erin') =>
    (await testBridge.page(person).approval(id)).approval['whyNot']
  expect(await whyNot('hanako')).toBe('not-named')
  expect(await whyNot('mari')).toBeUndefined()
  expect(await whyNot('erin')).toBe('later-step')
  await testBridge.page('mari').decide(id, { approved: true })
  expect(await whyNot('mari')).toBe('voted')
  expect(await whyNot('mike')).toBe('earlier-step')
  expect(await whyNot('erin')).toBeUndefined()
  await testBridge.page('erin').decide(id, { approved: false })
  expect(await whyNot('erin')).toBe('decided')
})

test('[AP452] the message of the user is shown to approvers only if the policy says so', async () => {
  await using shown = await open({ showUserText: true })
  const id = await ask(shown)
  for (const person of ['hanako', 'mari'] as const)
    expect((await shown.page(person).approval(id)).approval['userText']).toMatch(
      /^Pay Hanako back \[\[call/,
    )
  expect((await shown.page('erin').show(id)).status).toBe(404)
  const { entries } = await shown.bridge.audit({ approvalId: id })
  expect(JSON.stringify(entries)).toContain('Pay Hanako back')

  await using hidden = await open()
  const other = await ask(hidden)
  const { approval, history } = await hidden.page('mari').approval(other)
  expect(approval['userText']).toBeUndefined()
  expect(JSON.stringify([approval, history])).not.toContain('Pay Hanako back')
})

test('[AP452] the message is one line of plain text without direction marks, and bounded', async () => {
  await using testBridge = await open({ showUserText: true })
  const id = await ask(testBridge, `\u202Eeci\u2066lA\n\n<b>${TEXT}</b>${'x'.repeat(5_000)}`)
  const { userText } = (await testBridge.page('mari').approval(id)).approval
  expect(userText).toMatch(/^ecilA <b>Pay Hanako back .*x…$/)
  expect(String(userText)).toHaveLength(500)
})
