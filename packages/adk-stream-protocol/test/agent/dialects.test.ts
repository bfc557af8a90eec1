import { setImmediate } from 'node:timers/promises'

import { Chat as Chat6 } from '@ai-sdk/react'
import { Chat as Chat7 } from '@ai-sdk/react-7'
import { FunctionTool } from '@google/adk'
import * as ai6 from 'ai'
import * as ai7 from 'ai-7'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { ApprovingChat } from '../approvals/support/approving-chat.ts'
import { assistant } from '../support/agents.ts'
import type { Browser } from '../support/browser.ts'
import type { ServeOptions } from '../support/serve.ts'
import { toolParts } from '../support/chat-probe.ts'
import { serve } from '../support/serve.ts'
import { readFrames } from '../support/wire-rules.ts'

function paying(log: unknown[], options: Omit<ServeOptions, 'agent' | 'recorded'> = {}) {
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
    ...options,
  }
}

const CALL = '[[call process_payment {"amount":50,"recipient":"花子"}]]'
const PAY = `${CALL}[[then]][[say Done.]]`

async function ask(
  browser: Browser,
  path = '/stream?dialect=confirmation',
  more: object = {},
  text = PAY,
) {
  const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text }] }]
  const response = await browser.post(path, { id: 'chat-1', messages, ...more })
  return readFrames(await response.text()).chunks
}

test('[DI1] an approval request is a call of adk_request_confirmation, after the call that it is about', async () => {
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
    toolConfirmation: {
      hint: 'Please approve or reject the tool call process_payment().',
      confirmed: false,
    },
  })
  expect(tools[2]?.['toolCallId']).not.toBe(tools[0]?.['toolCallId'])
})

test.each([
  [true, 'tool-output-available', 1],
  [false, 'tool-output-error', 0],
])(
  '[DI2] the output { confirmed: %s } of the confirmation is a decision',
  async (confirmed, type, runs) => {
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
    const sent = readFrames(await answered.text()).chunks
    expect(sent[0]).toMatchObject({ type: 'start', messageId: message.id })
    expect(sent.map((chunk) => chunk.type)).toContain(type)
    expect(log).toHaveLength(runs)
  },
)

test('[DI2] a tool-result in a user message is a decision as well', async () => {
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
])(
  '[DI3] %s is rejected, and the error says what to send instead',
  async (_name, mistake, words) => {
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
  },
)

test('[DI3] a name and an id that do not match are rejected, and the error says what to send', async () => {
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
  expect(sentence).toContain('belongs to process_payment, not to adk_request_confirmation')
  expect(sentence).toContain(String(call?.['toolCallId']))
  expect(sentence).toContain('confirmed')
  expect(log).toEqual([])
})

type Ids = { readonly approvalId: string; readonly toolCallId: string; readonly messageId: string }

const CONFIRMATION = 'adk_request_confirmation'

/** All forms in which clients of the earlier system approve, besides that of the AI SDK. */
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

test.each(FORMS)('[DI2] %s is a decision over HTTP', async (_name, form) => {
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
  const sent = readFrames(await answered.text()).chunks
  expect(sent.map(({ type }) => type)).toContain('tool-output-available')
  expect(log).toHaveLength(1)
})

interface StockOptions {
  readonly api: string
  readonly fetch: typeof fetch
}

const STOCK = [
  [
    'ai 6',
    ({ api, fetch }: StockOptions) =>
      new Chat6({
        id: 'chat-1',
        transport: new ai6.DefaultChatTransport({ api, fetch }),
        sendAutomaticallyWhen: ai6.lastAssistantMessageIsCompleteWithToolCalls,
      }),
  ],
  [
    'ai 7',
    ({ api, fetch }: StockOptions) =>
      new Chat7({
        id: 'chat-1',
        transport: new ai7.DefaultChatTransport({ api, fetch }),
        sendAutomaticallyWhen: ai7.lastAssistantMessageIsCompleteWithToolCalls,
      }),
  ],
] as const

describe.each(STOCK)('%s', (_name, open) => {
  test.each([
    ['once', PAY, true, 1],
    ['once, and says no', PAY, false, 0],
    ['for two calls of one step', `${CALL}${CALL}[[then]][[say Done.]]`, true, 2],
    ['and hears nothing of the model then', CALL, true, 1],
  ])(
    '[DI131] a stock client that decides with addToolOutput sends %s',
    async (_case, text, confirmed, runs) => {
      const log: unknown[] = []
      await using server = await serve(paying(log))
      const browser = server.browser()
      const api = `${server.url}/stream?dialect=confirmation`
      const chat = new ApprovingChat(open({ api, fetch: browser.fetch }), {})
      await chat.send(text)
      const questions = toolParts(chat.lastMessage).filter(({ type }) => type === QUESTION)
      for (const { toolCallId = '' } of questions) {
        await chat.give({ tool: 'adk_request_confirmation', toolCallId, output: { confirmed } })
      }
      await chat.rest()
      expect(browser.sent).toBe(2)
      expect(chat.error).toBeUndefined()
      expect(log).toHaveLength(runs)
      const ends = confirmed ? 'output-available' : 'output-error'
      const [call] = toolParts(chat.lastMessage)
      expect(call).toMatchObject({ type: 'tool-process_payment', state: ends })
      expect(toolParts(chat.lastMessage)).toHaveLength(2 * questions.length)
    },
  )
})

const QUESTION = 'tool-adk_request_confirmation'

test.each([
  ['approved elsewhere', { approved: true }, true],
  ['denied elsewhere', { approved: false }, false],
  ['not decided in time', undefined, false],
])(
  '[DI130] the confirmation of an approval that was %s gets an output',
  async (_name, decision, confirmed) => {
    const log: unknown[] = []
    const soon = { approvalDeadlineMs: 50, limits: { sweepMs: 10 } }
    await using server = await serve(paying(log, decision ? {} : soon))
    const browser = server.browser()
    const chunks = await ask(browser)
    const question = chunks.findLast((chunk) => chunk.type === 'tool-input-available')
    const toolCallId = String(question?.['toolCallId'])
    if (decision) await (await browser.post(`/approvals/${toolCallId}`, decision)).text()
    const isOver = async (): Promise<boolean> => {
      const response = await browser.get(`/approvals/${toolCallId}`)
      const { approval } = (await response.json()) as { approval: { state: string } }
      return !['requested', 'approved', 'executing'].includes(approval.state)
    }
    while (!(await isOver())) await setImmediate()
    const part = {
      type: QUESTION,
      toolCallId,
      state: 'output-available',
      output: { confirmed: decision?.approved ?? true },
    }
    const message = { id: String(chunks[0]?.['messageId']), role: 'assistant', parts: [part] }
    const late = await browser.post('/stream?dialect=confirmation', {
      id: 'chat-1',
      messages: [message],
    })
    const sent = readFrames(await late.text()).chunks
    expect(sent).toContainEqual({
      type: 'tool-output-available',
      toolCallId,
      output: { confirmed },
    })
    expect(log).toHaveLength(confirmed ? 1 : 0)
  },
)

test('[DI130] a client that reads the turn from its start gets no output for a confirmation that it did not receive', async () => {
  await using server = await serve({ ...paying([]), disconnectGraceMs: 60_000 })
  const browser = server.browser()
  const question = (
    await ask(browser, undefined, {}, `${CALL}[[then]][[say Done.]][[wait gate]]`)
  ).findLast((chunk) => chunk.type === 'tool-input-available')
  const toolCallId = String(question?.['toolCallId'])
  await (await browser.post(`/approvals/${toolCallId}`, { approved: true })).text()
  const resumed = await readRunning(browser)
  server.emulator.release('gate')
  const { chunks } = readFrames(await resumed.text())
  expect(chunks.at(-1)).toMatchObject({ type: 'finish' })
  expect(JSON.stringify(chunks)).not.toContain(toolCallId)
})

/** Reads the turn that resumes by itself, as soon as it runs. */
async function readRunning(browser: Browser): Promise<Response> {
  for (;;) {
    const response = await browser.get('/stream/chat-1/stream?dialect=confirmation')
    if (response.status === 200) return response
    await setImmediate()
  }
}

test('[DI4] the dialect is selected by URL, header or body; an unknown one is rejected', async () => {
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
