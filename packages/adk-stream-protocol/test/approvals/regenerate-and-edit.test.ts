import { describe, expect, test } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { nextApproval } from '../../src/approvals/next-approval.ts'
import { isRefusal } from '../../src/approvals/approval.ts'
import { ProtocolError } from '../../src/protocol/errors.ts'
import type { ChatMessage } from '../support/chat-probe.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { defer } from '../support/agents.ts'
import { clientsWith, ourClients } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { FREE_MODEL, TestBridge } from './support/test-bridge.ts'
import { callPayment, paymentTool } from './support/payments.ts'

const PAY = `${callPayment(50)}[[then]][[say Paid.]]`

const idsOf = (messages: readonly ChatMessage[]) => messages.map(({ id }) => id)

const clients = clientsWith('7')

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it('[AP170] a reply with an approved call that ran can be neither regenerated nor removed by an edit', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send('[[say Hello.]]')
    await chat.send(PAY)
    await chat.decide(true)
    const before = await page.messages()
    expect(before.map(textOf)).toEqual(['[[say Hello.]]', 'Hello.', PAY, 'Paid.'])
    const { asked } = testBridge
    await chat.regenerate()
    await chat.rest()
    expect(chat.refusal).toBe('already-acted')
    await chat.send('[[say Changed.]]', { messageId: before[0]?.id ?? '' })
    await chat.rest()
    expect(chat.refusal).toBe('already-acted')
    expect(await page.messages()).toEqual(before)
    expect(testBridge.asked).toBe(asked)
    const reloaded = await page.open(client)
    await reloaded.send('[[say And on.]]')
    expect(reloaded.messages).toHaveLength(6)
    expect(testBridge.wallet.payments).toHaveLength(1)
    await expectRecord(page, reloaded)
  })

  it('[AP170] a reply with a denied call can be regenerated', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const old = chat.lastMessage?.id
    await chat.decide(false)
    await chat.regenerate()
    await chat.rest()
    expect(chat.lastMessage?.id).not.toBe(old)
    expect(chat.asked).toHaveLength(1)
    expect(idsOf(await page.messages())).toEqual(idsOf(chat.messages))
  })

  it('[AP171] the outcome of an earlier call stays when a later reply is regenerated', async () => {
    await using testBridge = await TestBridge.open({ liveModel: FREE_MODEL })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    await chat.send('[[say Meanwhile.]]')
    await page.decide(id, { approved: true })
    await page.untilMessages((messages) => textOf(messages[1]) !== '')
    const reloaded = await page.open(client)
    const before = await page.messages()
    await reloaded.regenerate()
    await reloaded.rest()
    expect(reloaded.refusal).toBeUndefined()
    const after = await page.messages()
    expect(after.slice(0, 3)).toEqual(before.slice(0, 3))
    expect(toolParts(after[1])).toMatchObject([{ state: 'output-available' }])
    expect(after[3]?.id).not.toBe(before[3]?.id)
    expect(testBridge.wallet.payments).toHaveLength(1)
  })
})

describe.each(ourClients)('$name', (client) => {
  test('[CL170] messages that the server keeps stay on the page', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    await chat.decide(true)
    const { messages } = chat
    await chat.regenerate()
    expect(chat.refusal).toBe('already-acted')
    expect(chat.messages).toEqual(messages)
    await chat.send('[[say Changed.]]', { messageId: messages[0]?.id ?? '' })
    expect(chat.refusal).toBe('already-acted')
    expect(chat.messages).toEqual(messages)
    await chat.send('[[say And on.]]')
    expect(chat.text).toBe('And on.')
    expect(idsOf(await page.messages())).toEqual(idsOf(chat.messages))
  })
})

describe.each(ourClients)('$name', (client) => {
  test('[TU1949] messages that the page has not shown are neither replaced by a regenerated reply nor by an edited message', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send('[[say Hello.]]')
    const behind = await page.open(client)
    await chat.send('[[say Newer.]]')
    const stored = await page.messages()
    expect(stored).toHaveLength(4)
    const { asked } = testBridge
    const changes = [
      () => behind.regenerate(),
      () => behind.send('[[say Changed.]]', { messageId: stored[0]?.id ?? '' }),
    ]
    for (const change of changes) {
      behind.keepFirst(2)
      await change()
      await behind.rest()
      expect(behind.refusal).toBe('newer-messages')
      // The messages that the person has not seen.
      await behind.until(() => behind.messages.length === 4)
      expect(await page.messages()).toEqual(stored)
    }
    expect(testBridge.asked).toBe(asked)
    // Now the person has seen them.
    await behind.send('[[say Changed.]]', { messageId: stored[0]?.id ?? '' })
    await behind.rest()
    expect(behind.refusal).toBeUndefined()
    expect((await page.messages()).map(textOf)).toEqual(['[[say Changed.]]', 'Changed.'])
  })
})

/** Opens a chat in which an approved payment runs until the test resolves `gate`. */
async function openChatWithRunningCall() {
  const gate = defer()
  const called = defer()
  const before = async (): Promise<void> => {
    called.resolve()
    await gate.promise
  }
  const testBridge = await TestBridge.open({ tools: (wallet) => [paymentTool(wallet, { before })] })
  const page = testBridge.page()
  const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: PAY }] }
  await page.post({ id: 'chat-1', messages: [message] })
  const id = (await page.inbox())[0]?.id ?? ''
  await page.decide(id, { approved: true })
  await called.promise
  const regeneration = { id: 'chat-1', messages: [message], trigger: 'regenerate-message' }
  const close = (): Promise<void> => testBridge[Symbol.asyncDispose]()
  return { testBridge, page, id, regeneration, gate, [Symbol.asyncDispose]: close }
}

const REFUSED = {
  status: 409,
  body: { error: { code: 'already-acted', message: new ProtocolError('already-acted').message } },
}

test('[AP170] a running call is not removed, and its result is shown', async () => {
  await using running = await openChatWithRunningCall()
  const { testBridge, page, regeneration, gate } = running
  expect(await page.post(regeneration)).toMatchObject(REFUSED)
  gate.resolve()
  await page.untilMessages((messages) => textOf(messages[1]) === 'Paid.')
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[AP170] a call with an unknown outcome is not removed', async () => {
  await using chat = await openChatWithRunningCall()
  const { testBridge, page, id, regeneration, gate } = chat
  const { approvals } = testBridge.store
  const running = await approvals.get(id)
  if (running?.state.name !== 'executing') throw new Error('The call does not run.')
  const { worker } = running.state
  const lost = nextApproval(running, { type: 'lose', worker }, await approvals.now())
  if (isRefusal(lost)) throw new Error('The ledger refused to mark the call as lost.')
  expect(await approvals.replace(lost)).toBe(true)
  expect(await page.post(regeneration)).toMatchObject(REFUSED)
  expect(await page.approval(id)).toMatchObject({ approval: { state: 'unknown' } })
  gate.resolve()
})
