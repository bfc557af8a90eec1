import { BasePlugin } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { FREE_MODEL, type TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { assistant, tool } from '../support/agents.ts'
import {
  joinLive,
  lastSession,
  openLiveTestBridge,
  untilAsked,
  whole,
} from './support/live-test-bridge.ts'

const PAY = `${callPayment(50)} [[then]] [[say Seen.]]`
const SECRET = 'password is 1234'

async function fail(): Promise<never> {
  throw new Error(SECRET)
}

class Before extends BasePlugin {
  override beforeToolCallback = fail
}

class After extends BasePlugin {
  override afterToolCallback = fail
}

/** Requests the payment, approves it, and waits for the model's reply to the result. */
async function approvePayment(testBridge: TestBridge): Promise<{ id: string; frames: string }> {
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(PAY)
  const [id = ''] = await untilAsked(client)
  await testBridge.page().decide(id, { approved: true })
  await testBridge.page().untilMessages((messages) => JSON.stringify(messages).includes('"Seen."'))
  return { id, frames: JSON.stringify(client.frames) }
}

async function toolParts(testBridge: TestBridge): Promise<unknown[]> {
  const messages = await testBridge.page().messages()
  return messages.flatMap(({ parts }) => parts.filter(({ type }) => type.startsWith('tool-')))
}

/** The owner of the callback that throws. */
const hosts = (agent: 'beforeToolCallback' | 'afterToolCallback') =>
  [
    ['a plugin', { plugins: [agent === 'afterToolCallback' ? new After('a') : new Before('b')] }],
    ['the agent', { agent: (model, tools) => assistant(model, { tools, [agent]: fail }) }],
  ] satisfies [string, Parameters<typeof openLiveTestBridge>[0]][]

describe.each(['gemini-3.1-flash-live-preview', FREE_MODEL])('%s', (liveModel) => {
  test.each(hosts('afterToolCallback'))(
    '[LV26] a callback of %s that throws after an approved call does not change the result',
    async (_, options) => {
      await using testBridge = await openLiveTestBridge({ liveModel, ...options })
      const { id, frames } = await approvePayment(testBridge)
      const history = await testBridge.page().history(id)
      expect(history).toEqual(['requested', 'approved', 'started', 'succeeded'])
      expect(await toolParts(testBridge)).toMatchObject([
        { state: 'output-available', output: { success: true, balance: 950 } },
      ])
      expect(JSON.stringify(lastSession(testBridge).received)).toContain('"balance":950')
      expect(testBridge.errors.map(String).join()).toContain(SECRET)
      expect(frames).not.toContain(SECRET)
    },
  )

  test.each(hosts('beforeToolCallback'))(
    '[LV26] an approved call fails if a callback of %s throws before it',
    async (_, options) => {
      await using testBridge = await openLiveTestBridge({ liveModel, ...options })
      const { id, frames } = await approvePayment(testBridge)
      expect(testBridge.wallet.payments).toEqual([])
      const history = await testBridge.page().history(id)
      expect(history).toEqual(['requested', 'approved', 'started', 'failed'])
      expect(await toolParts(testBridge)).toMatchObject([{ state: 'output-error' }])
      expect(testBridge.errors.map(String).join()).toContain(SECRET)
      expect(frames).not.toContain(SECRET)
    },
  )
})

test('[LV26] the client and the model receive the same result of a call that could not run', async () => {
  // A session cannot store this result, which can be read once.
  let reads = 0
  const seen = { toJSON: () => ((reads += 1) > 1 ? 10n : 1) }
  const look = tool('look', () => ({ seen }))
  await using testBridge = await openLiveTestBridge({ tools: () => [look] })
  await using client = await joinLive(testBridge)
  client.say('[[call look {}]] [[then]] [[say Seen.]]')
  expect(await whole(client)).toBe('Seen.')
  const result = { error: 'The call could not be carried out.' }
  expect(JSON.stringify(lastSession(testBridge).received)).toContain(JSON.stringify(result))
  expect(await toolParts(testBridge)).toMatchObject([
    { state: 'output-error', errorText: result.error },
  ])
  expect(testBridge.errors.map(String).join()).toContain('bigint')
})
