import { FunctionTool } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { mergeChanged } from '../approvals/support/expect-positions.ts'
import { assistant } from '../support/agents.ts'
import { type Browser, codeOf } from '../support/browser.ts'
import type { ChatMessage } from '../support/chat-probe.ts'
import { type ServeOptions, serve } from '../support/serve.ts'

const pay = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({}),
  requireConfirmation: true,
  execute: () => ({ paid: true }),
})

const OPTIONS: ServeOptions = {
  agent: (model) => assistant(model, { tools: [pay] }),
  recorded: false,
}

interface Loaded {
  readonly messages: ChatMessage[]
  readonly running: boolean
  readonly position: string
  readonly after?: string
}

async function load(browser: Browser, after?: string): Promise<Loaded> {
  const query = after === undefined ? '' : `?${new URLSearchParams({ after })}`
  const response = await browser.get(`/chats/chat-1/messages${query}`)
  expect(response.status).toBe(200)
  // PROTOCOL.md defines the response of this endpoint.
  return (await response.json()) as Loaded
}

async function say(browser: Browser, text: string): Promise<void> {
  await (await browser.say(text)).text()
}

test('[PO1] after a position, only the messages are loaded that have changed since or wait for a decision', async () => {
  await using server = await serve(OPTIONS)
  const browser = server.browser()
  expect(await load(browser)).toMatchObject({ messages: [], position: '0.' })
  await say(browser, '[[call pay {}]][[then]][[say Paid.]]')
  const asked = await load(browser)
  await say(browser, '[[say One.]]')
  const first = await load(browser)
  await say(browser, '[[say Two.]]')
  const whole = await load(browser)
  expect(whole.messages).toHaveLength(6)
  // The approval may be decided without an event.
  const [question] = asked.messages.slice(1)
  const rest = await load(browser, first.position)
  expect(rest).toMatchObject({ after: first.position, position: whole.position, running: false })
  expect(rest.messages).toEqual([whole.messages[0], question, ...whole.messages.slice(4)])
  expect(mergeChanged(first.messages, rest.messages)).toEqual(whole.messages)
  const unchanged = await load(browser, whole.position)
  expect(unchanged.messages).toEqual(whole.messages.slice(0, 2))
  expect(await load(browser, '0.')).toEqual({ ...whole, after: '0.' })
})

test('[PO1] while a turn runs, the position is before its message', async () => {
  await using server = await serve({ ...OPTIONS, disconnectGraceMs: 60_000 })
  const browser = server.browser()
  await say(browser, '[[say One.]]')
  const { position } = await load(browser)
  const reader = (await browser.say('[[say Two.]][[wait never]]')).body?.getReader()
  await reader?.read()
  const during = await load(browser, position)
  expect(during).toMatchObject({ running: true, position, after: position })
  expect(during.messages.map(({ role }) => role)).toEqual(['user'])
  await browser.stop()
  const ended = await load(browser, position)
  expect(ended.messages).toMatchObject([{ role: 'user' }, { role: 'assistant' }])
  expect(ended.position).not.toBe(position)
})

test('[PO2] a position that the conversation does not contain loads everything', async () => {
  await using server = await serve(OPTIONS)
  const browser = server.browser()
  await say(browser, '[[say One.]]')
  const whole = await load(browser)
  const [count = '', id = ''] = whole.position.split('.')
  const unknown = ['', '.', '0', '1.', `${Number(count) - 1}.${id}`, `0${count}.${id}`]
  const hostile = ['-1.', 'NaN.', '1e3.', '9007199254740993.x', '__proto__', '\u0000.\u0000']
  for (const after of [...unknown, ...hostile]) expect(await load(browser, after)).toEqual(whole)
  const long = await browser.get(`/chats/chat-1/messages?after=${'9'.repeat(1_025)}`)
  expect([long.status, await codeOf(long)]).toEqual([400, 'bad-request'])
})

test('[PO2] a position is unknown after the conversation was rewound', async () => {
  await using server = await serve(OPTIONS)
  const browser = server.browser()
  const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: '[[say One.]]' }] }
  const send = async (more: object) =>
    (await browser.post('/stream', { id: 'chat-1', messages: [message], ...more })).text()
  await send({})
  const { position, messages } = await load(browser)
  await send({ trigger: 'regenerate-message' })
  const again = await load(browser, position)
  expect(again.after).toBeUndefined()
  expect(again.messages).toHaveLength(2)
  expect(again.messages[1]?.id).not.toBe(messages[1]?.id)
})
