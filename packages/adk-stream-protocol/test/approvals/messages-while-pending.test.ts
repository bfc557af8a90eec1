import type { Responder } from 'gemini-emulator'
import { scriptResponder } from 'gemini-emulator'
import { describe, expect, test } from 'vitest'

import type { PolicyTerms } from '../../src/approvals/policy.ts'
import { takeTurns } from '../../../../test/support/take-turns.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { approvingClients, clientsWith, liveClient } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { FREE_MODEL, TestBridge } from './support/test-bridge.ts'
import { callPayment } from './support/payments.ts'

/** Reports the outcome of the payment when its result is new, and follows the script of the newest message otherwise. */
const respond: Responder = (prompt) => {
  const { contents } = prompt
  const told = JSON.stringify(contents)
  const spoken = contents.some(({ role, parts = [] }) =>
    parts.some(({ text }) => role === 'model' && text === 'Paid after all.'),
  )
  if (told.includes('"balance"') && !spoken) return [{ type: 'say', text: 'Paid after all.' }]
  return scriptResponder(prompt)
}

interface RefusedApproval {
  readonly code: string
  readonly terms: (isBlocked: () => boolean) => PolicyTerms
  /** The arguments that a later message carries, after a message with others that do not fit. */
  readonly edit?: Record<string, unknown>
  /** Whether another message follows the one that asks. The decision is then sent with a message only. */
  readonly isOlder?: true
}

const blocks = (isBlocked: () => boolean): PolicyTerms => ({
  preview: () => (isBlocked() ? { blocked: 'Not enough money.' } : {}),
})

const REFUSALS: readonly RefusedApproval[] = [
  { code: 'call-blocked', terms: blocks },
  { code: 'call-blocked', terms: blocks, isOlder: true },
  {
    code: 'preview-failed',
    terms: (isBlocked) => ({
      preview: () => {
        if (isBlocked()) throw new Error('No preview.')
        return {}
      },
    }),
  },
  {
    code: 'not-allowed',
    terms: () => ({ chain: [{ roles: ['manager'] }, { principals: ['hanako'] }] }),
  },
  { code: 'bad-request', terms: () => ({}), edit: { amount: 50, recipient: 'Ann' } },
]

const clients = clientsWith('6')

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it('[AP14] a new message leaves the approval open; after the decision, the reply continues in its own message', async () => {
    await using testBridge = await TestBridge.open({ respond, liveModel: FREE_MODEL })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(callPayment(50))
    const [id = ''] = chat.asked
    await chat.send('[[say Meanwhile.]]')
    expect(chat.text).toBe('Meanwhile.')
    // A live model receives nothing about a call before its outcome.
    expect(testBridge.results).toMatchObject(client.live ? [] : [{ status: 'pending' }])
    expect(toolParts(chat.messages[1])).toMatchObject([{ state: 'approval-requested' }])
    await expectRecord(page, chat)
    expect(await page.decide(id, { approved: true })).toMatchObject({ status: 200 })
    await page.untilMessages((messages) => textOf(messages[1]) !== '')
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(testBridge.results).toMatchObject([{ balance: 950 }])
    const reloaded = await page.open(client)
    expect(reloaded.messages.map(({ id: messageId }) => messageId)).toEqual(
      chat.messages.map(({ id: messageId }) => messageId),
    )
    expect(toolParts(reloaded.messages[1])).toMatchObject([
      { state: 'output-available', output: { balance: 950 } },
    ])
    expect(reloaded.messages.map(textOf)).toEqual([
      callPayment(50),
      'Paid after all.',
      '[[say Meanwhile.]]',
      'Meanwhile.',
    ])
    expect(await page.history(id)).toEqual(['requested', 'approved', 'started', 'succeeded'])
    expect(page.sent).toHaveLength(2)
    await expectRecord(page, reloaded)
    await reloaded.send('[[say Next.]]')
    expect(reloaded.text).toBe('Next.')
    await expectRecord(page, reloaded)
  })

  it('[AP14] the page decides an older approval when it sends all its messages', async () => {
    await using testBridge = await TestBridge.open({ respond, liveModel: FREE_MODEL })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(callPayment(50))
    const [id = ''] = chat.asked
    await chat.send('[[say Meanwhile.]]')
    await chat.click({ id, approved: true })
    await chat.rest()
    // The client library sends the decision with its own message.
    expect(page.sent).toHaveLength(client.ours ? 3 : 2)
    if (!client.ours) await chat.sendAsItIs()
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(toolParts(chat.messages[1])).toMatchObject([{ state: 'output-available' }])
    expect(chat.messages).toHaveLength(4)
    expect(page.sent).toHaveLength(3)
    await expectRecord(page, chat)
  })

  test.skipIf(client.ours)(
    '[AP131] a click on an older approval counts when the next message is sent',
    async () => {
      await using testBridge = await TestBridge.open({ respond, liveModel: FREE_MODEL })
      const page = testBridge.page()
      const chat = await page.open(client)
      await chat.send(callPayment(50))
      const [id = ''] = chat.asked
      await chat.send('[[say Meanwhile.]]')
      await chat.click({ id, approved: true })
      await chat.rest()
      expect(page.sent).toHaveLength(2)
      await chat.send('[[say Next.]]')
      await chat.rest()
      expect(page.sent).toHaveLength(3)
      await page.untilState(id, 'succeeded')
      // A live model may receive the result of the payment before it replies to the message.
      expect(chat.text).toBe(client.live ? chat.text : 'Next.')
      await page.untilMessages(
        (messages) => client.live === true || textOf(messages[1]) === 'Paid after all.',
      )
      // The client does not know this, and sends it with every message.
      await chat.send('[[say Last.]]')
      await chat.rest()
      expect(page.sent).toHaveLength(4)
      expect(testBridge.wallet.payments).toHaveLength(1)
      expect(await page.history(id)).toEqual(['requested', 'approved', 'started', 'succeeded'])
    },
  )

  test.skipIf(client.ours).each(REFUSALS)(
    '[AP1043] an approval that was refused ($code) does not count when a later message carries it',
    async ({ code, terms, edit, isOlder }) => {
      let isBlocked = true
      await using testBridge = await TestBridge.open({
        approvals: { process_payment: terms(() => isBlocked) },
        respond,
        liveModel: FREE_MODEL,
      })
      const page = testBridge.page()
      const chat = await page.open(client)
      await chat.send(callPayment(50))
      const [id = ''] = chat.asked
      if (isOlder) await chat.send('[[say Meanwhile.]]')
      if (edit) chat.edit(id, { amount: 'all' })
      await chat.click({ id, approved: true })
      await chat.rest()
      // The client is told at once, if it sends the decision at once.
      expect(chat.status).toBe(isOlder ? 'ready' : 'error')
      if (isOlder) await chat.send('[[say Refused.]]')
      await chat.rest()
      const { length } = page.sent
      isBlocked = false
      if (edit) chat.edit(id, edit)
      const manager = code === 'not-allowed' ? testBridge.page('mari') : undefined
      await manager?.decide(id, { approved: true })
      await chat.send('[[say Next.]]')
      await chat.send('[[say Last.]]')
      await chat.rest()
      expect(chat.text).toBe('Last.')
      expect(page.sent).toHaveLength(length + 2)
      expect(testBridge.wallet.payments).toEqual([])
      const { history } = await page.approval(id)
      const voted = manager ? [{ type: 'voted', by: 'mari' }] : []
      const refused = { type: 'decision-refused', by: 'hanako', code }
      expect(history).toMatchObject([{ type: 'requested' }, refused, ...voted])
      // Another decision of the person counts.
      expect(await page.decide(id, { approved: true })).toMatchObject({ status: 200 })
      await page.untilState(id, 'succeeded')
      expect(testBridge.wallet.payments).toHaveLength(1)
    },
  )

  it('[AP15] with the option, a new message cancels the approval, and the model receives that', async () => {
    await using testBridge = await TestBridge.open({ whilePending: 'cancel' })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(callPayment(50))
    const [id = ''] = chat.asked
    await chat.send('[[say Meanwhile.]]')
    expect(chat.text).toBe('Meanwhile.')
    expect(testBridge.results).toMatchObject([{ status: 'cancelled' }])
    expect(await page.decide(id, { approved: true })).toMatchObject({
      status: 410,
      body: { error: { code: 'approval-cancelled' } },
    })
    expect(testBridge.wallet.payments).toEqual([])
    expect(await page.history(id)).toEqual(['requested', 'cancelled'])
    expect(await page.inbox()).toEqual([])
    expect(page.sent).toHaveLength(2)
    const reloaded = await page.open(client)
    expect(reloaded.messages[1]?.parts).toMatchObject([
      {},
      { state: 'output-error' },
      { data: { state: 'cancelled' } },
      {},
    ])
    await expectRecord(page, reloaded)
  })

  it('[AP16] regenerating a reply cancels its approval', async () => {
    await using testBridge = await TestBridge.open({ liveModel: FREE_MODEL })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
    const [old = ''] = chat.asked
    await chat.regenerate()
    await chat.rest()
    const [id = ''] = chat.asked
    expect(id).not.toBe(old)
    expect(await page.decide(old, { approved: true })).toMatchObject({
      status: 410,
      body: { error: { code: 'approval-cancelled' } },
    })
    expect(await page.inbox()).toMatchObject([{ id }])
    await chat.decide(true)
    expect(chat.text).toBe('Paid.')
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(await page.history(old)).toEqual(['requested', 'cancelled'])
    expect(await page.history(id)).toEqual(['requested', 'approved', 'started', 'succeeded'])
    expect(page.sent).toHaveLength(3)
    await expectRecord(page, chat)
  })

  it('[AP16] deleting a chat cancels its approvals', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
    const [id = ''] = chat.asked
    expect(await page.delete()).toMatchObject({ status: 204 })
    expect(await page.decide(id, { approved: true })).toMatchObject({
      status: 410,
      body: { error: { code: 'approval-cancelled' } },
    })
    await chat.decide(true)
    expect(chat.refusal).toBe('approval-cancelled')
    expect(await page.inbox()).toEqual([])
    expect(await page.history(id)).toEqual(['requested', 'cancelled'])
    expect(testBridge.wallet.payments).toEqual([])
    expect(await page.messages()).toEqual([])
    const anew = await page.open(client)
    await anew.send(`${callPayment(5)}[[then]][[say Paid.]]`)
    await anew.decide(true)
    expect(testBridge.wallet.payments).toHaveLength(1)
    await expectRecord(page, anew)
  })
})

describe.each([...approvingClients, liveClient])('$name', (client) => {
  test('[AP132] with the option, messages that a page has removed are removed from the chat', async () => {
    await using testBridge = await TestBridge.open({ whenShortened: 'rewind' })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send('[[say One.]]')
    await chat.send('the secret [[say Two.]]')
    chat.keepFirst(2)
    await chat.send('[[say Three.]]')
    await chat.rest()
    expect(chat.messages.map(textOf)).toEqual(['[[say One.]]', 'One.', '[[say Three.]]', 'Three.'])
    expect(await page.messages()).toMatchObject(chat.messages.map(({ id }) => ({ id })))
    expect(testBridge.lastPrompt).not.toContain('the secret')
  })
})

const said = (text: string) => ({
  id: crypto.randomUUID(),
  role: 'user',
  parts: [{ type: 'text', text }],
})

/** A chat of two turns, and the messages that remain after a message with the given history. */
async function send(
  testBridge: TestBridge,
  shorten: (messages: readonly { id: string }[]) => readonly object[],
  second = '[[say Two.]]',
): Promise<number> {
  const page = testBridge.page()
  await page.post({ id: 'chat-1', messages: [said('[[say One.]]')] })
  await page.post({ id: 'chat-1', messages: [said(second)] })
  for (const { id } of await page.inbox()) {
    await page.decide(id, { approved: true })
    await page.untilState(id, 'succeeded')
    await page.untilMessages((messages) => messages.length === 4)
  }
  const messages = [...shorten(await page.messages()), said('[[say Three.]]')]
  expect(await page.post({ id: 'chat-1', messages })).toMatchObject({ status: 200 })
  return (await page.messages()).length
}

describe('a shorter history', () => {
  test.each<readonly [string, (messages: readonly { id: string }[]) => readonly object[]]>([
    ['is whole', (messages) => messages],
    ['holds the newest message alone', () => []],
    ['has no ids', (messages) => messages.slice(0, 2).map(({ id: _id, ...rest }) => rest)],
    [
      'begins with something else',
      ([first, ...rest]) => [{ ...first, id: 'x' }, ...rest.slice(0, 1)],
    ],
    ['ends with a message of the user', (messages) => messages.slice(0, 1)],
  ])('[AP132] that %s removes nothing', async (_name, shorten) => {
    await using testBridge = await TestBridge.open({ whenShortened: 'rewind' })
    expect(await send(testBridge, shorten)).toBe(6)
  })

  test('[AP132] removes nothing by default: it may be of a tab that has not seen the rest', async () => {
    await using testBridge = await TestBridge.open()
    expect(await send(testBridge, (messages) => messages.slice(0, 2))).toBe(6)
  })

  test('[AP132] does not remove a call that a person approved and that ran', async () => {
    await using testBridge = await TestBridge.open({ whenShortened: 'rewind' })
    const pay = `${callPayment(50)}[[then]][[say Paid.]]`
    expect(await send(testBridge, (messages) => messages.slice(0, 2), pay)).toBe(6)
    expect(testBridge.wallet.payments).toHaveLength(1)
  })
})
