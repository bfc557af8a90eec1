import { expect, test } from 'vitest'

import { callPayment } from '../approvals/support/payments.ts'
import type { TestBridge } from '../approvals/support/test-bridge.ts'
import type { SocketClient } from '../sockets/support/socket-client.ts'
import { defer } from '../support/agents.ts'
import { openSockets } from './support/reconnecting-run.ts'
import {
  framesOf,
  joinLive,
  lastSession,
  openLiveTestBridge,
  untilAsked,
  whole,
} from './support/live-test-bridge.ts'

interface Asked extends AsyncDisposable {
  readonly testBridge: TestBridge
  readonly client: SocketClient
  readonly approvalId: string
}

/** A live session whose payment waits. The server reads the approval from the store when a decision arrives. */
async function openAsked(): Promise<Asked> {
  const testBridge = await openLiveTestBridge({
    approvals: {
      process_payment: { acceptReplies: true, preview: () => ({ headline: 'Pay 50.' }) },
    },
    live: { graceMs: 1 },
    // No sweep resumes the call.
    limits: { leaseMs: 600_000, sweepMs: 3_600_000 },
  })
  const client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(`${callPayment(50)}[[then]][[say Paid.]]`)
  const [approvalId = ''] = await untilAsked(client)
  await client.nextOf('end', 'r1')
  return {
    testBridge,
    client,
    approvalId,
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]()
      await testBridge[Symbol.asyncDispose]()
    },
  }
}

/** Lets the next call of a method of the store wait. */
function hold(
  { store: { approvals } }: TestBridge,
  name: 'getWithTime' | 'replaceAll' | 'list',
): { readonly reached: Promise<void>; readonly release: () => void } {
  const [reached, released] = [defer(), defer()]
  const method = approvals[name]?.bind(approvals) as (...given: unknown[]) => Promise<unknown>
  const held = async (...given: unknown[]): Promise<unknown> => {
    Object.assign(approvals, { [name]: method })
    reached.resolve()
    await released.promise
    return method(...given)
  }
  Object.assign(approvals, { [name]: held })
  return { reached: reached.promise, release: () => released.resolve() }
}

/** The messages of a client that approves the payment. */
async function approveIn(testBridge: TestBridge, id: string) {
  const [user, assistant] = await testBridge.page().messages()
  const parts = assistant?.parts.map((part) =>
    part.type === 'tool-process_payment'
      ? { ...part, state: 'approval-responded', approval: { id, approved: true } }
      : part,
  )
  return [user, { ...assistant, parts }]
}

/** The model ends the session for good. */
async function fail({ testBridge, client }: Asked): Promise<void> {
  lastSession(testBridge).close(1008, 'no more')
  await client.next(() => framesOf(client, 'status').at(-1)?.['status'] === 'closed')
}

test.each([
  ['the model has failed', fail],
  [
    'its clients have left',
    async ({ testBridge, client }: Asked) => {
      client.socket.close()
      await expect.poll(() => openSockets(testBridge.emulator)).toBe(0)
    },
  ],
])(
  '[LV20] a call runs whose approval is recorded while its live session ends, because %s',
  async (_why, end) => {
    await using asked = await openAsked()
    const { testBridge } = asked
    const messages = await approveIn(testBridge, asked.approvalId)
    const reading = hold(testBridge, 'getWithTime')
    const page = testBridge.page()
    const decided = page.post({ id: 'chat-1', messages })
    await reading.reached
    await end(asked)
    reading.release()
    expect(await decided).toMatchObject({ status: 200 })
    expect(testBridge.wallet.payments).toHaveLength(1)
    await page.untilMessages((stored) => JSON.stringify(stored[1]).includes('Paid.'))
  },
)

test('[LV20] a call runs whose approval is recorded while its live session fails, for a client of the session', async () => {
  await using asked = await openAsked()
  const { testBridge, client } = asked
  const messages = await approveIn(testBridge, asked.approvalId)
  const reading = hold(testBridge, 'getWithTime')
  client.send({ type: 'send', requestId: 'r2', id: 'chat-1', messages })
  await reading.reached
  await fail(asked)
  reading.release()
  expect(await whole(client, 'r2')).toContain('Paid.')
  expect(testBridge.wallet.payments).toHaveLength(1)
  client.say('[[say Next.]]', 'r3')
  expect(await whole(client, 'r3')).toBe('Next.')
})

test('[LV20] a call runs once whose live session fails while the session records its approval', async () => {
  await using asked = await openAsked()
  const { testBridge, client } = asked
  const messages = await approveIn(testBridge, asked.approvalId)
  const storing = hold(testBridge, 'replaceAll')
  const page = testBridge.page()
  const decided = page.post({ id: 'chat-1', messages })
  await storing.reached
  await fail(asked)
  storing.release()
  expect(await decided).toMatchObject({ status: 200 })
  expect(testBridge.wallet.payments).toHaveLength(1)
  client.say('[[say Next.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Next.')
})

test('[LV24] a live session that fails while a message is compared with the open question is an error of the request', async () => {
  await using asked = await openAsked()
  const { testBridge, client, approvalId } = asked
  const page = testBridge.page()
  expect(await page.decide(approvalId, { approved: false })).toMatchObject({ status: 200 })
  await page.untilMessages((stored) => JSON.stringify(stored[1]).includes('Paid.'))
  const listing = hold(testBridge, 'list')
  client.say('yes', 'r2')
  await listing.reached
  await fail(asked)
  listing.release()
  expect(await client.nextOf('error', 'r2')).toMatchObject({ code: 'unavailable' })
  client.say('[[say Next.]]', 'r3')
  expect(await whole(client, 'r3')).toBe('Next.')
})
