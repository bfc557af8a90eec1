import { setTimeout as delay } from 'node:timers/promises'

import type { Content } from '@google/genai'
import { BasePlugin, InMemorySessionService } from '@google/adk'
import { expect, test } from 'vitest'

import { ResumeAttempts } from '../../src/server/chats/decisions/decided-turns.ts'
import { toolParts } from '../support/chat-probe.ts'
import { approvingClients } from './support/approving-chat.ts'
import { TestBridge } from './support/test-bridge.ts'
import { callPayment } from './support/payments.ts'

/** Ends every run before its agent, once the test says so. */
class Closing extends BasePlugin {
  isClosed = false

  override beforeRunCallback(): Promise<Content | undefined> {
    const content = { role: 'model', parts: [{ text: 'Closed.' }] }
    return Promise.resolve(this.isClosed ? content : undefined)
  }
}

test('[AP114] an approved call that ADK never starts is cancelled, and the session stops growing', async () => {
  const plugin = new Closing('closing')
  const sessions = new InMemorySessionService()
  await using testBridge = await TestBridge.open({
    plugins: [plugin],
    sessionService: sessions,
    limits: { sweepMs: 20 },
  })
  const [client] = approvingClients
  if (!client) throw new Error('There is no client.')
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
  const [id = ''] = chat.asked
  plugin.isClosed = true
  await page.decide(id, { approved: true })
  await page.untilState(id, 'cancelled')
  await page.untilMessages((messages) => toolParts(messages.at(-1))[0]?.state === 'output-error')
  expect(testBridge.wallet.payments).toEqual([])
  expect(testBridge.errors.map(String).join()).toMatch(
    /process_payment was cancelled: ADK did not start/,
  )
  const count = async () => {
    const key = { appName: 'adk-stream-protocol', userId: 'hanako', sessionId: 'chat-1' }
    return (await sessions.getSession(key))?.events.length
  }
  const before = await count()
  // Several sweeps.
  await delay(100)
  expect(await count()).toBe(before)
  plugin.isClosed = false
  await chat.send('[[say Next.]]')
  expect(chat.text).toBe('Next.')
})

test('[AP114] a call whose run fails is tried again with growing delays, and not for ever', () => {
  const attempts = new ResumeAttempts()
  expect(attempts.isDue('a')).toBe(true)
  let count = 1
  while (attempts.note('a', 'failed')) {
    expect(attempts.isDue('a')).toBe(false)
    count += 1
  }
  expect(count).toBe(20)
  expect(attempts.isDue('b')).toBe(true)
})
