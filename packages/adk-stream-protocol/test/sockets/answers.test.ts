import { FunctionTool } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { browserTool } from '../../src/server/index.ts'
import { TestBridge, type TestBridgeOptions } from '../approvals/support/test-bridge.ts'
import type { Page } from '../approvals/support/page.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { assistant, tool } from '../support/agents.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { serve, type TestServer } from '../support/serve.ts'
import { SocketClient } from './support/socket-client.ts'

const PAY = `${callPayment(50)}[[then]][[say Paid.]]`

interface Asked extends AsyncDisposable {
  readonly testBridge: TestBridge
  readonly page: Page
  readonly client: SocketClient
  readonly approvalId: string
}

/** A payment that waits for hanako, who is on a socket. */
async function ask(options: TestBridgeOptions = {}): Promise<Asked> {
  const testBridge = await TestBridge.open(options)
  const client = await SocketClient.open(testBridge.url, { headers: { 'x-api-key': 'hanako' } })
  client.say(PAY)
  await client.nextOf('end', 'r1')
  const asked = client.chunks().find(({ type }) => type === 'tool-approval-request')
  return {
    testBridge,
    page: testBridge.page(),
    client,
    approvalId: String(asked?.['approvalId']),
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]()
      await testBridge[Symbol.asyncDispose]()
    },
  }
}

interface DecideOptions {
  readonly approvalId: string
  readonly approved?: boolean
  readonly decisionId?: string
  readonly id?: string
  readonly args?: object
}

/** Sends a `decide` frame. Returns its acknowledgement. */
async function decide(client: SocketClient, options: DecideOptions) {
  const { approved = true, decisionId = crypto.randomUUID(), id = 'chat-1', ...rest } = options
  const before = client.frames.length
  client.send({ type: 'decide', id, decisionId, approved, ...rest })
  return client.next(
    (frame) => frame['decisionId'] === decisionId && client.frames.indexOf(frame) >= before,
  )
}

test('[WS7] a decision is acknowledged with the new state, and the turn continues', async () => {
  await using asked = await ask()
  const { client, page, testBridge, approvalId } = asked
  const acknowledgement = await decide(client, { approvalId, decisionId: 'd1' })
  expect(acknowledgement).toEqual({
    type: 'decided',
    decisionId: 'd1',
    ok: true,
    state: 'approved',
    requestId: '',
  })
  await page.untilMessages((messages) => textOf(messages.at(-1)) === 'Paid.')
  expect(testBridge.wallet.payments).toHaveLength(1)
  expect(await page.history(approvalId)).toEqual(['requested', 'approved', 'started', 'succeeded'])
})

test('[WS7] a denied call does not run, and an edited one runs with the edited arguments', async () => {
  await using denied = await ask()
  expect(
    await decide(denied.client, { approvalId: denied.approvalId, approved: false }),
  ).toMatchObject({ ok: true, state: 'denied' })
  await denied.page.untilMessages((messages) => textOf(messages.at(-1)) === 'Paid.')
  expect(denied.testBridge.wallet.payments).toEqual([])

  await using edited = await ask()
  const { client, page, testBridge, approvalId } = edited
  const args = { amount: 5, recipient: 'Hanako' }
  expect(await decide(client, { approvalId, args: { amount: -5 } })).toMatchObject({
    ok: false,
    code: 'bad-request',
  })
  expect(await decide(client, { approvalId, args })).toMatchObject({ ok: true, state: 'approved' })
  await page.untilMessages((messages) => textOf(messages.at(-1)) === 'Paid.')
  expect(testBridge.wallet.payments).toEqual([args])
  expect(await decide(client, { approvalId, args })).toMatchObject({ ok: true, state: 'succeeded' })
  // The same decision with other arguments is another decision.
  expect(await decide(client, { approvalId })).toMatchObject({
    ok: false,
    code: 'approval-decided',
  })
})

test('[WS7] a decision sent again is acknowledged again and counts once, also over another socket', async () => {
  await using asked = await ask()
  const { client, page, testBridge, approvalId } = asked
  const decision = { approvalId, decisionId: 'd1' }
  const all = await Promise.all([
    decide(client, decision),
    decide(client, { approvalId, decisionId: 'd2' }),
    decide(client, { approvalId, decisionId: 'd3' }),
  ])
  expect(all.map(({ ok }) => ok)).toEqual([true, true, true])
  await page.untilMessages((messages) => textOf(messages.at(-1)) === 'Paid.')
  await using other = await SocketClient.open(testBridge.url, {
    headers: { 'x-api-key': 'hanako' },
  })
  expect(await decide(other, decision)).toMatchObject({ ok: true, state: 'succeeded' })
  expect(await decide(other, { approvalId, approved: false })).toMatchObject({
    ok: false,
    code: 'approval-decided',
  })
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[WS7] a decision about an unknown approval, another chat or another person gets the same error', async () => {
  await using asked = await ask()
  const { client, testBridge, approvalId } = asked
  await using taro = await SocketClient.open(testBridge.url, { headers: { 'x-api-key': 'taro' } })
  const refusals = [
    await decide(client, { approvalId: 'nobody-asked' }),
    await decide(client, { approvalId, id: 'chat-2' }),
    await decide(taro, { approvalId }),
  ]
  for (const refusal of refusals) {
    expect(refusal).toMatchObject({ ok: false, code: 'unknown-approval' })
  }
  expect(new Set(refusals.map(({ message }) => message)).size).toBe(1)
  expect(testBridge.wallet.payments).toEqual([])
  expect(await decide(client, { approvalId })).toMatchObject({ ok: true })
})

test('[WS7] one vote of several is acknowledged as `requested`, each time', async () => {
  const chain = [{ count: 2, principals: ['hanako', 'taro'] }]
  await using asked = await ask({ approvals: { process_payment: { chain } } })
  const { client, testBridge, approvalId } = asked
  for (let time = 0; time < 2; time += 1) {
    expect(await decide(client, { approvalId })).toMatchObject({ ok: true, state: 'requested' })
  }
  expect(await decide(client, { approvalId, approved: false })).toMatchObject({
    ok: false,
    code: 'approval-voted',
  })
  expect(testBridge.wallet.payments).toEqual([])
})

const ASK = '[[call get_location {}]][[then]][[say There you are.]]'

async function locate(): Promise<TestServer> {
  const tools = [
    browserTool({
      name: 'get_location',
      description: 'Where the person is.',
      parameters: z.object({}),
      output: z.object({ latitude: z.number() }),
    }),
    tool('get_time', () => ({ time: 'noon' })),
    new FunctionTool({
      name: 'get_mail',
      description: 'Waits for a letter.',
      isLongRunning: true,
      execute: () => undefined,
    }),
  ]
  return serve({
    authenticate: ({ headers }) => ({ id: headers.get('x-api-key') ?? 'hanako' }),
    agent: (model) => assistant(model, { tools }),
  })
}

/** Sends a `tool-output` frame. Returns its acknowledgement. */
async function give(client: SocketClient, toolCallId: string, rest: object) {
  const outputId = crypto.randomUUID()
  client.send({ type: 'tool-output', id: 'chat-1', outputId, toolCallId, ...rest })
  return client.next((frame) => frame['outputId'] === outputId)
}

async function callOf(client: SocketClient, text = ASK): Promise<string> {
  client.say(text)
  await client.nextOf('end', 'r1')
  const call = client.chunks().find(({ type }) => type === 'tool-input-available')
  return String(call?.['toolCallId'])
}

test('[WS9] an output continues the turn, once', async () => {
  await using server = await locate()
  await using client = await SocketClient.open(server.url)
  const toolCallId = await callOf(client)
  const output = { latitude: 35.7 }
  expect(await give(client, toolCallId, { output })).toMatchObject({
    type: 'tool-output-taken',
    ok: true,
  })
  const browser = server.browser()
  while ((await browser.messages()).running) await new Promise(setImmediate)
  const { messages } = await browser.messages()
  expect(toolParts(messages.at(-1))).toMatchObject([{ state: 'output-available', output }])
  expect(textOf(messages.at(-1))).toBe('There you are.')
  expect(await give(client, toolCallId, { output })).toMatchObject({
    ok: false,
    code: 'nothing-new',
  })
  expect(server.emulator.requests).toHaveLength(2)
})

test('[WS9] the model receives an error of the client', async () => {
  await using server = await locate()
  await using client = await SocketClient.open(server.url)
  const toolCallId = await callOf(client)
  const request = server.emulator.nextRequest(({ body }) => JSON.stringify(body).includes('no GPS'))
  expect(await give(client, toolCallId, { errorText: 'no GPS' })).toMatchObject({ ok: true })
  await (
    await request
  ).done
})

test('[WS9] an output that nothing waits for is rejected: another call, chat, person, a tool of the server', async () => {
  await using server = await locate()
  await using client = await SocketClient.open(server.url)
  await using taro = await SocketClient.open(server.url, { headers: { 'x-api-key': 'taro' } })
  const toolCallId = await callOf(client)
  client.say('[[call get_time {}]][[then]][[say Noon.]]', 'r2', 'chat-2')
  await client.nextOf('end', 'r2')
  const done = client.chunks('r2').find(({ type }) => type === 'tool-input-available')
  client.say('[[call get_mail {}]]', 'r3', 'chat-3')
  await client.nextOf('end', 'r3')
  const mail = client.chunks('r3').find(({ type }) => type === 'tool-input-available')
  const output = { latitude: 35.7 }
  const refusals = [
    await give(client, 'no-such-call', { output }),
    await give(client, toolCallId, { output, id: 'chat-2' }),
    await give(taro, toolCallId, { output }),
    await give(client, String(done?.['toolCallId']), { output, id: 'chat-2' }),
  ]
  for (const refusal of refusals) expect(refusal).toMatchObject({ ok: false, code: 'nothing-new' })
  // BT120: this call waits for the application, not for a client.
  const foreign = await give(client, String(mail?.['toolCallId']), { output, id: 'chat-3' })
  expect(foreign).toMatchObject({ ok: false, code: 'not-client-output' })
  expect(await give(client, toolCallId, { output })).toMatchObject({ ok: true })
})
