import { describe, expect, test } from 'vitest'

import { scriptResponder } from 'gemini-emulator'

import { shareOf } from '../../../../test/support/long-run.ts'
import { FREE_MODEL, TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { expectValid } from '../approvals/support/expect-record.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { weather } from '../support/agents.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { locationTool, musicTool, TOKYO } from '../support/locating.ts'
import { findFaults } from '../support/wire-rules.ts'
import { BidiClient } from './support/bidi-client.ts'
import { FORMS } from './support/answer-forms.ts'

const LIFE = ['requested', 'approved', 'started', 'succeeded']
const HISTORIES = { true: LIFE, false: ['requested', 'denied'] } as const
const STATES = { true: 'output-available', false: 'output-denied' } as const
const BOTH = `${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say Done.]]`

describe.each(FORMS)('$name', ({ answer }) => {
  test.each([true, false])('[BD3] [BD6] one call, approved: %s', async (approved) => {
    await using testBridge = await TestBridge.open()
    await using client = await BidiClient.open(testBridge.url)
    const page = testBridge.page()
    client.say(`${callPayment(50)}[[then]][[say Decided.]]`)
    await client.untilAsked()
    const [asked] = client.asked
    expect(testBridge.wallet.payments).toEqual([])
    expect(client.done).toBe(0)
    answer(client, asked, { approved })
    await client.untilDone()
    expect(client.text).toBe('Decided.')
    expect(client.sent).toBe(2)
    expect(client.ofType('start')).toHaveLength(1)
    expect(client.ofType('finish')).toHaveLength(1)
    expect(client.types.at(-1)).toBe('[DONE]')
    expect(testBridge.wallet.balance).toBe(approved ? 950 : 1_000)
    expect(testBridge.wallet.payments).toHaveLength(approved ? 1 : 0)
    expect(await page.history(asked?.approvalId ?? '')).toEqual(HISTORIES[`${approved}`])
    const messages = await page.messages()
    await expectValid(messages)
    expect(toolParts(messages[1])).toMatchObject([{ state: STATES[`${approved}`] }])
    // Nothing follows the end.
    await client.sync()
    expect(client.done).toBe(1)
    expect(testBridge.asked).toBe(2)
  })

  test('[BD6] the reason of a denial reaches the model and the record', async () => {
    await using testBridge = await TestBridge.open()
    await using client = await BidiClient.open(testBridge.url)
    client.say(`${callPayment(50)}[[then]][[say わかりました。]]`)
    await client.untilAsked()
    const [asked] = client.asked
    answer(client, asked, { approved: false, reason: '高すぎます' })
    await client.untilDone()
    expect(testBridge.results).toMatchObject([{ status: 'denied', reason: '高すぎます' }])
    const { history } = await testBridge.page().approval(asked?.approvalId ?? '')
    expect(history.at(-1)).toMatchObject({ type: 'denied', reason: '高すぎます' })
  })
})

describe.each([
  [true, true],
  [true, false],
  [false, true],
  [false, false],
])('two at once, Alice %s, Bob %s', (alice, bob) => {
  test('[BD3] [BD6] [BD100] the second approval is requested when the first call has its result', async () => {
    await using testBridge = await TestBridge.open()
    await using client = await BidiClient.open(testBridge.url)
    const page = testBridge.page()
    client.say(BOTH)
    for (const [index, approved] of [alice, bob].entries()) {
      await client.untilAsked(index + 1)
      await page.untilInbox(2 - index)
      // Nothing of the second call is shown while the first one waits.
      expect(client.ofType('tool-input-available')).toHaveLength(index + 1)
      expect(client.types.at(-1)).toBe('finish-step')
      client.confirm(client.asked[index]?.approvalId ?? '', approved)
    }
    await client.untilDone()
    expect(client.text).toBe('Done.')
    expect(client.sent).toBe(3)
    expect(client.done).toBe(1)
    const outputs = client.types.filter((type) => /^tool-(?:approval|output)/.test(type))
    expect(outputs).toEqual([
      'tool-approval-request',
      alice ? 'tool-output-available' : 'tool-output-denied',
      'tool-approval-request',
      bob ? 'tool-output-available' : 'tool-output-denied',
    ])
    await expectDecided(testBridge, client.asked, [alice, bob])
  })

  test('[BD6] [BD100] a second approval that was decided elsewhere is not requested any more', async () => {
    await using testBridge = await TestBridge.open()
    await using client = await BidiClient.open(testBridge.url)
    const page = testBridge.page()
    client.say(BOTH)
    await client.untilAsked()
    await page.untilInbox(2)
    const [first] = client.asked
    const second = (await page.inbox()).find(({ id }) => id !== first?.approvalId)
    await page.decide(second?.id ?? '', { approved: bob })
    await page.untilState(second?.id ?? '', bob ? 'succeeded' : 'denied')
    client.confirm(first?.approvalId ?? '', alice)
    await client.untilDone()
    expect(client.asked).toHaveLength(1)
    expect(client.text).toBe('Done.')
    expect(client.done).toBe(1)
    expect(client.ofType('tool-output-available')).toHaveLength(Number(alice) + Number(bob))
    const approvals = [first?.approvalId ?? '', second?.id ?? ''].map((approvalId) => ({
      approvalId,
    }))
    await expectDecided(testBridge, approvals, [alice, bob])
  })
})

async function expectDecided(
  testBridge: TestBridge,
  asked: readonly { readonly approvalId: string }[],
  [alice = false, bob = false]: readonly boolean[],
): Promise<void> {
  const page = testBridge.page()
  expect(testBridge.wallet.balance).toBe(1_000 - (alice ? 30 : 0) - (bob ? 40 : 0))
  expect(testBridge.wallet.payments).toHaveLength(Number(alice) + Number(bob))
  for (const [index, { approvalId }] of asked.entries())
    expect(await page.history(approvalId)).toEqual(HISTORIES[`${index === 0 ? alice : bob}`])
  const messages = await page.messages()
  await expectValid(messages)
  expect(toolParts(messages[1])).toMatchObject([
    { input: { recipient: 'Alice' }, state: STATES[`${alice}`] },
    { input: { recipient: 'Bob' }, state: STATES[`${bob}`] },
  ])
  expect(testBridge.asked).toBe(2)
}

test.each([
  ['before two calls at once', `[[say Please decide.]]${BOTH}`, 'Please decide.Done.'],
  [
    'before and between two calls',
    `[[say First.]]${callPayment(30, 'Alice')}[[then]][[say Second.]]${callPayment(40, 'Bob')}[[then]][[say Done.]]`,
    'First.Second.Done.',
  ],
])('[BD100] text %s follows the last decision', async (_where, script, text) => {
  await using testBridge = await TestBridge.open()
  await using client = await BidiClient.open(testBridge.url)
  client.say(script)
  for (const [index, approved] of [true, false].entries()) {
    await client.untilAsked(index + 1)
    // A client of the earlier system sends no response if its message has text and a result.
    expect(client.text).toBe('')
    client.confirm(client.asked[index]?.approvalId ?? '', approved)
  }
  await client.untilDone()
  expect(client.text).toBe(text)
  expect(client.types.slice(-3)).toEqual(['finish-step', 'finish', '[DONE]'])
  // The steps of BD4 are around the request, not around the call.
  const faults = await findFaults(
    client.chunks.filter(({ type }) => type !== '[DONE]'),
    true,
  )
  expect(faults.filter((fault) => /text/.test(fault))).toEqual([])
})

test('[BD100] text of a turn without calls is in its step', async () => {
  await using testBridge = await TestBridge.open()
  await using client = await BidiClient.open(testBridge.url)
  client.say('[[say Hello there.]]')
  await client.untilDone()
  expect(client.types.filter((type) => type !== 'text-delta')).toEqual([
    'start',
    'start-step',
    'text-start',
    'text-end',
    'finish-step',
    'finish',
    '[DONE]',
  ])
})

test('[BD100] text of the model during an approval request follows the result', async () => {
  await using testBridge = await TestBridge.open({ liveModel: FREE_MODEL })
  await using client = await BidiClient.open(testBridge.url)
  client.say(`${callPayment(50)}[[wait asked]][[say Please decide.]][[then]][[say Paid.]]`)
  await client.untilAsked()
  testBridge.emulator.release('asked')
  // Another client reads it at once.
  await using other = await SocketClient.open(testBridge.url, {
    headers: { 'x-api-key': 'hanako' },
  })
  other.resume()
  await other.untilText('Please decide.')
  expect(client.text).toBe('')
  expect(client.types.at(-1)).toBe('finish-step')
  client.confirm(client.asked[0]?.approvalId ?? '', true)
  await client.untilDone()
  expect(client.text).toBe('Please decide.Paid.')
  expect(client.types.indexOf('text-start')).toBeGreaterThan(
    client.types.indexOf('tool-output-available'),
  )
})

test.each([
  ['without a word in between', ''],
  ['with text in between', '[[say Next.]]'],
])('[BD3] [BD6] one after the other %s: one stream, one end', async (_case, between) => {
  await using testBridge = await TestBridge.open()
  await using client = await BidiClient.open(testBridge.url)
  const calls = [callPayment(10, 'A'), callPayment(20, 'B'), callPayment(30, 'C')]
  client.say(`${calls.join(`[[then]]${between}`)}[[then]][[say Done.]]`)
  for (const [index, approved] of [true, false, true].entries()) {
    await client.untilAsked(index + 1)
    expect(client.done).toBe(0)
    client.confirm(client.asked[index]?.approvalId ?? '', approved)
  }
  await client.untilDone()
  expect(client.text).toBe(`${between === '' ? '' : 'Next.Next.'}Done.`)
  expect(client.ofType('start')).toHaveLength(1)
  expect(client.done).toBe(1)
  expect(testBridge.wallet.payments.map(({ recipient }) => recipient)).toEqual(['A', 'C'])
  expect(testBridge.asked).toBe(4)
  const messages = await testBridge.page().messages()
  expect(messages).toHaveLength(2)
  await expectValid(messages)
})

test('[BD6] the result of a parallel call that needs no approval is sent at once', async () => {
  await using testBridge = await TestBridge.open({
    tools: (wallet) => [paymentTool(wallet), weather],
  })
  await using client = await BidiClient.open(testBridge.url)
  const look = '[[call get_weather {"place":"東京"}]]'
  client.say(`${look}${callPayment(50)}[[then]][[say Sunny and paid.]]`)
  await client.until(
    ({ asked, types }) => asked.length === 1 && types.includes('tool-output-available'),
  )
  expect(testBridge.wallet.payments).toEqual([])
  client.confirm(client.asked[0]?.approvalId ?? '', true)
  await client.untilDone()
  expect(client.ofType('tool-output-available').map(({ output }) => output)).toMatchObject([
    { celsius: 18 },
    { balance: 950 },
  ])
  expect(client.done).toBe(1)
})

test('[BD3] [BD6] the turn ends if the model says nothing after the result', async () => {
  await using testBridge = await TestBridge.open()
  await using client = await BidiClient.open(testBridge.url)
  client.say(`${callPayment(50)}[[then]]`)
  await client.untilAsked()
  client.confirm(client.asked[0]?.approvalId ?? '', true)
  await client.untilDone()
  expect(client.text).toBe('')
  expect(client.done).toBe(1)
  expect(testBridge.wallet.balance).toBe(950)
})

test('[BD10] [BD6] an expired approval ends in the same stream; a late decision is rejected', async () => {
  await using testBridge = await TestBridge.open({ approvalDeadlineMs: 150 })
  await using client = await BidiClient.open(testBridge.url)
  client.say(`${callPayment(50)}[[then]][[say Too late.]]`)
  await client.untilDone()
  const [asked] = client.asked
  expect(client.ofType('tool-output-error')).toMatchObject([{ toolCallId: asked?.toolCallId }])
  expect(client.ofType('data-approval').at(-1)?.['data']).toMatchObject({ state: 'expired' })
  expect(client.text).toBe('Too late.')
  client.confirm(asked?.approvalId ?? '', true)
  await client.until(({ types }) => types.at(-1) === 'error' || types.at(-2) === 'error')
  expect(testBridge.wallet.payments).toEqual([])
  expect(await testBridge.page().history(asked?.approvalId ?? '')).toEqual(['requested', 'expired'])
  client.say('[[say Still here.]]')
  await client.until(({ text }) => text.endsWith('Still here.'))
})

test('[BD6] a browser tool sends its result as an event, once', async () => {
  await using testBridge = await TestBridge.open({ tools: () => [musicTool()] })
  await using client = await BidiClient.open(testBridge.url)
  client.say('[[call change_bgm {"track":2}]][[then]][[say Changed.]]')
  await client.until(({ types }) => types.includes('tool-input-available'))
  const [call] = client.ofType('tool-input-available')
  client.give(String(call?.['toolCallId']), { success: true, track: 2 })
  await client.untilDone()
  expect(client.text).toBe('Changed.')
  expect(client.done).toBe(1)
  expect(testBridge.results).toMatchObject([{ success: true, track: 2 }])
})

test.each([true, false])(
  '[BD6] [DI3] a gated browser tool: first the decision, then the result; approved: %s',
  async (approved) => {
    await using testBridge = await TestBridge.open({ tools: () => [locationTool({ gated: true })] })
    await using client = await BidiClient.open(testBridge.url)
    client.say('[[call get_location {}]][[then]][[say There you are.]]')
    await client.untilAsked()
    const [asked] = client.asked
    const { approvalId = '', toolCallId = '' } = asked ?? {}
    // A result is rejected before the approval.
    client.give(toolCallId, TOKYO)
    await client.until(({ types }) => types.includes('data-refused'))
    client.confirm(approvalId, approved)
    if (approved) {
      await client.until(({ chunks }) => JSON.stringify(chunks).includes('"state":"approved"'))
      client.give(toolCallId, TOKYO)
    }
    await client.untilDone()
    expect(client.text).toBe('There you are.')
    expect(client.done).toBe(1)
    expect(testBridge.results).toMatchObject([approved ? TOKYO : { status: 'denied' }])
  },
)

test('[BD9] [BD6] reconnect while pending: the chat in the URL replays the whole turn, and it continues', async () => {
  await using testBridge = await TestBridge.open()
  const first = await BidiClient.open(testBridge.url)
  first.say(`${callPayment(50)}[[then]][[say Paid.]]`)
  await first.untilAsked()
  await first[Symbol.asyncDispose]()
  await using second = await BidiClient.open(testBridge.url, { query: '?chatId=chat-1' })
  await second.untilAsked()
  expect(second.asked).toEqual(first.asked)
  second.confirm(second.asked[0]?.approvalId ?? '', true)
  await second.untilDone()
  expect(second.text).toBe('Paid.')
  expect(second.done).toBe(1)
  expect(testBridge.wallet.payments).toHaveLength(1)
  await expectValid(await testBridge.page().messages())
})

test.each(shareOf(FORMS, { group: 0, groups: 2 }))(
  '[BD9] [BD6] a lost socket, and $name over another one: the rest of the message is sent once',
  async ({ answer }) => {
    await using testBridge = await TestBridge.open()
    const first = await BidiClient.open(testBridge.url)
    first.say(`[[say Well.]]${callPayment(50)}[[then]][[say Paid.]]`)
    await first.untilAsked()
    await first[Symbol.asyncDispose]()
    await using second = await BidiClient.open(testBridge.url, { chatId: 'chat-1' })
    answer(second, first.asked[0], { approved: true })
    await second.untilDone()
    expect(second.text).toBe('Paid.')
    expect(second.done).toBe(1)
    expect(second.asked).toEqual([])
    expect(second.ofType('start')).toEqual(first.ofType('start'))
    expect(second.ofType('tool-output-available')).toHaveLength(1)
    expect(second.types.at(-1)).toBe('[DONE]')
    expect(testBridge.wallet.payments).toHaveLength(1)
    await second.sync()
    expect(second.done).toBe(1)
  },
)

test.each([
  ['with the dialect', { query: '?chatId=chat-1&dialect=bidi', protocols: [] }],
  ['without it', { query: '?chatId=chat-1', protocols: [] }],
])('[BD9] a chat in the URL, %s, replays the running turn', async (_case, options) => {
  await using testBridge = await TestBridge.open()
  const first = await BidiClient.open(testBridge.url)
  first.say(`${callPayment(50)}[[then]][[say Paid.]]`)
  await first.untilAsked()
  await first[Symbol.asyncDispose]()
  await using second = await BidiClient.open(testBridge.url, options)
  await second.untilAsked()
  expect(second.asked).toEqual(first.asked)
  second.confirm(second.asked[0]?.approvalId ?? '', true)
  await second.untilDone()
  expect(second.text).toBe('Paid.')
  expect(second.ofType('start')).toHaveLength(1)
})

test('[BD9] a browser tool, and a lost socket: its result over another one continues the message', async () => {
  await using testBridge = await TestBridge.open({ tools: () => [musicTool()] })
  const first = await BidiClient.open(testBridge.url)
  first.say('[[call change_bgm {"track":2}]][[then]][[say Changed.]]')
  await first.until(({ types }) => types.includes('data-browser-call'))
  const [call] = first.ofType('tool-input-available')
  await first[Symbol.asyncDispose]()
  await using second = await BidiClient.open(testBridge.url, { chatId: 'chat-1' })
  second.give(String(call?.['toolCallId']), { success: true, track: 2 })
  await second.untilDone()
  expect(second.text).toBe('Changed.')
  expect(second.ofType('start')).toEqual(first.ofType('start'))
  expect(second.done).toBe(1)
})

test.each(shareOf(FORMS, { group: 1, groups: 2 }))(
  '[BD8] [BD9] [BD6] reconnect after a restart of the server: $name decides, and the reply follows',
  async ({ answer }) => {
    await using testBridge = await TestBridge.open()
    const first = await BidiClient.open(testBridge.url)
    first.say(`${callPayment(50)}[[then]][[say Paid.]]`)
    await first.untilAsked()
    await first[Symbol.asyncDispose]()
    await testBridge.restart()
    await using second = await BidiClient.open(testBridge.url, { query: '?chatId=chat-1' })
    answer(second, first.asked[0], { approved: true })
    await second.untilDone()
    expect(second.text).toBe('Paid.')
    expect(second.ofType('start')).toHaveLength(1)
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(await testBridge.page().history(first.asked[0]?.approvalId ?? '')).toEqual(LIFE)
  },
)

test('[BD9] [BD6] a second socket reads the same turn, and each of them may decide', async () => {
  await using testBridge = await TestBridge.open()
  await using first = await BidiClient.open(testBridge.url)
  first.say(`${callPayment(50)}[[then]][[say Paid.]]`)
  await first.untilAsked()
  await using second = await BidiClient.open(testBridge.url, { query: '?chatId=chat-1' })
  await second.untilAsked()
  second.confirm(second.asked[0]?.approvalId ?? '', true)
  await Promise.all([first.untilDone(), second.untilDone()])
  // The other socket sent the same decision a moment later.
  first.confirm(first.asked[0]?.approvalId ?? '', true)
  await first.sync()
  expect([first.text, second.text]).toEqual(['Paid.', 'Paid.'])
  expect([first.done, second.done]).toEqual([1, 1])
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[BD3] [BD6] a new message while an approval is pending: both turns end, each once', async () => {
  await using testBridge = await TestBridge.open({
    liveModel: FREE_MODEL,
    respond: (prompt) =>
      JSON.stringify(prompt.contents.at(-1)).includes('"balance"')
        ? [{ type: 'say', text: 'Paid after all.' }]
        : scriptResponder(prompt),
  })
  await using client = await BidiClient.open(testBridge.url)
  client.say(callPayment(50))
  await client.untilAsked()
  client.say('[[say Meanwhile.]]')
  await client.untilDone(2)
  expect(client.text).toBe('Meanwhile.')
  client.confirm(client.asked[0]?.approvalId ?? '', true)
  await client.untilDone(3)
  expect(client.text).toBe('Meanwhile.Paid after all.')
  const ids = client.ofType('start').map(({ messageId }) => messageId)
  expect(ids).toHaveLength(3)
  expect(ids[2]).toBe(ids[0])
  expect(testBridge.wallet.payments).toHaveLength(1)
  const messages = await testBridge.page().messages()
  expect(messages.map(textOf)).toEqual([
    callPayment(50),
    'Paid after all.',
    '[[say Meanwhile.]]',
    'Meanwhile.',
  ])
})
