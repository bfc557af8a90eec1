import type { BaseTool } from '@google/adk'
import { FunctionTool } from '@google/adk'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { adkApi } from '../../src/client/index.ts'
import { BidiClient } from '../bidi/support/bidi-client.ts'
import {
  joinLive,
  openLiveTestBridge,
  untilAsked,
  whole,
} from '../live/support/live-test-bridge.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { tool } from '../support/agents.ts'
import { toolParts } from '../support/chat-probe.ts'
import { approvalOf, clientsWith } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { TestBridge } from './support/test-bridge.ts'
import type { Page } from './support/page.ts'
import { callPayment } from './support/payments.ts'

/** A tool that asks how many days of leave are granted, as in ADK's documentation. */
function leaveTool(): { readonly leave: BaseTool; readonly granted: unknown[] } {
  const granted: unknown[] = []
  const leave = new FunctionTool({
    name: 'request_leave',
    description: 'Asks for leave.',
    parameters: z.object({ days: z.number() }),
    execute: ({ days }, context) => {
      if (!context?.toolConfirmation) {
        context?.requestConfirmation({ hint: 'How many days?', payload: { days: 0 } })
        return { status: 'pending' }
      }
      granted.push(context.toolConfirmation.payload)
      return { asked: days, granted: context.toolConfirmation.payload }
    },
  })
  return { leave, granted }
}

const ASK = '[[call request_leave {"days":5}]][[then]][[say Granted.]]'
const THREE = { days: 3 }

async function openAsked(text = ASK) {
  const { leave, granted } = leaveTool()
  const testBridge = await TestBridge.open({ tools: () => [leave] })
  const page = testBridge.page()
  await say(page, text)
  const ids = (await page.inbox()).map(({ id }) => id)
  return { testBridge, page, granted, id: ids[0] ?? '', ids }
}

async function say(page: Page, text: string): Promise<void> {
  const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
  await (await post(page, '/stream', { id: 'chat-1', messages: [message] })).text()
}

function post(page: Page, path: string, body: unknown): Promise<Response> {
  return page.fetch(`http://page${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

describe.each(clientsWith('7'))('$name', (client) => {
  test('[AP120] the payload of a decision reaches the second run of the tool', async () => {
    const { leave, granted } = leaveTool()
    await using testBridge = await TestBridge.open({ tools: () => [leave] })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(ASK)
    const [id = ''] = chat.asked
    await chat.decide({ approved: true, payload: THREE })
    expect(granted).toEqual([THREE])
    expect(toolParts(chat.lastMessage)).toMatchObject([{ output: { asked: 5, granted: THREE } }])
    const { approval, history } = await page.approval(id)
    expect(approval).toMatchObject({ payload: { days: 0 }, approvedPayload: THREE })
    expect(history).toMatchObject([
      { type: 'requested' },
      { type: 'approved', payload: THREE },
      { type: 'started', args: { days: 5 }, payload: THREE },
      { type: 'succeeded' },
    ])
    const parts = (await page.messages()).at(-1)?.parts
    expect(parts?.find(({ type }) => type === 'data-approval')?.data).toMatchObject({
      payload: { days: 0 },
      approvedPayload: THREE,
    })
    await expectRecord(page, chat)
  })
})

const WAYS: readonly [
  string,
  (page: Page, id: string, testBridge: TestBridge) => Promise<unknown>,
][] = [
  ['POST /approvals/:id', (page, id) => page.decide(id, { approved: true, payload: THREE })],
  [
    'adkApi',
    (page, id) =>
      adkApi({ url: 'http://page', fetch: page.fetch }).decide(id, {
        approved: true,
        payload: THREE,
      }),
  ],
  [
    'the output of adk_request_confirmation',
    async (page, id) => {
      const [user, asked] = await page.messages()
      const output = { confirmed: true, payload: THREE }
      const part = { type: 'tool-adk_request_confirmation', toolCallId: id, output }
      const parts = [...(asked?.parts ?? []), { ...part, state: 'output-available' }]
      const messages = [user, { ...asked, parts }]
      const path = '/stream?dialect=confirmation'
      await (await post(page, path, { id: 'chat-1', messages })).text()
    },
  ],
  [
    'a tool-result of a user message',
    async (page, id) => {
      const result = { confirmed: true, payload: THREE }
      const content = [{ type: 'tool-result', toolCallId: id, result }]
      await (
        await post(page, '/stream', { id: 'chat-1', messages: [{ role: 'user', content }] })
      ).text()
    },
  ],
  [
    'a `decide` frame',
    async (_page, approvalId, testBridge) => {
      await using client = await SocketClient.open(testBridge.url, {
        headers: { 'x-api-key': 'hanako' },
      })
      const frame = { type: 'decide', id: 'chat-1', approvalId, approved: true, payload: THREE }
      client.send({ ...frame, decisionId: 'd1' })
      expect(await client.nextOf('decided')).toMatchObject({ ok: true })
      // WS7: the same again is the same; another payload is another decision.
      client.send({ ...frame, decisionId: 'd2' })
      expect(await client.next(({ decisionId }) => decisionId === 'd2')).toMatchObject({ ok: true })
      client.send({ ...frame, decisionId: 'd3', payload: { days: 4 } })
      expect(await client.next(({ decisionId }) => decisionId === 'd3')).toMatchObject({
        ok: false,
        code: 'approval-decided',
      })
    },
  ],
  [
    'a `tool_result` of text frames',
    async (_page, id, testBridge) => {
      await using client = await BidiClient.open(testBridge.url, { query: '?chatId=chat-1' })
      const result = { confirmed: true, payload: THREE }
      client.send({ type: 'tool_result', version: '1.0', data: { toolCallId: id, result } })
      await client.until(() => client.done === 1)
    },
  ],
]

test.each(WAYS)('[AP120] a payload can be sent by %s', async (_way, decide) => {
  const { testBridge, page, granted, id } = await openAsked()
  await using _ = testBridge
  await decide(page, id, testBridge)
  await page.untilState(id, 'succeeded')
  expect(granted).toEqual([THREE])
  await page.untilMessages((messages) => toolParts(messages[1])[0]?.output !== undefined)
})

test('[AP120] two calls that are decided by one request have each their own payload', async () => {
  const call = '[[call request_leave {"days":5}]]'
  const { testBridge, page, granted, ids } = await openAsked(`${call}${call}[[then]][[say Both.]]`)
  await using _ = testBridge
  const [user, asked] = await page.messages()
  const parts = asked?.parts.map((part) =>
    part.state === 'approval-requested'
      ? {
          ...part,
          state: 'approval-responded',
          approval: { ...approvalOf(part), approved: true },
        }
      : part,
  )
  const payloads = Object.fromEntries(ids.map((id, index) => [id, { days: index + 1 }]))
  const body = { id: 'chat-1', messages: [user, { ...asked, parts }], payloads }
  await (await post(page, '/stream', body)).text()
  expect(granted).toHaveLength(2)
  expect(granted).toEqual(expect.arrayContaining([{ days: 1 }, { days: 2 }]))
})

test('[AP120] without a payload, the tool gets the one that it proposed', async () => {
  const { testBridge, page, granted, id } = await openAsked()
  await using _ = testBridge
  await page.decide(id, { approved: true })
  await page.untilState(id, 'succeeded')
  expect(granted).toEqual([{ days: 0 }])
})

test('[AP120] a live conversation passes the payload to the tool too', async () => {
  const { leave, granted } = leaveTool()
  await using testBridge = await openLiveTestBridge({ tools: () => [leave] })
  await using client = await joinLive(testBridge)
  client.say(ASK)
  const [approvalId = ''] = await untilAsked(client)
  await whole(client)
  const frame = { type: 'decide', decisionId: 'd1', id: 'chat-1', approvalId, approved: true }
  client.send({ ...frame, payload: THREE })
  expect(await client.nextOf('decided')).toMatchObject({ ok: true })
  await testBridge.page().untilState(approvalId, 'succeeded')
  expect(granted).toEqual([THREE])
})

test('[AP121] a payload for a tool that asked for none is rejected, and the approval stays open', async () => {
  await using testBridge = await TestBridge.open()
  const page = testBridge.page()
  await say(page, `${callPayment(50)}[[then]][[say Paid.]]`)
  const [{ id } = { id: '' }] = await page.inbox()
  expect(await page.decide(id, { approved: true, payload: THREE })).toMatchObject({
    status: 409,
    body: { error: { code: 'no-payload' } },
  })
  expect((await page.approval(id)).approval.state).toBe('requested')
  expect(testBridge.wallet.payments).toEqual([])
})

test('[AP121] a payload that is too large is rejected, and a denial has none', async () => {
  const { testBridge, page, granted, id } = await openAsked()
  await using _ = testBridge
  const payload = { note: 'x'.repeat(70_000) }
  expect(await page.decide(id, { approved: true, payload })).toMatchObject({
    status: 413,
    body: { error: { code: 'too-large' } },
  })
  expect((await page.approval(id)).approval.state).toBe('requested')
  await page.decide(id, { approved: false, payload: THREE })
  expect((await page.approval(id)).approval).not.toHaveProperty('approvedPayload')
  expect(granted).toEqual([])
})

test('[AP121] if several people decide, one person cannot set the payload', async () => {
  const ask = tool('ask_leave', (_args, context) => {
    if (!context?.toolConfirmation)
      context?.requestConfirmation({ hint: '?', payload: { days: 0 } })
    return { status: 'pending' }
  })
  await using testBridge = await TestBridge.open({
    tools: () => [ask],
    approvals: { ask_leave: { deciders: { roles: ['manager'] }, approvers: 2 } },
  })
  const page = testBridge.page()
  await say(page, '[[call ask_leave {}]]')
  const manager = testBridge.page('mari')
  const [{ id } = { id: '' }] = await manager.inbox()
  expect(await manager.decide(id, { approved: true, payload: THREE })).toMatchObject({
    status: 409,
    body: { error: { code: 'not-editable' } },
  })
})
