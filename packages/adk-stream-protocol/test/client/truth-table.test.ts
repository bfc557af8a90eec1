import { describe, expect, test } from 'vitest'

import { shareOf } from '../../../../test/support/long-run.ts'
import { sseTransport } from '../../src/client/index.ts'
import { expectValid } from '../approvals/support/expect-record.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { toolParts } from '../support/chat-probe.ts'
import {
  ClientPage,
  openSse,
  versions,
  type ClientChat,
  type Version,
} from './support/client-page.ts'

/** How an earlier call of the same message ended. The earlier system derived its decision to send from it, and lost responses. */
const EARLIER = ['none', 'output-available', 'output-denied', 'output-error'] as const
const WAYS = ['held', 'turn by turn', 'HTTP'] as const
type Way = (typeof WAYS)[number]

const CASES = EARLIER.flatMap((earlier) =>
  ['', '[[say Next.]]'].flatMap((between) =>
    [true, false].map((approved) => ({ earlier, between, approved })),
  ),
)

interface Opened extends AsyncDisposable {
  readonly chat: ClientChat
  /** How often a response was sent. */
  readonly answers: () => number
}

async function open(testBridge: TestBridge, version: Version, way: Way): Promise<Opened> {
  if (way !== 'HTTP') {
    const page = new ClientPage({ url: testBridge.url, version, live: { hold: way === 'held' } })
    return {
      chat: await page.open(),
      // The first request is the user message.
      answers: () => page.types.filter((type) => type === 'send' || type === 'decide').length - 1,
      [Symbol.asyncDispose]: () => page[Symbol.asyncDispose](),
    }
  }
  let posts = 0
  const transport = sseTransport({
    url: testBridge.url,
    headers: { 'x-api-key': 'hanako' },
    fetch: (input, init) => {
      if (init?.method === 'POST') posts += 1
      return fetch(input, init)
    },
  })
  return {
    chat: await openSse(transport, version),
    answers: () => posts - 1,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

describe.each(versions)('$name', (version) => {
  describe.each(WAYS)('%s', (way) => {
    const groups = versions.length * WAYS.length
    const group = versions.indexOf(version) * WAYS.length + WAYS.indexOf(way)
    test.each(shareOf(CASES, { group, groups }))(
      '[CL2] earlier $earlier, then "$between", then $approved: each decision is sent once',
      async ({ earlier, between, approved }) => {
        const refuse = (): void => {
          if (earlier === 'output-error' && testBridge.wallet.payments.length === 0) {
            tries += 1
            if (tries === 1) throw new Error('no')
          }
        }
        let tries = 0
        await using testBridge = await TestBridge.open({
          tools: (wallet) => [paymentTool(wallet, { before: refuse })],
        })
        await using opened = await open(testBridge, version, way)
        const { chat, answers } = opened
        const first = earlier === 'none' ? '' : `${callPayment(1, 'Earlier')}[[then]]${between}`
        const sent = chat.send(`${first}${callPayment(2, 'Now')}[[then]][[say Done.]]`)
        const expected: string[] = []
        if (earlier !== 'none') {
          const [id = ''] = await chat.untilAsked()
          await chat.click({ id, approved: earlier !== 'output-denied' })
          await chat.until(() => toolParts(chat.lastMessage)[0]?.state === earlier)
          expected.push(earlier)
        }
        const [id = ''] = await chat.untilAsked()
        await chat.click({ id, approved })
        expected.push(approved ? 'output-available' : 'output-denied')
        await sent
        await chat.untilShown(earlier === 'none' || between === '' ? 'Done.' : 'Next.Done.')
        await chat.rest()
        expect(toolParts(chat.lastMessage).map(({ state }) => state)).toEqual(expected)
        expect(answers()).toBe(expected.length)
        expect(chat.messages).toHaveLength(2)
        expect(chat.error).toBeUndefined()
        await expectValid(chat.messages)
      },
    )

    test('[CL2] a model that says nothing after the decision is not called again', async () => {
      await using testBridge = await TestBridge.open()
      await using opened = await open(testBridge, version, way)
      const { chat, answers } = opened
      const sent = chat.send(`${callPayment(5)}[[then]][[finish STOP]]`)
      const [id = ''] = await chat.untilAsked()
      await chat.click({ id, approved: true })
      await sent
      await chat.until(() => toolParts(chat.lastMessage)[0]?.state === 'output-available')
      await chat.rest()
      expect(answers()).toBe(1)
      expect(testBridge.asked).toBe(2)
    })
  })
})
