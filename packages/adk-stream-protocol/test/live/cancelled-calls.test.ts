import type { AppendEventRequest, Event } from '@google/adk'
import { BasePlugin, InMemorySessionService } from '@google/adk'
import { expect, test } from 'vitest'

import { FREE_MODEL, type TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { textOf } from '../support/chat-probe.ts'
import { defer } from '../../src/shared/async.ts'
import { joinLive, lastSession, openLiveTestBridge, whole } from './support/live-test-bridge.ts'

const BLOCKING_MODEL = 'gemini-3.1-flash-live-preview'

/** A host plugin that delays calls between the model and their tools, as a slow database does. */
class SlowCalls extends BasePlugin {
  readonly received = defer()
  readonly gate = defer()

  override async onEventCallback({ event }: { event: Event }): Promise<Event | undefined> {
    if (event.content?.parts?.some(({ functionCall }) => functionCall)) {
      this.received.resolve()
      await this.gate.promise
    }
    return undefined
  }
}

test.each([true, false])(
  '[LV960] a call that the model cancels before it starts does not run, and its message ends; gated: %s',
  async (gated) => {
    const slow = new SlowCalls('slow')
    await using testBridge = await openLiveTestBridge({
      liveModel: BLOCKING_MODEL,
      plugins: [slow],
      tools: (wallet) => [paymentTool(wallet, { gated })],
    })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1' })
    client.say(callPayment(50))
    await slow.received.promise
    lastSession(testBridge).interrupt()
    await client.nextOf('interrupted')
    slow.gate.resolve()
    await whole(client)
    const page = testBridge.page()
    await page.untilMessages(([, reply]) => JSON.stringify(reply).includes('"cancelled"'))
    expect(await page.inbox()).toEqual([])
    expect(testBridge.wallet.payments).toEqual([])
    client.say('[[say And on.]]', 'r2')
    expect(await whole(client, 'r2')).toBe('And on.')
    await page.untilMessages(({ length }) => length === 4)
    expect(textOf((await page.messages())[3])).toBe('And on.')
    expect(JSON.stringify(lastSession(testBridge).received)).not.toContain('functionResponses')
    expect(testBridge.errors).toEqual([])
  },
)

/** Sessions that report when they have stored the result of a call, right before the model receives it. */
class ReportingSessions extends InMemorySessionService {
  onResult: () => void = () => undefined

  override async appendEvent(request: AppendEventRequest): Promise<Event> {
    const stored = await super.appendEvent(request)
    if (stored.content?.parts?.some(({ functionResponse }) => functionResponse)) this.onResult()
    return stored
  }
}

test.each([
  ['speaks on', FREE_MODEL],
  ['waits', BLOCKING_MODEL],
  ['waits, and completes the turn of its call at once', 'gemini-unknown-live'],
])(
  '[LV960] a result that is sent while the model cancels its call gets no reply; the model %s',
  async (_name, liveModel) => {
    const sessionService = new ReportingSessions()
    await using testBridge = await openLiveTestBridge({
      liveModel,
      sessionService,
      tools: (wallet) => [paymentTool(wallet, { gated: false })],
    })
    // The model cancels the call before the result can reach it, and the server has sent the result before it receives that.
    sessionService.onResult = () => testBridge.emulator.release('result')
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1' })
    client.say(`${callPayment(50)} [[wait result]] [[cancel]]`)
    await lastIgnored(testBridge)
    client.say('[[say And on.]]', 'r2')
    expect(await whole(client, 'r2')).toBe('And on.')
    const page = testBridge.page()
    await page.untilMessages(({ length }) => length === 4)
    expect((await page.messages()).map(textOf)).toEqual([
      expect.anything(),
      '',
      '[[say And on.]]',
      'And on.',
    ])
    expect(testBridge.wallet.payments).toHaveLength(1)
  },
)

/** Resolves when the model has received a result that it ignores. */
async function lastIgnored(testBridge: TestBridge): Promise<void> {
  await expect.poll(() => testBridge.emulator.live.sessions.at(-1)?.ignoredResponses.length).toBe(1)
}
