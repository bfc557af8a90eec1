import { describe, expect, test } from 'vitest'

import { FREE_MODEL, type TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { type SocketClient } from '../sockets/support/socket-client.ts'
import { textOf } from '../support/chat-probe.ts'
import { ASK, locationTool } from '../support/locating.ts'
import { textParts } from './support/conversation.ts'
import {
  faultsOf,
  joinLive,
  lastSession,
  nextUnasked,
  openLiveTestBridge,
  unasked,
  untilAsked,
  whole,
} from './support/live-test-bridge.ts'

const BLOCKING_MODEL = 'gemini-3.1-flash-live-preview'

describe.each([FREE_MODEL, BLOCKING_MODEL])('%s', (liveModel) => {
  test('[LV33] [TU880] a held reply that was stopped continues when its approval is decided, and is not stopped then', async () => {
    await using testBridge = await openLiveTestBridge({ liveModel })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1' })
    const approvalId = await stopHeld(testBridge, client)
    client.send({ type: 'decide', decisionId: 'd1', id: 'chat-1', approvalId, approved: true })
    await testBridge.page().untilState(approvalId, 'succeeded')
    const turn = await nextUnasked(client)
    await client.untilText('Paid.', turn)
    expect(client.chunks(turn).map(({ type }) => type)).toContain('tool-output-available')
    await whole(client, turn)
    expect(await faultsOf(client, turn)).toEqual([])
    expect(await textParts(testBridge)).toEqual([
      ['user', TEXT],
      ['assistant', 'Paid.'],
    ])
    client.say('[[say Next.]]', 'r2')
    expect(await whole(client, 'r2')).toBe('Next.')
    await expectNotStopped(testBridge, client.chunks(turn).at(-1))
  })
})

test('[TU880] a held reply that was stopped continues after a restart when its approval is decided, and is not stopped then', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: BLOCKING_MODEL })
  await using client = await joinLive(testBridge)
  const approvalId = await stopHeld(testBridge, client)
  await testBridge.restart()
  const page = testBridge.page()
  await page.decide(approvalId, { approved: true })
  await page.untilMessages(([, answer]) => textOf(answer) === 'Paid.')
  const [streamed] = (await page.messages()).slice(1)
  expect(streamed).toMatchObject({ metadata: { stopped: false } })
})

test('[TU880] a stopped reply continues when its browser tool is approved: it is not stopped while the page runs the tool', async () => {
  await using testBridge = await openLiveTestBridge({
    liveModel: BLOCKING_MODEL,
    tools: () => [locationTool({ gated: true })],
  })
  await using client = await joinLive(testBridge)
  const approvalId = await stopHeld(testBridge, client, ASK)
  client.say('[[say Next.]] [[wait more]] [[say Done.]]', 'r2')
  await client.untilText('Next.', 'r2')
  await testBridge.page().decide(approvalId, { approved: true })
  const shownParts = async (): Promise<unknown> =>
    (await testBridge.page().messages())[1]?.parts.map(({ type }) => type)
  await expect.poll(shownParts).toContain('data-browser-call')
  testBridge.emulator.release('more')
  await whole(client, 'r2')
  expect((await testBridge.page().messages())[1]).toMatchObject({ metadata: { stopped: false } })
})

const TEXT = `${callPayment(50)} [[then]] [[say Paid.]]`

/** Stops a held reply while an approval waits. Returns the id of the approval. */
async function stopHeld(
  testBridge: TestBridge,
  client: SocketClient,
  text = TEXT,
): Promise<string> {
  const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text }] }]
  const body = { hold: true }
  client.send({ type: 'send', requestId: 'r1', id: 'chat-1', messages, body })
  const [approvalId = ''] = await untilAsked(client)
  client.send({ type: 'abort', requestId: 'r1' })
  await testBridge
    .page()
    .untilMessages(([, answer]) => JSON.stringify(answer).includes('"stopped":true'))
  return approvalId
}

/** Checks the streamed end of the first reply, and the stored reply. */
async function expectNotStopped(testBridge: TestBridge, finish: unknown): Promise<void> {
  expect(finish).toMatchObject({ type: 'finish', messageMetadata: { stopped: false } })
  const [, answer] = await testBridge.page().messages()
  expect(answer).toMatchObject({ metadata: { stopped: false } })
}

test('[LV34] calls of a stopped reply are cancelled: none runs, and no approval is requested', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: BLOCKING_MODEL })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  const calls = `${callPayment(50)} ${callPayment(30)} [[then]] [[say Two.]]`
  client.say(`[[say One.]] [[wait gate]] ${calls}`)
  await client.untilText('One.')
  client.send({ type: 'abort', requestId: 'r1' })
  await testBridge.page().untilMessages(([, answer]) => JSON.stringify(answer).includes('stopped'))
  testBridge.emulator.release('gate')
  await lastSession(testBridge).waitForSent((frame) => JSON.stringify(frame).includes('Two.'))
  client.say('[[say Three.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Three.')
  const answers = JSON.stringify(lastSession(testBridge).received).match(/"status":"cancelled"/g)
  expect(answers).toHaveLength(2)
  expect(testBridge.wallet.payments).toEqual([])
  expect(await testBridge.page().inbox()).toEqual([])
  expect(unasked(client)).toEqual([])
  expect((await textParts(testBridge)).map(([, text]) => text).slice(1)).toEqual([
    'One.',
    '[[say Three.]]',
    'Three.',
  ])
  const [, stopped] = await testBridge.page().messages()
  expect(stopped?.parts.map(({ type }) => type)).not.toContain('tool-process_payment')
  expect(testBridge.errors).toEqual([])
})
