import { afterEach, expect, test, vi } from 'vitest'

import type { ModelCall, Timeline } from '../../src/protocol/timeline.ts'
import { redact } from '../../src/server/chats/model-calls.ts'
import { createBridge, type BridgeOptions } from '../../src/server/index.ts'
import type { Page } from '../approvals/support/page.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { assistant, EmulatedGemini, tool } from '../support/agents.ts'

afterEach(() => void vi.unstubAllEnvs())

const send = (text: string, id = 'chat-1') => ({
  id,
  messages: [{ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }],
})

async function readCalls(page: Page, chatId = 'chat-1'): Promise<(string | undefined)[]> {
  const response = await page.fetch(`http://page/chats/${chatId}/timeline`)
  const { entries } = (await response.json()) as Timeline
  return entries.flatMap((entry) => (entry.type === 'model' ? [entry.callId] : []))
}

const readCall = (page: Page, callId: string | undefined, chatId = 'chat-1') =>
  page.fetch(`http://page/chats/${chatId}/model-calls/${callId}`)

test('[OB530] each model call of a turn has its own request and reply, for the owner only', async () => {
  await using testBridge = await TestBridge.open({ recordModelCalls: 'with-authentication' })
  const page = testBridge.page()
  await page.post(send(`${callPayment(50)}[[then]][[say Paid.]]`))
  const [asked] = await page.inbox()
  await page.decide(asked?.id ?? '', { approved: true })
  await page.untilMessages((messages) => JSON.stringify(messages).includes('Paid.'))

  const [first, second, ...others] = await readCalls(page)
  expect(others).toEqual([])
  expect(first).not.toBe(second)
  const asking = (await (await readCall(page, first)).json()) as ModelCall
  expect(JSON.stringify(asking.request)).toContain('process_payment')
  expect(JSON.stringify(asking.replies)).toContain('functionCall')
  const replying = (await (await readCall(page, second)).json()) as ModelCall
  expect(JSON.stringify(replying.request)).toContain('functionResponse')
  expect(JSON.stringify(replying.replies)).toContain('Paid.')

  const other = testBridge.page('mari')
  expect((await readCall(other, first)).status).toBe(404)
  expect((await readCall(page, first, 'chat-2')).status).toBe(404)
  expect((await readCall(page, 'unknown')).status).toBe(404)
})

test('[OB530] without the option there is no call to read', async () => {
  await using testBridge = await TestBridge.open()
  const page = testBridge.page()
  await page.post(send('[[say Hello.]]'))
  expect(await readCalls(page)).toEqual([undefined])
  expect((await readCall(page, 'x')).status).toBe(404)
})

test('[OB530] of many calls the newest are kept, and a long request loses its oldest contents', async () => {
  await using testBridge = await TestBridge.open({ recordModelCalls: 'with-authentication' })
  const page = testBridge.page()
  const long = 'x'.repeat(7_900)
  for (let turn = 0; turn < 16; turn += 1) await page.post(send(`[[say ${turn}]] ${turn} ${long}`))
  const calls = await readCalls(page)
  const response = await readCall(page, calls.at(-1))
  const text = await response.text()
  expect(text.length).toBeLessThan(220_000)
  const { request } = JSON.parse(text) as ModelCall
  expect(request['omittedContents']).toBeGreaterThan(0)
  expect(JSON.stringify(request)).toContain('[[say 15]]')
})

test('[OB531] the result of a tool and a message are recorded without their secrets', async () => {
  const jwt = `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.${'s'.repeat(20)}`
  await using testBridge = await TestBridge.open({
    recordModelCalls: 'with-authentication',
    tools: () => [
      tool('connect', () => ({ access_token: 'opaque-value', note: jwt, city: 'Kyoto' })),
    ],
  })
  const page = testBridge.page()
  await page.post(send(`[[call connect {}]][[then]][[say Done.]] My key is AIza${'k'.repeat(35)}`))
  const [, second] = await readCalls(page)
  const text = await (await readCall(page, second)).text()
  expect(text).toContain('Kyoto')
  expect(text).not.toMatch(/opaque-value|eyJhbGci|AIzak/)
  expect(text).toContain('[redacted]')
})

test.each<[given: unknown, shown: unknown]>([
  [
    { apiKey: 'a', 'X-API-Key': 'b', x: 1 },
    { apiKey: '[redacted]', 'X-API-Key': '[redacted]', x: 1 },
  ],
  [{ headers: { Authorization: 'Bearer abc' } }, { headers: { Authorization: '[redacted]' } }],
  ['Authorization: Bearer abcdefghijklmnop', 'Authorization: Bearer [redacted]'],
  ['postgres://user:pass@host/db', 'postgres://user:[redacted]@host/db'],
  ['-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----', '[redacted]'],
  // Values that only look like secrets stay readable.
  [
    { totalTokens: 3, token: 'pay', maxOutputTokens: 5 },
    { totalTokens: 3, token: 'pay', maxOutputTokens: 5 },
  ],
  [
    { properties: { password: { type: 'STRING' } } },
    { properties: { password: { type: 'STRING' } } },
  ],
  [
    { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
    { inlineData: { mimeType: 'image/png', data: '[4 characters]' } },
  ],
  [
    { f: () => 1, u: undefined, big: 1n, bytes: new Uint8Array(3) },
    { f: undefined, big: '1', bytes: '[3 bytes]' },
  ],
])('[OB531] %o is shown without secrets', (given, shown) => {
  expect(redact(given)).toEqual(shown)
})

test('[OB531] a value that contains itself, and a long text, are cut off', () => {
  const self: Record<string, unknown> = {}
  self['self'] = self
  expect(JSON.stringify(redact(self))).toContain('[too deep]')
  expect(String(redact('x'.repeat(10_000)))).toMatch(/^x{8000}… \[2000 more characters\]$/)
})

const agent = assistant(new EmulatedGemini('http://127.0.0.1:1', 'gemini-2.5-flash'))
const authenticate: BridgeOptions['authenticate'] = () => ({ id: 'hanako' })

const create = (options: Partial<BridgeOptions>) => createBridge({ agent, ...options })

test('[OB532] the recording is refused in production, and for several people unless it is asked for', async () => {
  expect(() => create({ authenticate, recordModelCalls: true })).toThrow(/'with-authentication'/)
  for (const options of [
    { recordModelCalls: true },
    { authenticate, recordModelCalls: 'with-authentication' as const },
    { authenticate, recordModelCalls: false },
  ])
    await create(options).close()
  vi.stubEnv('NODE_ENV', 'production')
  expect(() => create({ recordModelCalls: true })).toThrow(/NODE_ENV/)
  expect(() => create({ authenticate, recordModelCalls: 'with-authentication' })).toThrow(
    /NODE_ENV/,
  )
  await create({ recordModelCalls: false }).close()
})
