import { expect, test } from 'vitest'

import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { weather } from '../support/agents.ts'
import { locationTool } from '../support/locating.ts'
import type { WireChunk } from '../support/wire-rules.ts'
import { BidiClient } from './support/bidi-client.ts'

const CONFIRMATION = 'adk_request_confirmation'
const CONFIRMATIONS = { query: '?dialect=confirmation' }
const PAY = `${callPayment(50)}[[then]][[say 花子さんに50ドルを送金しました。]]`

function toolCalls(client: BidiClient): WireChunk[] {
  return client.chunks.filter(({ type }) => type.startsWith('tool-input'))
}

/** The calls of the confirmation tool that are shown. */
function confirmations(client: BidiClient): { toolCallId: string; input: Confirmation }[] {
  return client
    .ofType('tool-input-available')
    .filter(({ toolName }) => toolName === CONFIRMATION) as never
}

interface Confirmation {
  readonly originalFunctionCall: { id: string; name: string; args: { recipient: string } }
  readonly toolConfirmation: { hint: string; confirmed: boolean }
}

test('[BD4] tools that need no confirmation pass unchanged', async () => {
  await using testBridge = await TestBridge.open({ tools: () => [weather] })
  await using client = await BidiClient.open(testBridge.url, CONFIRMATIONS)
  client.say('[[call get_weather {"place":"東京"}]][[then]][[say Sunny.]]')
  await client.untilDone()
  expect(client.types).toEqual([
    'start',
    'start-step',
    'tool-input-start',
    'tool-input-available',
    'tool-output-available',
    'finish-step',
    'start-step',
    'text-start',
    'text-delta',
    'text-end',
    'finish-step',
    'finish',
    '[DONE]',
  ])
  expect(JSON.stringify(client.chunks)).not.toContain(CONFIRMATION)
})

test('[BD4] the confirmation is a separate call after the call that it is about, linked by its id', async () => {
  const hint = 'Please approve or reject the tool call get_location().'
  await using testBridge = await TestBridge.open({
    tools: () => [locationTool({ gated: true })],
    approvals: { get_location: { hint } },
  })
  await using client = await BidiClient.open(testBridge.url, CONFIRMATIONS)
  client.say('[[call get_location {}]][[then]][[say Done.]]')
  await client.until((seen) => confirmations(seen).length === 1)
  expect(toolCalls(client).map(({ type, toolName }) => [type, toolName])).toEqual([
    ['tool-input-start', 'get_location'],
    ['tool-input-available', 'get_location'],
    ['tool-input-start', CONFIRMATION],
    ['tool-input-available', CONFIRMATION],
  ])
  const [, call, start, asked] = toolCalls(client)
  expect(asked?.['input']).toEqual({
    originalFunctionCall: { id: call?.['toolCallId'], name: 'get_location', args: {} },
    toolConfirmation: { hint, confirmed: false },
  })
  expect(start?.['toolCallId']).toBe(asked?.['toolCallId'])
  expect(asked?.['toolCallId']).not.toBe(call?.['toolCallId'])
  expect(client.types).not.toContain('tool-approval-request')
  client.confirm(String(asked?.['toolCallId']), false)
  await client.untilDone()
  expect(client.ofType('tool-output-error')).toEqual([
    {
      type: 'tool-output-error',
      toolCallId: call?.['toolCallId'],
      errorText: 'User denied execution',
    },
  ])
})

test('[BD4] [BD8] several confirmations have different ids, and each decides its own call', async () => {
  await using testBridge = await TestBridge.open()
  await using client = await BidiClient.open(testBridge.url, CONFIRMATIONS)
  const names = ['A', 'B', 'C', 'D']
  client.say(`${names.map((name) => callPayment(10, name)).join('')}[[then]][[say Done.]]`)
  for (const [index] of names.entries()) {
    await client.until((seen) => confirmations(seen).length > index)
    const { toolCallId = '', input } = confirmations(client)[index] ?? {}
    const recipient = input?.originalFunctionCall.args.recipient ?? ''
    client.confirm(toolCallId, ['B', 'D'].includes(recipient))
  }
  await client.untilDone()
  const ids = client.ofType('tool-input-available').map(({ toolCallId }) => toolCallId)
  expect(new Set(ids).size).toBe(2 * names.length)
  expect(testBridge.wallet.payments.map(({ recipient }) => recipient).toSorted()).toEqual([
    'B',
    'D',
  ])
})

test('[BD8] a decision right after the request counts, and leaves nothing pending', async () => {
  await using testBridge = await TestBridge.open()
  await using client = await BidiClient.open(testBridge.url)
  // Inside the handler of the event with the request, so before the server can do anything after sending it.
  client.socket.on('message', (data: Buffer) => {
    const id = /"tool-approval-request","approvalId":"([^"]+)"/.exec(data.toString())?.[1]
    if (id !== undefined) client.confirm(id, true)
  })
  const calls = [1, 2, 3, 4, 5].map((amount) => callPayment(amount))
  client.say(`${calls.join('[[then]]')}[[then]][[say Done.]]`)
  await client.untilDone()
  // Cleanup: each result is sent, nothing is pending, and the next turn is an ordinary one.
  expect(client.ofType('tool-output-available')).toHaveLength(5)
  expect(testBridge.wallet.balance).toBe(985)
  expect(await testBridge.page().inbox()).toEqual([])
  client.say('[[say Next.]]')
  await client.untilDone(2)
  expect(client.text).toBe('Done.Next.')
})

test('[BD2] [BD4] [BD6] a payment is requested, confirmed by its event, and made, all over one socket', async () => {
  await using testBridge = await TestBridge.open()
  await using client = await BidiClient.open(testBridge.url, CONFIRMATIONS)
  const content = [{ type: 'text', text: PAY }]
  client.send({ type: 'message', version: '1.0', data: { messages: [{ role: 'user', content }] } })
  // 1, 2: the request contains everything that the page has to show.
  await client.until((seen) => confirmations(seen).length === 1)
  const [asked] = confirmations(client)
  expect(asked?.input.originalFunctionCall).toMatchObject({
    name: 'process_payment',
    args: { amount: 50, recipient: '花子' },
  })
  expect(testBridge.wallet.payments).toEqual([])
  // 3, 4, 5: the page decides with the id of the request, and the server accepts the decision.
  client.confirm(asked?.toolCallId ?? '', true)
  await client.untilDone()
  // 6, 7: the tool has run, and the model replies.
  expect(testBridge.wallet.payments).toEqual([{ amount: 50, recipient: '花子' }])
  expect(client.text).toBe('花子さんに50ドルを送金しました。')
  const nameOf = (id: unknown): string => {
    if (id === undefined) return ''
    return id === asked?.toolCallId ? CONFIRMATION : 'process_payment'
  }
  const shown = client.chunks.flatMap(({ type, toolName, toolCallId }) =>
    type.startsWith('tool-') || type === 'text-start' || type === '[DONE]'
      ? [`${type} ${String(toolName ?? nameOf(toolCallId))}`.trim()]
      : [],
  )
  expect(shown).toEqual([
    'tool-input-start process_payment',
    'tool-input-available process_payment',
    `tool-input-start ${CONFIRMATION}`,
    `tool-input-available ${CONFIRMATION}`,
    `tool-output-available ${CONFIRMATION}`,
    'tool-output-available process_payment',
    'text-start',
    '[DONE]',
  ])
  expect(client.sent).toBe(2)
})

test('[BD2] the event is tool_result; tool-result is the part of a message, and is refused as an event', async () => {
  await using testBridge = await TestBridge.open()
  await using client = await BidiClient.open(testBridge.url)
  client.say(PAY)
  await client.untilAsked()
  const { approvalId = '' } = client.asked[0] ?? {}
  client.send({ type: 'tool-result', toolCallId: approvalId, result: { confirmed: true } })
  await client.until(({ types }) => types.includes('data-refused'))
  expect(client.ofType('data-refused')[0]?.['data']).toMatchObject({
    event: 'tool-result',
    message: expect.stringContaining('tool_result') as string,
  })
  expect(testBridge.wallet.payments).toEqual([])
  client.send({ type: 'tool_result', toolCallId: approvalId, result: { confirmed: true } })
  await client.untilDone()
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[BD9] a client that was disconnected finds the pending approval, and another one may decide it meanwhile', async () => {
  await using testBridge = await TestBridge.open()
  const page = testBridge.page()
  const first = await BidiClient.open(testBridge.url)
  first.say(PAY)
  await first.untilAsked()
  const { approvalId = '' } = first.asked[0] ?? {}
  await first[Symbol.asyncDispose]()
  expect(await page.history(approvalId)).toEqual(['requested'])
  expect(await page.decide(approvalId, { approved: true })).toMatchObject({ status: 200 })
  await page.untilState(approvalId, 'succeeded')
  await page.untilMessages((messages) => messages.at(-1)?.parts.at(-1)?.type === 'text')
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[CH2] [BD9] a response on another socket is answered by a stream that begins with start', async () => {
  await using testBridge = await TestBridge.open()
  const first = await BidiClient.open(testBridge.url)
  first.say(PAY)
  await first.untilAsked()
  const { approvalId = '' } = first.asked[0] ?? {}
  await first[Symbol.asyncDispose]()
  await using second = await BidiClient.open(testBridge.url, { chatId: 'chat-1' })
  second.confirm(approvalId, true)
  await second.untilDone()
  const types = second.types.filter((type) => type !== 'text-delta')
  expect(types.slice(0, 3)).toEqual(['start', 'data-approval', 'tool-output-available'])
  expect(second.ofType('start')).toHaveLength(1)
})

test('[BD10] the deadline is that of the approval, and is sent with the request', async () => {
  await using testBridge = await TestBridge.open({ approvalDeadlineMs: 3_600_000 })
  await using client = await BidiClient.open(testBridge.url)
  client.say(PAY)
  await client.until(({ types }) => types.includes('data-approval'))
  const { approval } = await testBridge.page().approval(client.asked[0]?.approvalId ?? '')
  expect(client.ofType('data-approval')[0]?.['data']).toMatchObject({
    deadline: approval['deadline'],
  })
  expect(Number(approval['deadline']) - Number(approval['requestedAt'])).toBe(3_600_000)
})

test('[BD8] both ids refer to the call, on every socket of the chat and on none of another chat', async () => {
  await using testBridge = await TestBridge.open({ tools: (wallet) => [paymentTool(wallet)] })
  await using first = await BidiClient.open(testBridge.url)
  first.say(`${callPayment(1, 'A')}${callPayment(2, 'B')}[[then]][[say Done.]]`)
  await first.untilAsked()
  const [a] = first.asked
  // The second approval is requested in the ledger, and shown when the first one is decided.
  const b = (await testBridge.page().inbox()).find(({ id }) => id !== a?.approvalId) as
    | { toolCallId: string }
    | undefined
  expect(b?.toolCallId).toBeDefined()
  await using stranger = await BidiClient.open(testBridge.url, { key: 'taro' })
  stranger.confirm(a?.approvalId ?? '', true)
  stranger.give(b?.toolCallId ?? '', { approved: true })
  await stranger.until(({ types }) => types.filter((type) => type === 'error').length === 2)
  await using elsewhere = await BidiClient.open(testBridge.url, { query: '?chatId=chat-2' })
  elsewhere.confirm(a?.approvalId ?? '', true)
  await elsewhere.until(({ types }) => types.includes('error'))
  expect(testBridge.wallet.payments).toEqual([])
  await using second = await BidiClient.open(testBridge.url, { query: '?chatId=chat-1' })
  second.confirm(a?.approvalId ?? '', true)
  second.give(b?.toolCallId ?? '', { approved: true, user_message: 'User approved' })
  await first.untilDone()
  expect(testBridge.wallet.payments).toHaveLength(2)
})
