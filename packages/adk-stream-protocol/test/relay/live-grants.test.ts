import { afterAll, beforeAll, expect, test } from 'vitest'

import { planTool } from '../../src/server/index.ts'
import { paymentTool } from '../faults/support/payment-server.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { openLivePair } from './support/live-pair.ts'
import { createRelayDatabase } from './support/relays.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createRelayDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const PAY = '[[call pay {"to": "花子", "amount": 50}]][[then]][[say All settled.]]'
const toPay = paymentTool({ name: 'pay', requireConfirmation: true }, '', async () => undefined)
const PAYMENT = { to: '花子', amount: 50 }
const STEPS = [PAYMENT, PAYMENT].map((args) => ({ tool: 'pay', args }))

test.each([
  ['a grant', PAY],
  ['a plan', `[[call propose_plan ${JSON.stringify({ steps: STEPS })}]][[then]][[say Planned.]]`],
])(
  '[GR1943] %s covers calls after its live session has moved, and its limits count them all',
  async (_what, text) => {
    await using pair = await openLivePair(database, 'granted-live', {
      approvals: { pay: { grants: [{ maxUses: 2 }], plans: true } },
      tools: [planTool({ tools: [toPay] })],
    })
    const first = await pair.join('one')
    await first.say(text)
    const [asked] = await pair.atOne.approvalsOfChat()
    const { body } = await pair.atOne.get(`/approvals/${asked?.id}`)
    const [offer] = (JSON.parse(body) as Offered).approval.offers ?? []
    const chosen = { approved: true, ...(offer && { offer: offer.id }) }
    expect(await pair.atOne.decide(asked?.id ?? '', chosen)).toMatchObject({ status: 200 })
    await first.hears(offer ? 'All settled.' : 'Planned.')
    const before = pair.effects().length
    expect(await first.say(PAY)).toBe('All settled.')
    await first[Symbol.asyncDispose]()
    await using second = await pair.join('two')
    await second.status('open')
    expect(await second.say(PAY)).toBe('All settled.')
    await second.say(PAY)
    expect(pair.effects()).toHaveLength(before + 2)
    expect(await pair.atTwo.approvalsOfChat()).toHaveLength(1)
    expect(pair.model.handles).toEqual([undefined, expect.any(String)])
    expect([...pair.one.errors, ...pair.two.errors]).toEqual([])
  },
)

interface Offered {
  readonly approval: { readonly offers?: readonly { readonly id: string }[] }
}
