import type { BaseTool } from '@google/adk'
import { getUserChoiceTool, LongRunningFunctionTool, requestInputTool } from '@google/adk'
import { describe, expect, test } from 'vitest'

import type { CallAddress } from '../../src/server/index.ts'
import { callAddress } from '../../src/server/index.ts'
import { FREE_MODEL, TestBridge } from '../approvals/support/test-bridge.ts'
import type { Page } from '../approvals/support/page.ts'
import {
  joinLive,
  nextUnasked,
  openLiveTestBridge,
  whole,
} from '../live/support/live-test-bridge.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { assistant, tool } from '../support/agents.ts'
import type { ChatMessage } from '../support/chat-probe.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { clients } from '../support/clients.ts'
import { locationTool } from '../support/locating.ts'
import { readUntil } from '../support/read-feed.ts'
import { serve } from '../support/serve.ts'

const TICKET = { ticket: 'T-1', status: 'pending' }
const REPORT = { report: 'Sales are up.' }

/** What the two kinds of long-running tools return at once. */
const KINDS = [
  ['nothing', null],
  ['a ticket', TICKET],
] as const

/** A long-running tool that remembers where it was called. */
function jobTool(started: unknown): { readonly job: BaseTool; readonly calls: CallAddress[] } {
  const calls: CallAddress[] = []
  const job = new LongRunningFunctionTool({
    name: 'run_report',
    description: 'Begins a report that takes hours.',
    execute: (_input, context) => {
      if (context) calls.push(callAddress(context))
      return started
    },
  })
  return { job, calls }
}

const ASK = '[[call run_report {}]][[then]][[say Noted.]]'

async function openJob(started: unknown, options: Parameters<typeof TestBridge.open>[0] = {}) {
  const { job, calls } = jobTool(started)
  const testBridge = await TestBridge.open({ ...options, tools: () => [job] })
  const page = testBridge.page()
  await say(page, ASK)
  const [address] = calls
  if (!address) throw new Error('The tool was not called.')
  return { testBridge, page, address }
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

async function status(page: Page, path: string, body: unknown): Promise<number> {
  return (await post(page, path, body)).status
}

async function codeOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work
    return 'done'
  } catch (thrown) {
    return thrown instanceof Error && 'code' in thrown ? thrown.code : thrown
  }
}

/** The conversation, when no turn runs any more. */
async function settled(page: Page, matches: (message: ChatMessage | undefined) => boolean) {
  return page.untilMessages((messages) => matches(messages[1]))
}

describe.each(KINDS)('a tool that returned %s', (_kind, started) => {
  test('[BT121] is completed by the application, also after a restart, in its message', async () => {
    const { testBridge, page, address } = await openJob(started)
    await using _ = testBridge
    await say(page, '[[say Meanwhile.]]')
    await testBridge.restart()
    await testBridge.bridge.completeCall({ ...address, output: REPORT })
    await settled(page, (message) => textOf(message).endsWith('Noted.'))
    const messages = await page.messages()
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect(toolParts(messages[1])).toMatchObject([{ state: 'output-available', output: REPORT }])
    expect(testBridge.results).toEqual([REPORT])
    for (const { validateMessages } of clients) await validateMessages(messages)
  })

  test('[BT121] a failure that the application reports is an error of the call', async () => {
    const { testBridge, page, address } = await openJob(started)
    await using _ = testBridge
    await testBridge.bridge.completeCall({ ...address, error: 'The report could not be made.' })
    await settled(page, (message) => toolParts(message)[0]?.state === 'output-error')
    expect(toolParts((await page.messages())[1])).toMatchObject([
      { errorText: 'The report could not be made.' },
    ])
    expect(testBridge.results).toEqual([{ error: 'The report could not be made.' }])
  })

  test('[AP805] is not completed with an output that JSON cannot carry', async () => {
    const { testBridge, page, address } = await openJob(started)
    await using _ = testBridge
    const { completeCall } = testBridge.bridge
    await expect(completeCall({ ...address, output: { cents: 5n } })).rejects.toThrow(
      'completeCall: `output` cannot be stored as JSON.',
    )
    await completeCall({ ...address, output: REPORT })
    await settled(page, (message) => textOf(message).endsWith('Noted.'))
    expect(testBridge.results).toEqual([REPORT])
  })

  test('[BT122] is completed once: the first completion counts', async () => {
    const { testBridge, page, address } = await openJob(started)
    await using _ = testBridge
    const outputs = [1, 2, 3].map((report) => ({ report }))
    const codes = await Promise.all(
      outputs.map((output) => codeOf(testBridge.bridge.completeCall({ ...address, output }))),
    )
    expect(codes.filter((code) => code === 'done')).toHaveLength(1)
    expect(codes.filter((code) => code === 'call-completed')).toHaveLength(2)
    await testBridge.restart()
    const again = testBridge.bridge.completeCall({ ...address, output: REPORT })
    expect(await codeOf(again)).toBe('call-completed')
    expect(toolParts((await page.messages())[1])).toMatchObject([
      { output: outputs[codes.indexOf('done')] },
    ])
  })

  test('[BT121] a feed reports the completion, and the page reads the rest of the message', async () => {
    const { testBridge, page, address } = await openJob(started)
    await using _ = testBridge
    const headers = { 'x-api-key': 'hanako' }
    const feed = await fetch(`${testBridge.url}/chats/chat-1/events`, { headers })
    const [, asked] = await page.messages()
    await testBridge.bridge.completeCall({ ...address, output: REPORT })
    const seen = await readUntil(feed, ({ type }) => type === 'turn')
    expect(seen.at(-1)).toMatchObject({ messageId: asked?.id })
    await settled(page, (message) => toolParts(message)[0]?.output !== undefined)
  })
})

const FOREIGN: readonly (readonly [string, BaseTool])[] = [
  ['run_report', jobTool(null).job],
  ['get_user_choice', getUserChoiceTool],
]

describe.each(FOREIGN)('an output that a page gives for %s', (name, foreign) => {
  test('[BT120] an output of a client over HTTP is rejected with a sentence, and changes nothing', async () => {
    await using testBridge = await TestBridge.open({ tools: () => [foreign] })
    const page = testBridge.page()
    await say(page, `[[call ${name} {"options":["a","b"],"message":"?"}]]`)
    const [user, asked] = await page.messages()
    const parts = asked?.parts.map((part) =>
      part.toolCallId === undefined ? part : { ...part, state: 'output-available', output: 'a' },
    )
    const body = { id: 'chat-1', messages: [user, { ...asked, parts }] }
    const response = await post(page, '/stream', body)
    expect(response.status).toBe(409)
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    expect(error.code).toBe('not-client-output')
    expect(error.message).toContain(name)
    expect(error.message).toContain('completeCall')
    expect(testBridge.asked).toBe(1)
    expect((await page.messages())[1]).toEqual(asked)
  })

  test('[BT120] an output of a client over the socket is rejected, by `tool-output` and by `send`', async () => {
    await using testBridge = await TestBridge.open({ tools: () => [foreign] })
    const page = testBridge.page()
    await say(page, `[[call ${name} {"options":["a","b"],"message":"?"}]]`)
    const [user, asked] = await page.messages()
    const toolCallId = toolParts(asked)[0]?.toolCallId
    const headers = { 'x-api-key': 'hanako' }
    await using client = await SocketClient.open(testBridge.url, { headers })
    client.send({ type: 'tool-output', outputId: 'o1', id: 'chat-1', toolCallId, output: 'a' })
    expect(await client.nextOf('tool-output-taken')).toMatchObject({
      ok: false,
      code: 'not-client-output',
    })
    const parts = asked?.parts.map((part) =>
      part.toolCallId === undefined ? part : { ...part, state: 'output-available', output: 'a' },
    )
    const messages = [user, { ...asked, parts }]
    client.send({ type: 'send', requestId: 'r1', id: 'chat-1', messages })
    expect(await client.nextOf('error', 'r1')).toMatchObject({ code: 'not-client-output' })
    expect((await page.messages())[1]).toEqual(asked)
  })
})

test('[BT121] get_user_choice is completed by the application', async () => {
  await using testBridge = await TestBridge.open({ tools: () => [getUserChoiceTool] })
  const page = testBridge.page()
  await say(page, '[[call get_user_choice {"options":["tea","coffee"]}]][[then]][[say Enjoy.]]')
  const { toolCallId = '' } = toolParts((await page.messages())[1])[0] ?? {}
  const chat = { principalId: 'hanako', chatId: 'chat-1' }
  await testBridge.bridge.completeCall({ ...chat, toolCallId, output: 'tea' })
  await settled(page, (message) => textOf(message) === 'Enjoy.')
  expect(testBridge.results).toEqual([{ result: 'tea' }])
})

test('[BT123] calls cannot be completed over HTTP without the option', async () => {
  const { testBridge, page, address } = await openJob(null)
  await using _ = testBridge
  const own = await post(page, `/chats/chat-1/calls/${address.toolCallId}`, { output: REPORT })
  expect(own.status).toBe(404)
  expect(await own.json()).toMatchObject({ error: { code: 'unknown-call' } })
  expect(toolParts((await page.messages())[1])).toMatchObject([{ state: 'input-available' }])
})

test('[BT123] a principal with permission completes a call in the chat of another; others learn nothing', async () => {
  const { testBridge, page, address } = await openJob(TICKET, {
    mayCompleteCalls: ({ roles = [] }, { toolName }) =>
      roles.includes('manager') && toolName === 'run_report',
  })
  await using _ = testBridge
  const path = `/chats/chat-1/calls/${address.toolCallId}`
  const body = { principalId: 'hanako', output: REPORT }
  const manager = testBridge.page('mari')
  expect(await status(testBridge.page('taro'), path, body)).toBe(404)
  expect(await status(page, path, body)).toBe(404)
  expect(await status(manager, path, { output: REPORT })).toBe(404)
  expect(await status(manager, '/chats/chat-1/calls/none', body)).toBe(404)
  expect(await status(manager, path, { principalId: 'hanako' })).toBe(400)
  expect(await status(manager, path, { ...body, error: 'both' })).toBe(400)
  expect(await status(manager, path, body)).toBe(204)
  expect(await status(manager, path, body)).toBe(409)
  await settled(page, (message) => JSON.stringify(message).includes('Sales'))
})

test('[BT124] a call that waits for a page or a person, or that the server ran, is not completed', async () => {
  const look = tool('look', () => ({ seen: true }))
  await using server = await serve({
    agent: (model) => assistant(model, { tools: [look, locationTool()] }),
    approvals: { look: false },
  })
  const browser = server.browser()
  await (await browser.say('[[call look {}]][[call get_location {}]]')).text()
  const { messages } = await browser.messages()
  const principalId = server.reported[0]?.turn.principalId ?? ''
  for (const { toolCallId = '' } of toolParts(messages.at(-1))) {
    const given = { principalId, chatId: 'chat-1', toolCallId, output: 1 }
    expect(await codeOf(server.bridge.completeCall(given))).toBe('not-completable')
  }
  const gone = { principalId, chatId: 'chat-1', toolCallId: 'none', output: 1 }
  expect(await codeOf(server.bridge.completeCall(gone))).toBe('unknown-call')
  expect(await codeOf(server.bridge.completeCall({ ...gone, chatId: 'none' }))).toBe('unknown-call')
})

test.each([FREE_MODEL, 'gemini-3.1-flash-live-preview'])(
  '[BT125] a call of a live conversation with %s is completed later, and watching clients read the result',
  async (liveModel) => {
    const { job, calls } = jobTool(null)
    await using testBridge = await openLiveTestBridge({ liveModel, tools: () => [job] })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1' })
    client.say(ASK)
    expect(await whole(client)).toBe('Noted.')
    const [address] = calls
    if (!address) throw new Error('The tool was not called.')
    await testBridge.bridge.completeCall({ ...address, output: REPORT })
    const turn = await nextUnasked(client)
    await whole(client, turn)
    const messages = await testBridge.page().messages()
    expect(toolParts(messages[1])).toMatchObject([{ output: REPORT }])
    expect(testBridge.results).toEqual([REPORT])
    const again = testBridge.bridge.completeCall({ ...address, output: 2 })
    expect(await codeOf(again)).toBe('call-completed')
    // The conversation continues with the result.
    client.say('[[say Next.]]', 'r2')
    expect(await whole(client, 'r2')).toBe('Next.')
  },
)

test('[BT126] requestInputTool is completed by the application: the model reads the answer, and no user message appears', async () => {
  await using testBridge = await TestBridge.open({ tools: () => [requestInputTool] })
  const page = testBridge.page()
  await say(page, '[[call adk_request_input {"message":"Which year?"}]][[then]][[say Thanks.]]')
  const [, asked] = await page.messages()
  const { toolCallId = '' } = toolParts(asked)[0] ?? {}
  const chat = { principalId: 'hanako', chatId: 'chat-1' }
  await testBridge.bridge.completeCall({ ...chat, toolCallId, output: { year: 2026 } })
  await settled(page, (message) => toolParts(message)[0]?.output !== undefined)
  const messages = await page.messages()
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
  expect(toolParts(messages[1])).toMatchObject([{ output: { year: 2026 } }])
  expect(testBridge.lastPrompt).toContain('Which year?')
  expect(testBridge.lastPrompt).toContain('2026')
  const again = testBridge.bridge.completeCall({ ...chat, toolCallId, output: 1 })
  expect(await codeOf(again)).toBe('call-completed')
})
