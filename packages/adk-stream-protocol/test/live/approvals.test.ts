import { describe, expect, test } from 'vitest'

import { FREE_MODEL, type TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import type { SocketClient } from '../sockets/support/socket-client.ts'
import {
  asked,
  faultsOf,
  finishOf,
  framesOf,
  joinLive,
  lastSession,
  nextUnasked,
  openLiveTestBridge,
  unasked,
  untilAsked,
  whole,
} from './support/live-test-bridge.ts'

const BLOCKING_MODEL = 'gemini-3.1-flash-live-preview'
const TWO_PAYMENTS = `${callPayment(50, '花子')} ${callPayment(30, '太郎')} [[then]] [[say Both are done.]]`

function decide(client: SocketClient, approvalId: string, approved = true): void {
  client.send({ type: 'decide', decisionId: `d-${approvalId}`, id: 'chat-1', approvalId, approved })
}

function decided(client: SocketClient, approvalId: string) {
  return client.next(
    ({ type, decisionId }) => type === 'decided' && decisionId === `d-${approvalId}`,
  )
}

/** The number of calls that have an output, in all turns. */
function outputs(client: SocketClient): number {
  const ids = client.frames.flatMap(({ chunk }) => {
    const { type, toolCallId } = (chunk ?? {}) as { type?: string; toolCallId?: unknown }
    return type === 'tool-output-available' ? [toolCallId] : []
  })
  return new Set(ids).size
}

async function toolStates(testBridge: TestBridge): Promise<unknown[]> {
  const messages = await testBridge.page().messages()
  return messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'tool-process_payment' ? [part['state']] : [])),
  )
}

describe.each([
  ['a model that goes on talking', FREE_MODEL],
  ['a model that waits', BLOCKING_MODEL],
])('%s', (_, liveModel) => {
  test('[LV9] two payments wait at once and are decided in any order, by frame and over HTTP', async () => {
    await using testBridge = await openLiveTestBridge({ liveModel })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1' })
    client.say(TWO_PAYMENTS)
    await whole(client)
    expect(finishOf(client)).toMatchObject({ finishReason: 'tool-calls' })
    const [first = '', second = ''] = asked(client)
    expect(testBridge.wallet.payments).toEqual([])
    decide(client, second)
    expect(await decided(client, second)).toMatchObject({ ok: true })
    await client.next(() => outputs(client) === 1)
    expect(testBridge.wallet.payments).toEqual([{ amount: 30, recipient: '太郎' }])
    expect(await testBridge.page().decide(first, { approved: true })).toMatchObject({ status: 200 })
    await client.next(() => outputs(client) === 2)
    expect(testBridge.wallet.payments).toHaveLength(2)
    await testBridge.page().untilMessages((messages) => JSON.stringify(messages).includes('done'))
    expect(await toolStates(testBridge)).toEqual(['output-available', 'output-available'])
    expect(await testBridge.page().messages()).toHaveLength(2)
    for (const request of unasked(client)) expect(await faultsOf(client, request)).toEqual([])
    for (const id of [first, second])
      expect(await testBridge.page().history(id)).toEqual([
        'requested',
        'approved',
        'started',
        'succeeded',
      ])
  })

  test('[LV10] a held stream stays open until all approvals are decided', async () => {
    await using testBridge = await openLiveTestBridge({ liveModel })
    await using client = await joinLive(testBridge)
    const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: TWO_PAYMENTS }] }
    client.send({
      type: 'send',
      requestId: 'r1',
      id: 'chat-1',
      messages: [message],
      body: { hold: true },
    })
    const [first = '', second = ''] = await untilAsked(client, 2)
    decide(client, second)
    await client.next(() => outputs(client) === 1)
    decide(client, first, false)
    expect(await whole(client)).toContain('Both are done.')
    expect(await client.faults()).toEqual([])
    expect(unasked(client)).toEqual([])
    expect(testBridge.wallet.payments).toEqual([{ amount: 30, recipient: '太郎' }])
    expect(await toolStates(testBridge)).toEqual(['output-denied', 'output-available'])
  })

  test('[LV11] a live approval expires at its deadline; the model and the client receive the result', async () => {
    await using testBridge = await openLiveTestBridge({
      liveModel,
      live: { approvalDeadlineMs: 60 },
    })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1' })
    client.say(`${callPayment(50)} [[then]] [[say Too late.]]`)
    const [id = ''] = await untilAsked(client)
    await testBridge.page().untilState(id, 'expired')
    await testBridge
      .page()
      .untilMessages((messages) => JSON.stringify(messages).includes('Too late.'))
    expect(testBridge.wallet.payments).toEqual([])
    expect(await toolStates(testBridge)).toEqual(['output-error'])
    expect(JSON.stringify(lastSession(testBridge).received)).toContain('expired')
    decide(client, id)
    expect(await decided(client, id)).toMatchObject({ ok: false, code: 'approval-expired' })
  })
})

test('[LV101] the id of a live approval has the form of ADK’s ids over SSE', async () => {
  await using testBridge = await openLiveTestBridge()
  await using client = await joinLive(testBridge)
  client.say(callPayment(50))
  const [id = ''] = await untilAsked(client)
  expect(id).toMatch(/^adk-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
})

test('[LV9] the conversation continues while payments wait, if the model supports it', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(callPayment(50))
  await whole(client)
  const [id = ''] = asked(client)
  client.send({ type: 'text', id: 'chat-1', text: '[[say Meanwhile.]]' })
  const meanwhile = await nextUnasked(client)
  expect(await whole(client, meanwhile)).toBe('Meanwhile.')
  client.say('[[say Still here.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Still here.')
  decide(client, id)
  await client.next(() => outputs(client) === 1)
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[LV12] a call that the model cancels is cancelled everywhere and never runs', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: BLOCKING_MODEL })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(`${callPayment(50)} [[wait seen]] [[cancel]]`)
  const [id = ''] = await untilAsked(client)
  testBridge.emulator.release('seen')
  await testBridge.page().untilState(id, 'cancelled')
  expect(await testBridge.page().history(id)).toEqual(['requested', 'cancelled'])
  expect(await toolStates(testBridge)).toEqual(['output-error'])
  const messages = await testBridge.page().messages()
  expect(JSON.stringify(messages[1])).toContain('"cancelled"')
  await client.next(({ chunk }) => JSON.stringify(chunk ?? '').includes('"cancelled"'))
  decide(client, id)
  expect(await decided(client, id)).toMatchObject({ ok: false, code: 'approval-cancelled' })
  expect(await testBridge.page().decide(id, { approved: true })).toMatchObject({ status: 410 })
  expect(testBridge.wallet.payments).toEqual([])
  for (const request of ['r1', ...unasked(client)])
    expect(await faultsOf(client, request)).toEqual([])
  client.say('[[say And on.]]', 'r9')
  expect(await whole(client, 'r9')).toBe('And on.')
})

test('[LV9] a decision can arrive with `send`, as the AI SDK sends it', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: BLOCKING_MODEL })
  await using client = await joinLive(testBridge)
  client.say(`${callPayment(50)} [[then]] [[say Done.]]`)
  await whole(client)
  const [user, assistant] = await testBridge.page().messages()
  const parts = assistant?.parts.map((part) =>
    part.type === 'tool-process_payment'
      ? { ...part, state: 'approval-responded', approval: { id: asked(client)[0], approved: true } }
      : part,
  )
  const messages = [user, { ...assistant, parts }]
  client.send({ type: 'send', requestId: 'r2', id: 'chat-1', messages })
  expect(await whole(client, 'r2')).toBe('Done.')
  expect(testBridge.wallet.payments).toHaveLength(1)
  expect(framesOf(client, 'refused')).toEqual([])
})
