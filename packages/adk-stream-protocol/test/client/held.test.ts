import { describe, expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { AdkError } from '../../src/client/index.ts'
import { expectValid } from '../approvals/support/expect-record.ts'
import { FREE_MODEL, TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { ClientPage, openSse, versions } from './support/client-page.ts'

const PAY = `${callPayment(50)}[[then]][[say Done.]]`
const BOTH = `${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say Done.]]`

describe.each(oneOf(versions, 'ai 6'))('$name', (version) => {
  test.each([
    { approved: true, state: 'output-available', paid: 1 },
    { approved: false, state: 'output-denied', paid: 0 },
  ])(
    '[CL3] decided $approved while the stream is open: one frame, one message',
    async ({ approved, state, paid }) => {
      await using testBridge = await TestBridge.open()
      await using page = new ClientPage({ url: testBridge.url, version })
      const chat = await page.open()
      const answer = chat.send(PAY)
      const [id = ''] = await chat.untilAsked()
      expect(chat.status).toBe('streaming')
      // The server keeps a reason only for a denial.
      const reason = approved ? {} : { reason: 'because' }
      await chat.click({ id, approved, ...reason })
      await answer
      expect(page.types).toEqual(['send', 'decide'])
      expect(toolParts(chat.lastMessage)).toMatchObject([
        { state, approval: { id, approved, ...reason } },
      ])
      expect(chat.text).toBe('Done.')
      expect(chat.messages).toHaveLength(2)
      expect(testBridge.wallet.payments).toHaveLength(paid)
      expect(chat.error).toBeUndefined()
      expect(chat.status).toBe('ready')
      await expectValid(chat.messages)
      expect(await page.load('chat-1')).toMatchObject(JSON.parse(JSON.stringify(chat.messages)))
    },
  )

  test.each([
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ])('[CL3] two approvals at once, %s and %s, in one open stream', async (alice, bob) => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    const answer = chat.send(BOTH)
    const [first = '', second = ''] = await chat.untilAsked(2)
    await chat.click({ id: second, approved: bob })
    await chat.click({ id: first, approved: alice })
    await answer
    expect(page.types).toEqual(['send', 'decide', 'decide'])
    expect(toolParts(chat.lastMessage).map(({ state }) => state)).toEqual(
      [alice, bob].map((approved) => (approved ? 'output-available' : 'output-denied')),
    )
    expect(testBridge.wallet.balance).toBe(1_000 - (alice ? 30 : 0) - (bob ? 40 : 0))
    expect(chat.text).toBe('Done.')
    await expectValid(chat.messages)
  })

  test('[CL3] two approvals one after the other, with text in between, in one open stream', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    const script = [callPayment(10, 'A'), callPayment(20, 'B'), callPayment(30, 'C')]
    const answer = chat.send(`${script.join('[[then]][[say Next.]]')}[[then]][[say Done.]]`)
    for (const approved of [false, true, true]) {
      const [id = ''] = await chat.untilAsked()
      await chat.click({ id, approved })
    }
    await answer
    expect(page.types).toEqual(['send', 'decide', 'decide', 'decide'])
    expect(testBridge.wallet.payments.map(({ recipient }) => recipient)).toEqual(['B', 'C'])
    expect(chat.text).toBe('Next.Next.Done.')
    expect(chat.messages).toHaveLength(2)
    await expectValid(chat.messages)
  })

  test('[CL3] a second click, or a click on a decided approval, sends nothing', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    const answer = chat.send(PAY)
    const [id = ''] = await chat.untilAsked()
    await Promise.all([
      chat.click({ id, approved: true }),
      chat.click({ id, approved: true }),
      chat.click({ id, approved: false }),
    ])
    await answer
    await chat.click({ id, approved: false })
    expect(page.types).toEqual(['send', 'decide'])
    expect(testBridge.wallet.payments).toHaveLength(1)
  })

  test.each([{ approved: true }, { approved: false }])(
    '[CL4] a grant that was refused with a denial is not sent with a later decision ($approved)',
    async ({ approved }) => {
      await using testBridge = await TestBridge.open()
      await using page = new ClientPage({ url: testBridge.url, version })
      const chat = await openSse(page.sse(), version)
      await chat.send(PAY)
      const [id = ''] = await chat.untilAsked()
      await chat.attached.deny(id, undefined, 'unknown-offer')
      await chat.rest()
      expect(chat.error).toMatchObject({ code: 'not-allowed' })
      expect(chat.asked).toEqual([id])
      await (approved ? chat.attached.approve(id) : chat.attached.deny(id))
      await chat.rest()
      const state = approved ? 'output-available' : 'output-denied'
      expect(toolParts(chat.lastMessage)).toMatchObject([{ state }])
    },
  )

  test('[CL4] a call runs with edited arguments; invalid ones leave the approval open', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    const answer = chat.send(PAY)
    const [id = ''] = await chat.untilAsked()
    await chat.attached.approve(id, { args: { amount: -1, recipient: '花子' } })
    expect(chat.errors).toMatchObject([{ code: 'bad-request' }])
    expect(chat.errors[0]).toBeInstanceOf(AdkError)
    await chat.untilAsked()
    expect(testBridge.wallet.payments).toEqual([])
    await chat.attached.approve(id, { args: { amount: 40, recipient: '花子' } })
    await answer
    expect(testBridge.wallet.payments).toMatchObject([{ amount: 40 }])
    expect(toolParts(chat.lastMessage)).toMatchObject([{ output: { amount: 40 } }])
    await expectValid(chat.messages)
  })

  test.each([
    { approved: true, state: 'output-available' },
    { approved: false, state: 'output-denied' },
  ])('[CL5] a decision made elsewhere, $approved, is shown here', async ({ approved, state }) => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    const answer = chat.send(PAY)
    const [id = ''] = await chat.untilAsked()
    const reason = approved ? {} : { reason: 'elsewhere' }
    const now = await page.sse().decide({ approvalId: id, approved, ...reason })
    expect(now).toBe(approved ? 'approved' : 'denied')
    await answer
    expect(page.types).toEqual(['send'])
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state, approval: { id, approved, ...reason } },
    ])
    expect(chat.text).toBe('Done.')
    await expectValid(chat.messages)
  })

  test('[CL5] an expired approval ends here too, and the messages stay valid', async () => {
    await using testBridge = await TestBridge.open({ approvalDeadlineMs: 100 })
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    await chat.send(PAY)
    await chat.until(() => !JSON.stringify(chat.messages).includes('"approval":'))
    expect(toolParts(chat.lastMessage)).toMatchObject([{ state: 'output-error' }])
    expect(chat.text).toBe('Done.')
    await expectValid(chat.messages)
    await chat.send('[[say Next.]]')
    expect(chat.text).toBe('Next.')
  })

  test('[CL6] a reloaded page resumes and decides, and both pages show the whole reply', async () => {
    await using testBridge = await TestBridge.open()
    await using before = new ClientPage({ url: testBridge.url, version })
    const first = await before.open()
    const asked = first.send(PAY)
    const [id = ''] = await first.untilAsked()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    const resumed = chat.resume()
    expect(await chat.untilAsked()).toEqual([id])
    await chat.click({ id, approved: true })
    await Promise.all([resumed, asked])
    expect(page.types).toEqual(['resume', 'decide'])
    for (const shown of [chat, first]) {
      expect(shown.text).toBe('Done.')
      expect(toolParts(shown.lastMessage)).toMatchObject([
        { state: 'output-available', approval: { approved: true } },
      ])
      await expectValid(shown.messages)
    }
    expect(testBridge.wallet.payments).toHaveLength(1)
  })

  test('[CL9] a new message can be sent while an approval is open, and the approval decided later', async () => {
    await using testBridge = await TestBridge.open({ liveModel: FREE_MODEL })
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    const asked = chat.send(callPayment(50))
    const [id = ''] = await chat.untilAsked()
    await chat.send('[[say Meanwhile.]]')
    await asked
    expect(chat.messages.map(textOf).at(-1)).toBe('Meanwhile.')
    expect(toolParts(chat.messages[1])).toMatchObject([{ state: 'approval-requested' }])
    await chat.click({ id, approved: true })
    await chat.until(() => toolParts(chat.messages[1])[0]?.state === 'output-available')
    await chat.rest()
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(chat.messages).toHaveLength(4)
    await expectValid(chat.messages)
  })

  test('[CL9] a reply that is regenerated while its approval is open requests approval again', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    const first = chat.send(PAY)
    const [old = ''] = await chat.untilAsked()
    const again = chat.regenerate()
    await chat.until(() => chat.asked.length === 1 && chat.asked[0] !== old)
    await first
    await chat.click({ id: chat.asked[0] ?? '', approved: true })
    await again
    expect(chat.text).toBe('Done.')
    expect(chat.messages).toHaveLength(2)
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(chat.status).toBe('ready')
    await expectValid(chat.messages)
  })

  test('[CL9] an older approval that is decided during another reply shows its outcome', async () => {
    await using testBridge = await TestBridge.open({ liveModel: FREE_MODEL })
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    void chat.send(callPayment(50))
    const [id = ''] = await chat.untilAsked()
    const second = chat.send('[[say Meanwhile.]][[wait more]][[say Done.]]')
    await chat.until(({ messages }) => messages.map(textOf).at(-1) === 'Meanwhile.')
    await chat.click({ id, approved: true })
    testBridge.emulator.release('more')
    await second
    await chat.until(() => toolParts(chat.messages[1])[0]?.state === 'output-available')
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(page.types).toEqual(['send', 'send', 'decide'])
  })

  test('[CL3] the stream of a chat that is not attached ends at the approval request, and the decision is sent in a request', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = page.openBare()
    await chat.send(PAY)
    await chat.decide(true)
    await chat.sendAsItIs()
    expect(chat.text).toBe('Done.')
    expect(page.types).toEqual(['send', 'send'])
    expect(testBridge.wallet.payments).toHaveLength(1)
  })

  test('[CL10] an approval stays open after stop(), and can be decided', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    const answer = chat.send(PAY)
    const [id = ''] = await chat.untilAsked()
    await chat.stop()
    await answer
    expect(chat.status).toBe('ready')
    await chat.click({ id, approved: true })
    await chat.until(() => toolParts(chat.lastMessage)[0]?.state === 'output-available')
    await chat.rest()
    expect(testBridge.wallet.payments).toHaveLength(1)
    await expectValid(chat.messages)
  })

  test('[CL1] one socket carries all chats, and each request contains only what is new', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const [one, two] = [await page.open('one'), await page.open('two')]
    await Promise.all([one.send('[[say One.]]'), two.send('[[say Two.]]')])
    await one.send('[[say Three.]]')
    expect([one.text, two.text]).toEqual(['Three.', 'Two.'])
    expect(page.sockets).toHaveLength(1)
    expect(page.sent.map(({ messages }) => (messages as unknown[]).length)).toEqual([1, 1, 1])
    expect(await page.transport.ping()).toBeGreaterThan(0)
  })
})
