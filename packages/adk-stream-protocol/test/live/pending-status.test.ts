import { startEmulator } from 'gemini-emulator'
import { describe, expect, test } from 'vitest'

import { callPayment } from '../approvals/support/payments.ts'
import { nest } from '../approvals/support/nested-agents.ts'
import { FREE_MODEL, type TestBridge } from '../approvals/support/test-bridge.ts'
import type { SocketClient } from '../sockets/support/socket-client.ts'
import {
  joinLive,
  lastSession,
  openLiveTestBridge,
  untilAsked,
  whole,
} from './support/live-test-bridge.ts'
import { isTurnComplete, memoryOf, runReconnecting, textOf } from './support/reconnecting-run.ts'

interface Response {
  readonly id?: string
  readonly response?: Record<string, unknown>
  readonly scheduling?: string
  readonly willContinue?: boolean
}

/** The responses that the live model received, by connection. */
function responsesOf(testBridge: TestBridge): Response[][] {
  return testBridge.emulator.live.sessions.map(({ received }) =>
    received.flatMap((frame) => {
      const { functionResponses = [] } = Object(frame['toolResponse'] ?? {}) as {
        functionResponses?: Response[]
      }
      return functionResponses
    }),
  )
}

const PARTIAL = {
  response: { status: 'awaiting_approval' },
  scheduling: 'SILENT',
  willContinue: true,
}

function decide(client: SocketClient, approvalId: string): void {
  const decision = { type: 'decide', decisionId: 'd1', id: 'chat-1', approvalId, approved: true }
  client.send(decision)
}

async function untilSaid(testBridge: TestBridge, text: string): Promise<void> {
  await testBridge.page().untilMessages((messages) => JSON.stringify(messages).includes(text))
}

describe.each([FREE_MODEL, 'gemini-3.8-live'])('%s', (liveModel) => {
  test('[LV493] the model knows that a call waits, speaks on, and receives the result once', async () => {
    await using testBridge = await openLiveTestBridge({ liveModel })
    await using client = await joinLive(testBridge)
    client.say(`${callPayment(50)} [[then]] [[say Done.]]`)
    const [id = ''] = await untilAsked(client)
    await lastSession(testBridge).waitFor((frame) => 'toolResponse' in frame)
    expect(responsesOf(testBridge)).toMatchObject([[PARTIAL]])
    client.say('[[say Meanwhile.]]', 'r2')
    expect(await whole(client, 'r2')).toBe('Meanwhile.')
    expect(testBridge.lastPrompt).toContain('awaiting_approval')
    expect(lastSession(testBridge).pendingCalls).toHaveLength(1)
    decide(client, id)
    await lastSession(testBridge).waitFor(() => lastSession(testBridge).pendingCalls.length === 0)
    const [, result] = responsesOf(testBridge)[0] ?? []
    expect(result).toMatchObject({ response: { success: true }, scheduling: 'WHEN_IDLE' })
    expect(result?.willContinue ?? false).toBe(false)
    expect(responsesOf(testBridge)[0]).toHaveLength(2)
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(testBridge.errors).toEqual([])
  })
})

test('[LV493] an agent that waits for approvals inside has one status, however often it waits', async () => {
  await using testBridge = await openLiveTestBridge({
    liveModel: FREE_MODEL,
    agent: (model, tools) => nest(model, tools),
  })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  const request = `${callPayment(1)}[[then]]${callPayment(2, 'two')}[[then]][[say Twice.]]`
  client.say(`[[call travel ${JSON.stringify({ request })}]] [[then]] [[say Done.]]`)
  await untilAsked(client)
  const page = testBridge.page()
  for (let count = 1; count <= 2; count += 1) {
    await expect.poll(() => page.inbox()).toHaveLength(1)
    const [asked] = await page.inbox()
    await page.decide(String(asked?.id), { approved: true })
    await page.untilState(String(asked?.id), 'succeeded')
  }
  await untilSaid(testBridge, 'Done.')
  expect(responsesOf(testBridge)).toMatchObject([[PARTIAL, { response: { result: 'Twice.' } }]])
})

test('[LV493] a model that waits for its calls receives nothing before the result', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: 'gemini-3.1-flash-live-preview' })
  await using client = await joinLive(testBridge)
  client.say(`${callPayment(50)} [[then]] [[say Done.]]`)
  const [id = ''] = await untilAsked(client)
  expect(responsesOf(testBridge)).toEqual([[]])
  decide(client, id)
  await untilSaid(testBridge, 'Done.')
  expect(responsesOf(testBridge)).toMatchObject([[{ response: { success: true } }]])
})

test('[LV493] after a reconnect the model knows the status, does not reply to it, and receives the result once', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(`${callPayment(50)} [[then]] [[say Done.]]`)
  const [id = ''] = await untilAsked(client)
  const first = lastSession(testBridge)
  await first.waitFor((frame) => 'toolResponse' in frame)
  first.drop()
  await expect.poll(() => testBridge.emulator.live.sessions.length).toBe(2)
  client.say('[[say Meanwhile.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Meanwhile.')
  expect(testBridge.lastPrompt).toContain('awaiting_approval')
  decide(client, id)
  await testBridge.page().untilState(id, 'succeeded')
  await expect.poll(() => testBridge.lastPrompt).toContain('"success":true')
  const replies = lastSession(testBridge).history.filter(({ role }) => role === 'model')
  expect(JSON.stringify(replies)).not.toContain('awaiting_approval')
  const results = responsesOf(testBridge).flat()
  expect(results.filter(({ willContinue }) => willContinue !== true).length).toBeLessThanOrEqual(1)
  expect(testBridge.wallet.payments).toHaveLength(1)
})

/** The texts, calls and approvals that a reloaded page shows of the reply. */
async function shown(testBridge: TestBridge) {
  const parts = (await testBridge.page().messages())[1]?.parts ?? []
  return parts.flatMap(({ type, text, state, data }) => {
    if (type === 'text') return [text]
    if (type === 'data-approval') return [(data as { state: string }).state]
    return state === undefined ? [] : [state]
  })
}

test.each([FREE_MODEL, 'gemini-3.8-live', 'gemini-3.1-flash-live-preview'])(
  '[LV495] [AP470] %s claims success and tries again: the page shows the ledger’s state, and nobody is asked twice',
  async (liveModel) => {
    await using testBridge = await openLiveTestBridge({ liveModel })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1' })
    client.say(
      `[[say I have paid.]] ${callPayment(50)} [[then]] ${callPayment(49)} [[then]] [[say It is paid.]]`,
    )
    const [approvalId = ''] = await untilAsked(client)
    await whole(client)
    expect(await shown(testBridge)).toEqual(['I have paid.', 'approval-requested', 'requested'])
    client.send({ type: 'decide', decisionId: 'd1', id: 'chat-1', approvalId, approved: false })
    await untilSaid(testBridge, 'It is paid.')
    expect(await shown(testBridge)).toEqual([
      'I have paid.',
      'output-denied',
      'denied',
      'output-error',
      'It is paid.',
    ])
    expect(testBridge.results.slice(-2)).toMatchObject([
      { status: 'denied' },
      { status: 'denied', retryable: false },
    ])
    const page = testBridge.page()
    expect(await page.history(approvalId)).toEqual(['requested', 'denied'])
    expect(await page.inbox()).toEqual([])
    expect(testBridge.wallet.payments).toEqual([])
  },
)

test.each(['in the setup', 'after the setup'])(
  '[LC6] a handle that Gemini refuses with 1007 %s is dropped, and the conversation continues',
  async (when) => {
    const isInSetup = when === 'in the setup'
    await using emulator = await startEmulator({
      live: isInSetup ? { refusedHandleCode: 1007, handleLifetimeMs: 0 } : {},
    })
    await using run = await runReconnecting(emulator)
    run.say('[[say One.]]')
    await run.until(isTurnComplete)
    const first = emulator.live.sessions[0]
    await first?.waitForSent((frame) => 'sessionResumptionUpdate' in frame)
    first?.close(1011, 'The session has ended.')
    await expect.poll(() => emulator.live.sessions[1]?.setup).toBeDefined()
    if (!isInSetup) emulator.live.sessions[1]?.close(1007, 'Request contains an invalid argument.')
    await expect.poll(() => emulator.live.sessions.length).toBe(3)
    run.say('[[say Two.]]')
    expect(textOf(await run.until(isTurnComplete))).toBe('Two.')
    const last = emulator.live.sessions.at(-1)
    expect(last?.setup?.sessionResumption?.handle).toBeUndefined()
    expect(last && memoryOf(last).join()).toContain('One.')
  },
)
