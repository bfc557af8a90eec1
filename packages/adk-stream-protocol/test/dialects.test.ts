import { FunctionTool } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { assistant } from './support/agents.ts'
import type { Browser } from './support/browser.ts'
import { serve } from './support/serve.ts'
import { readFrames } from './support/wire-rules.ts'

function paying(log: unknown[]) {
  const pay = new FunctionTool({
    name: 'process_payment',
    description: 'Pays.',
    parameters: z.object({ amount: z.number(), recipient: z.string() }),
    requireConfirmation: true,
    execute: (args) => {
      log.push(args)
      return { success: true }
    },
  })
  return {
    agent: (model: Parameters<typeof assistant>[0]) => assistant(model, { tools: [pay] }),
    recorded: false,
  }
}

const PAY = '[[call process_payment {"amount":50,"recipient":"花子"}]][[then]][[say Done.]]'

async function ask(browser: Browser, path = '/stream?dialect=confirmation', more: object = {}) {
  const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: PAY }] }]
  const response = await browser.post(path, { id: 'chat-1', messages, ...more })
  return readFrames(await response.text()).chunks
}

test('[DI1] the question is a call of adk_request_confirmation, after the call it is about', async () => {
  await using server = await serve(paying([]))
  const chunks = await ask(server.browser())
  const tools = chunks.filter(({ type }) => type.startsWith('tool-'))
  expect(tools.map(({ type, toolName }) => [type, toolName])).toEqual([
    ['tool-input-start', 'process_payment'],
    ['tool-input-available', 'process_payment'],
    ['tool-input-start', 'adk_request_confirmation'],
    ['tool-input-available', 'adk_request_confirmation'],
  ])
  expect(tools[3]?.['input']).toMatchObject({
    originalFunctionCall: {
      id: tools[0]?.['toolCallId'],
      name: 'process_payment',
      args: { amount: 50, recipient: '花子' },
    },
    toolConfirmation: { hint: '', confirmed: false },
  })
  expect(tools[2]?.['toolCallId']).not.toBe(tools[0]?.['toolCallId'])
})

test.each([
  [true, 'tool-output-available', 1],
  [false, 'tool-output-error', 0],
])('[DI2] its output { confirmed: %s } decides', async (confirmed, type, runs) => {
  const log: unknown[] = []
  await using server = await serve(paying(log))
  const browser = server.browser()
  const chunks = await ask(browser)
  const question = chunks.findLast((chunk) => chunk.type === 'tool-input-available')
  const part = {
    type: 'tool-adk_request_confirmation',
    toolCallId: question?.['toolCallId'],
    state: 'output-available',
    output: { confirmed },
  }
  const message = { id: String(chunks[0]?.['messageId']), role: 'assistant', parts: [part] }
  const answered = await browser.post('/stream?dialect=confirmation', {
    id: 'chat-1',
    messages: [message],
  })
  const told = readFrames(await answered.text()).chunks
  expect(told[0]).toMatchObject({ type: 'start', messageId: message.id })
  expect(told.map((chunk) => chunk.type)).toContain(type)
  expect(log).toHaveLength(runs)
})

test('[DI2] a tool-result in a user message answers the confirmation as well', async () => {
  const log: unknown[] = []
  await using server = await serve(paying(log))
  const browser = server.browser()
  const question = (await ask(browser)).findLast((chunk) => chunk.type === 'tool-input-available')
  const content = [
    {
      type: 'tool-result',
      toolCallId: question?.['toolCallId'],
      toolName: 'adk_request_confirmation',
      result: { confirmed: true },
    },
  ]
  await (
    await browser.post('/stream?dialect=confirmation', {
      chatId: 'chat-1',
      messages: [{ role: 'user', content }],
    })
  ).text()
  expect(log).toHaveLength(1)
})

test.each([
  [
    'answering the original tool',
    { toolName: 'process_payment', result: { confirmed: true } },
    'process_payment',
  ],
  [
    'something else than confirmed',
    { toolName: 'adk_request_confirmation', result: { approved: true } },
    'confirmed',
  ],
])('[DI3] %s is refused with what to send instead', async (_name, mistake, words) => {
  const log: unknown[] = []
  await using server = await serve(paying(log))
  const browser = server.browser()
  const question = (await ask(browser)).findLast((chunk) => chunk.type === 'tool-input-available')
  const content = [{ type: 'tool-result', toolCallId: question?.['toolCallId'], ...mistake }]
  const refused = await browser.post('/stream', {
    chatId: 'chat-1',
    messages: [{ role: 'user', content }],
  })
  expect(refused.status).toBe(400)
  expect(await refused.text()).toContain(words)
  expect(log).toEqual([])
})

test('[DI3] a name and an id that do not belong together are refused with what to send', async () => {
  const log: unknown[] = []
  await using server = await serve(paying(log))
  const browser = server.browser()
  const call = (await ask(browser)).find((chunk) => chunk.type === 'tool-input-available')
  const content = [
    {
      type: 'tool-result',
      toolCallId: call?.['toolCallId'],
      toolName: 'adk_request_confirmation',
      result: { confirmed: true },
    },
  ]
  const refused = await browser.post('/stream', {
    chatId: 'chat-1',
    messages: [{ role: 'user', content }],
  })
  expect(refused.status).toBe(400)
  const sentence = await refused.text()
  expect(sentence).toContain('is not of adk_request_confirmation, but of process_payment')
  expect(sentence).toContain(String(call?.['toolCallId']))
  expect(sentence).toContain('confirmed')
  expect(log).toEqual([])
})

type Ids = { readonly approvalId: string; readonly toolCallId: string; readonly messageId: string }

const CONFIRMATION = 'adk_request_confirmation'

/** All ways in which clients of the earlier system say yes, beside that of the AI SDK. */
const FORMS: readonly (readonly [string, (ids: Ids) => object])[] = [
  [
    'an assistant’s confirmation with `approval`',
    ({ approvalId, messageId }) => ({
      id: messageId,
      role: 'assistant',
      parts: [
        { type: `tool-${CONFIRMATION}`, toolCallId: approvalId, approval: { approved: true } },
      ],
    }),
  ],
  [
    'a confirmation with `approval` in a user message',
    ({ approvalId }) => ({
      role: 'user',
      parts: [
        {
          type: `tool-${CONFIRMATION}`,
          approval: { id: approvalId, approved: true, reason: 'ok' },
        },
      ],
    }),
  ],
  [
    'a confirmation with an output in a user message',
    ({ approvalId: toolCallId }) => ({
      role: 'user',
      content: [{ type: `tool-${CONFIRMATION}`, toolCallId, output: { confirmed: true } }],
    }),
  ],
  [
    'a tool-result { approved } for the call itself',
    ({ toolCallId }) => ({
      role: 'user',
      content: [
        {
          type: 'tool-result',
          toolCallId,
          toolName: 'process_payment',
          result: { approved: true, user_message: 'ok' },
        },
      ],
    }),
  ],
]

test.each(FORMS)('[DI2] %s decides over HTTP', async (_name, form) => {
  const log: unknown[] = []
  await using server = await serve(paying(log))
  const browser = server.browser()
  const chunks = await ask(browser)
  const [call, question] = chunks.filter(({ type }) => type === 'tool-input-available')
  const message = form({
    approvalId: String(question?.['toolCallId']),
    toolCallId: String(call?.['toolCallId']),
    messageId: String(chunks[0]?.['messageId']),
  })
  const answered = await browser.post('/stream', { chatId: 'chat-1', messages: [message] })
  const told = readFrames(await answered.text()).chunks
  expect(told.map(({ type }) => type)).toContain('tool-output-available')
  expect(log).toHaveLength(1)
})

test('[DI4] the dialect is asked for by address, header or body; another one is refused', async () => {
  await using server = await serve(paying([]))
  const browser = server.browser()
  const asks = (chunks: Awaited<ReturnType<typeof ask>>) =>
    chunks.some((chunk) => chunk['toolName'] === 'adk_request_confirmation')
  expect(asks(await ask(browser, '/stream', { dialect: 'confirmation' }))).toBe(true)
  const body = { id: 'chat-2', messages: [{ role: 'user', content: PAY }] }
  const byHeader = await browser.post('/stream', body, { 'x-adk-dialect': 'confirmation' })
  expect(asks(readFrames(await byHeader.text()).chunks)).toBe(true)
  const stock = await browser.post('/stream', { ...body, id: 'chat-3' })
  expect(asks(readFrames(await stock.text()).chunks)).toBe(false)
  expect((await browser.post('/stream?dialect=morse', { ...body, id: 'chat-4' })).status).toBe(400)
})
