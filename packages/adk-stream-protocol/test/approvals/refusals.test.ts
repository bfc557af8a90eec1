import { describe, expect } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { clientsWith } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { TestBridge } from './support/test-bridge.ts'
import { callPayment } from './support/payments.ts'

const PAY = `${callPayment(50)}[[then]][[say Paid.]]`
const LIFE = ['requested', 'approved', 'started', 'succeeded']

/** A request body with any value as the decision about a call. */
function answer(approval: unknown, messageId = 'message-1'): object {
  const part = {
    type: 'tool-process_payment',
    toolCallId: 'call-1',
    state: 'approval-responded',
    input: { amount: 999_999, recipient: 'Mallory' },
    approval,
  }
  const message = { id: messageId, role: 'assistant', parts: [{ type: 'step-start' }, part] }
  return { id: 'chat-1', messages: [message], trigger: 'submit-message', messageId }
}

const clients = clientsWith('6')

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it.each([
    ['approval', true],
    ['denial', false],
  ])('[AP13] a repeated %s has no effect and gets the same response', async (_case, approved) => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    await chat.decide(approved)
    const body = page.sent[1]
    const again = await Promise.all([page.post(body), page.post(body), page.post(body)])
    expect(again.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(await page.decide(id, { approved })).toMatchObject({
      status: 409,
      body: { error: { code: 'approval-decided' } },
    })
    expect(testBridge.wallet.payments).toHaveLength(approved ? 1 : 0)
    expect(testBridge.asked).toBe(2)
    expect(await page.history(id)).toEqual(approved ? LIFE : ['requested', 'denied'])
    await expectRecord(page, chat)
  })

  it('[AP13] the same approval many times at once runs once', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    const body = answer({ id, approved: true }, chat.lastMessage?.id)
    const answers = await Promise.all([
      ...Array.from({ length: 5 }, () => page.post(body)),
      ...Array.from({ length: 5 }, () => page.decide(id, { approved: true })),
    ])
    expect(answers.every(({ status }) => status === 200 || status === 409)).toBe(true)
    await page.untilState(id, 'succeeded')
    expect(testBridge.wallet.payments).toEqual([{ amount: 50, recipient: '花子' }])
    expect(await page.history(id)).toEqual(LIFE)
    await page.untilMessages((messages) => messages.length === 2)
    await expectRecord(page, await page.open(client))
  })

  it('[AP13] a decision that contradicts the first one is rejected', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    await chat.decide(false)
    const refusal = { status: 409, body: { error: { code: 'approval-decided' } } }
    expect(await page.decide(id, { approved: true })).toMatchObject(refusal)
    expect(await page.post(answer({ id, approved: true }, chat.lastMessage?.id))).toMatchObject(
      refusal,
    )
    expect(testBridge.wallet.payments).toEqual([])
    expect(await page.history(id)).toEqual(['requested', 'denied'])
    await expectRecord(page, chat)
  })

  it('[AP13] of two contradicting decisions in one request, the first counts', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    const part = (approved: boolean): object => ({
      type: 'tool-process_payment',
      toolCallId: 'call-1',
      state: 'approval-responded',
      approval: { id, approved },
    })
    const message = {
      id: chat.lastMessage?.id,
      role: 'assistant',
      parts: [part(false), part(true)],
    }
    expect(await page.post({ id: 'chat-1', messages: [message] })).toMatchObject({
      status: 409,
      body: { error: { code: 'approval-decided' } },
    })
    await page.untilMessages((messages) => messages.at(-1)?.parts.at(-1)?.type === 'text')
    expect(testBridge.wallet.payments).toEqual([])
    expect(await page.history(id)).toEqual(['requested', 'denied'])
    await expectRecord(page, await page.open(client))
  })

  it('[AP25] an unknown approval and one of another person get the same error', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    const taro = testBridge.page('taro')
    const strange = [
      await taro.decide(id, { approved: true }),
      await taro.decide('no-such-approval', { approved: true }),
      await taro.post(answer({ id, approved: true }, chat.lastMessage?.id)),
      await taro.post(answer({ id: 'no-such-approval', approved: true })),
      await taro.show(id),
      await taro.show('no-such-approval'),
      await page.post(answer({ id: 'no-such-approval', approved: true }, chat.lastMessage?.id)),
    ]
    expect(new Set(strange.map((reply) => JSON.stringify(reply)))).toHaveLength(1)
    expect(strange[0]).toMatchObject({ status: 404, body: { error: { code: 'unknown-approval' } } })
    expect(await taro.inbox()).toEqual([])
    expect(testBridge.wallet.payments).toEqual([])
    expect(await page.history(id)).toEqual(['requested'])
    await chat.decide(true)
    expect(testBridge.wallet.payments).toEqual([{ amount: 50, recipient: '花子' }])
    await expectRecord(page, chat)
  })

  it('[AP25] an approval of another chat of the same person counts only there', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    const other = await page.open(client, { id: 'chat-2' })
    await other.send(PAY)
    const body = { ...answer({ id, approved: true }, other.lastMessage?.id), id: 'chat-2' }
    expect(await page.post(body)).toMatchObject({ body: { error: { code: 'unknown-approval' } } })
    expect(testBridge.wallet.payments).toEqual([])
    expect(await page.inbox()).toHaveLength(2)
  })

  it.each([
    ['a text for yes', { approved: 'true' }],
    ['a number for yes', { approved: 1 }],
    ['nothing', {}],
    ['null', { approved: null }],
    ['a reason that is no text', { approved: true, reason: 5 }],
    ['a reason without end', { approved: true, reason: 'x'.repeat(2_001) }],
  ])('[AP26] %s is not a decision', async (_case, decision) => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    const refusal = { status: 400, body: { error: { code: 'bad-request' } } }
    expect(await page.decide(id, decision)).toMatchObject(refusal)
    expect(await page.post(answer({ id, ...decision }, chat.lastMessage?.id))).toMatchObject(
      refusal,
    )
    expect(await page.history(id)).toEqual(['requested'])
    await chat.decide(true)
    expect(testBridge.wallet.payments).toEqual([{ amount: 50, recipient: '花子' }])
    await expectRecord(page, chat)
  })

  it('[AP26] arguments and results that a client sends with its decision have no effect', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    const { status } = await page.post(answer({ id, approved: true }, chat.lastMessage?.id))
    expect(status).toBe(200)
    expect(testBridge.wallet.payments).toEqual([{ amount: 50, recipient: '花子' }])
    expect(await page.history(id)).toEqual(LIFE)
    await expectRecord(page, await page.open(client))
  })
})
