import { FunctionTool } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { LIVE_MODEL, LiveClient } from '../relay/support/live-pair.ts'
import { defer } from '../support/agents.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { openTestSetup } from './support/test-setup.ts'

const POLLING = { timeout: 60_000, interval: 50 }
const PAY = '[[call pay {"to": "花子", "amount": 50}]][[then]][[say Told.]]'
const ASK_DESK = `[[call desk ${JSON.stringify({ request: PAY })}]][[then]][[say Told.]]`

test.each([
  ['a call', PAY],
  ['a call inside an agent', ASK_DESK],
  ['a call that asked by itself', '[[call refund {}]][[then]][[say Told.]]'],
])(
  '[LV640] a live session that starts while a turn runs %s after its approval leaves the call to the turn',
  async (_what, script) => {
    const [running, go] = [defer(), defer()]
    let runs = 0
    const refund = new FunctionTool({
      name: 'refund',
      description: 'Refunds the last payment.',
      parameters: z.object({}),
      execute: async (_args, toolContext) => {
        if (!toolContext?.toolConfirmation) {
          toolContext?.requestConfirmation({ hint: 'Refund?' })
          return { status: 'pending' }
        }
        runs += 1
        running.resolve()
        await go.promise
        return { refunded: 50 }
      },
    })
    await using setup = await openTestSetup({
      liveModel: LIVE_MODEL,
      tools: [refund],
      reached: async (moment) => {
        if (moment !== 'before effect') return
        runs += 1
        running.resolve()
        await go.promise
      },
    })
    const person = setup.person()
    await person.say(script)
    const [asked] = await person.approvals()
    await person.decide(asked?.id ?? '', { approved: true })
    await running.promise
    const { url, errors } = setup.paymentServer
    await using client = await LiveClient.join(url, person.chatId)
    await client.status('open')
    go.resolve()
    const first = async () => (await person.messages())[1]
    await expect.poll(async () => textOf(await first()), POLLING).toBe('Told.')
    expect(await client.say('[[say And on.]]')).toBe('And on.')
    const messages = await person.messages()
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect(toolParts(await first()).map(({ state }) => state)).not.toContain('output-error')
    expect(textOf(await first())).toBe('Told.')
    expect(runs).toBe(1)
    expect(errors).toEqual([])
  },
)
