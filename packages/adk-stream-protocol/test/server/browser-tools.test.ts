import { setImmediate } from 'node:timers/promises'

import { Chat as Chat6 } from '@ai-sdk/react'
import { Chat as Chat7 } from '@ai-sdk/react-7'
import * as ai6 from 'ai'
import * as ai7 from 'ai-7'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { z } from 'zod'

import { toLiveUrl } from '../sockets/support/socket-client.ts'
import { assistant, tool } from '../support/agents.ts'
import { toolParts } from '../support/chat-probe.ts'
import { answer, ASK, ask, lastMessage, locate, TOKYO } from '../support/locating.ts'
import type { ServeOptions } from '../support/serve.ts'
import { serve } from '../support/serve.ts'
import { readFrames } from '../support/wire-rules.ts'

test('[BT1] the turn pauses for the client and continues with its output, in the same message', async () => {
  await using server = await serve(locate())
  const browser = server.browser()
  const asked = await ask(browser)
  expect(toolParts(asked)).toMatchObject([{ state: 'input-available' }])
  const body = await (
    await answer(browser, asked, { state: 'output-available', output: TOKYO })
  ).text()
  expect(readFrames(body).chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' })
  const message = await lastMessage(browser)
  expect(message.id).toBe(asked.id)
  expect(toolParts(message)).toMatchObject([{ state: 'output-available', output: TOKYO }])
  expect(JSON.stringify(server.emulator.requests[1]?.body)).toContain('139.7')
})

test('[BT2] an output counts once', async () => {
  await using server = await serve(locate())
  const browser = server.browser()
  const asked = await ask(browser)
  const given = { state: 'output-available', output: TOKYO }
  await Promise.all(
    [answer(browser, asked, given), answer(browser, asked, given)].map(async (sent) =>
      (await sent).text(),
    ),
  )
  const requests = server.emulator.requests.length
  const late = await answer(browser, asked, {
    state: 'output-available',
    output: { latitude: 0, longitude: 0 },
  })
  await late.text()
  expect(toolParts(await lastMessage(browser))).toMatchObject([{ output: TOKYO }])
  expect(server.emulator.requests).toHaveLength(requests)
})

test('[BT3] an output for a tool of the server is rejected', async () => {
  const look = tool('look', () => ({ seen: 'by the server' }))
  await using server = await serve({ agent: (model) => assistant(model, { tools: [look] }) })
  const browser = server.browser()
  const asked = await ask(browser, '[[call look {}]][[then]][[say Seen.]]')
  const requests = server.emulator.requests.length
  await (
    await answer(browser, asked, { state: 'output-available', output: { seen: 'by the client' } })
  ).text()
  expect(toolParts(await lastMessage(browser))).toMatchObject([
    { output: { seen: 'by the server' } },
  ])
  expect(server.emulator.requests).toHaveLength(requests)
})

test('[BT4] the model receives an error for an output of the wrong shape, or the error of the client', async () => {
  await using server = await serve(locate())
  const browser = server.browser()
  await (
    await answer(browser, await ask(browser), {
      state: 'output-available',
      output: { latitude: 'north' },
    })
  ).text()
  expect(toolParts(await lastMessage(browser))).toMatchObject([{ state: 'output-error' }])
  expect(JSON.stringify(server.emulator.requests[1]?.body)).toContain('does not match the schema')
  const again = await ask(browser)
  await (
    await answer(browser, again, { state: 'output-error', errorText: 'Permission denied' })
  ).text()
  expect(toolParts(await lastMessage(browser))).toMatchObject([
    { state: 'output-error', errorText: 'Permission denied' },
  ])
})

test.each([
  [[1, 2], { results: [1, 2] }],
  ['here', { result: 'here' }],
  [null, { result: null }],
])(
  '[BT9] the model receives the output %j in the form that ADK uses for tools of the server',
  async (output, response) => {
    const agents = [locate({ output: z.unknown() }), serveTool(tool('get_location', () => output))]
    for (const options of agents) {
      await using server = await serve(options)
      const browser = server.browser()
      const asked = await ask(browser)
      await (await answer(browser, asked, { state: 'output-available', output })).text()
      const body = server.emulator.requests[1]?.body as
        | { contents: { parts: { functionResponse?: { response: unknown } }[] }[] }
        | undefined
      const [result] = (body?.contents ?? []).flatMap(({ parts }) =>
        parts.flatMap(({ functionResponse }) => functionResponse ?? []),
      )
      expect(result?.response).toEqual(response)
    }
  },
)

function serveTool(served: ReturnType<typeof tool>): ServeOptions {
  return { agent: (model) => assistant(model, { tools: [served] }) }
}

test('[BT5] a call whose client does not respond in time ends with an error for the model', async () => {
  await using server = await serve(locate({ timeoutMs: 30 }))
  const browser = server.browser()
  await ask(browser)
  const request = await server.emulator.nextRequest(({ body }) =>
    JSON.stringify(body).includes('in time'),
  )
  await request.done
  while ((await browser.messages()).running) await setImmediate()
  expect(toolParts(await lastMessage(browser))).toMatchObject([{ state: 'output-error' }])
})

test('[BT6] a gated tool accepts decision and output in one request', async () => {
  await using server = await serve(locate({ gated: true }))
  const browser = server.browser()
  const asked = await ask(browser)
  const [part] = toolParts(asked)
  expect(part).toMatchObject({ state: 'approval-requested' })
  const { approval } = part as unknown as { approval: { id: string } }
  const change = {
    state: 'output-available',
    output: TOKYO,
    approval: { ...approval, approved: true },
  }
  await (await answer(browser, asked, change)).text()
  expect(toolParts(await lastMessage(browser))).toMatchObject([
    { state: 'output-available', output: TOKYO },
  ])
})

test('[BT1702] the arguments of a browser call cannot be edited, and it runs as it was requested', async () => {
  await using server = await serve(locate({ gated: true }))
  const browser = server.browser()
  const asked = await ask(browser)
  const [part] = toolParts(asked)
  const { approval } = part as unknown as { approval: { id: string } }
  const listed: unknown = await (await browser.get('/approvals')).json()
  expect(JSON.stringify(listed)).toContain(approval.id)
  expect(JSON.stringify(listed)).not.toContain('argsSchema')
  const edited = await browser.post(`/approvals/${approval.id}`, { approved: true, args: {} })
  expect([edited.status, await edited.json()]).toMatchObject([
    409,
    { error: { code: 'not-editable' } },
  ])
  const approved = await browser.post(`/approvals/${approval.id}`, { approved: true })
  expect(approved.status).toBe(200)
  await expect
    .poll(async () => toolParts(await lastMessage(browser)))
    .toMatchObject([{ state: 'input-available', input: {} }])
})

test('[BT6] a gated tool accepts the decision first and the output later', async () => {
  await using server = await serve(locate({ gated: true }))
  const browser = server.browser()
  const asked = await ask(browser)
  const [part] = toolParts(asked)
  const { approval } = part as unknown as { approval: { id: string } }
  // An output without the decision is rejected.
  await (await answer(browser, asked, { state: 'output-available', output: TOKYO })).text()
  expect(toolParts(await lastMessage(browser))).toMatchObject([{ state: 'approval-requested' }])
  const decided = await answer(browser, asked, {
    state: 'approval-responded',
    approval: { ...approval, approved: true },
  })
  // The call is shown again: it waits for its output now, and the client does not send its decision again.
  expect(readFrames(await decided.text()).chunks.slice(-3)).toMatchObject([
    { type: 'tool-input-available', toolCallId: part?.toolCallId, input: {} },
    { type: 'data-browser-call', data: { toolCallId: part?.toolCallId } },
    { type: 'finish', finishReason: 'tool-calls' },
  ])
  // An approved call is not shown as an approval request any more: the page that reads it runs it.
  expect(toolParts(await lastMessage(browser))).toMatchObject([{ state: 'input-available' }])
  await (
    await answer(browser, await lastMessage(browser), { state: 'output-available', output: TOKYO })
  ).text()
  expect(toolParts(await lastMessage(browser))).toMatchObject([
    { state: 'output-available', output: TOKYO },
  ])
})

const CLIENTS = [
  [
    'ai 6',
    (options: { api: string; fetch: typeof fetch; run: () => unknown }) => {
      const chat = new Chat6({
        id: 'chat-1',
        transport: new ai6.DefaultChatTransport(options),
        sendAutomaticallyWhen: ai6.lastAssistantMessageIsCompleteWithToolCalls,
        onToolCall: ({ toolCall }) => {
          void chat.addToolOutput({
            tool: toolCall.toolName,
            toolCallId: toolCall.toolCallId,
            output: options.run(),
          })
        },
      })
      return chat
    },
  ],
  [
    'ai 7',
    (options: { api: string; fetch: typeof fetch; run: () => unknown }) => {
      const chat = new Chat7({
        id: 'chat-1',
        transport: new ai7.DefaultChatTransport(options),
        sendAutomaticallyWhen: ai7.lastAssistantMessageIsCompleteWithToolCalls,
        onToolCall: ({ toolCall }) => {
          void chat.addToolOutput({
            tool: toolCall.toolName,
            toolCallId: toolCall.toolCallId,
            output: options.run(),
          })
        },
      })
      return chat
    },
  ],
] as const

/** Options of a stock chat, and what its page does as browser-tools.md says: it runs a call when the server offers it. */
interface StockOptions {
  readonly url: string
  readonly fetch: typeof fetch
  readonly onOffer: (chat: OfferedChat, toolCallId: string) => void
}

interface OfferedChat {
  readonly status: string
  readonly lastMessage: unknown
  readonly error: Error | undefined
  sendMessage(message: { text: string }): Promise<void>
  addToolApprovalResponse(response: { id: string; approved: boolean }): void | PromiseLike<void>
  addToolOutput(output: {
    tool: string
    toolCallId: string
    output: unknown
  }): void | PromiseLike<void>
}

const offerIn = ({ type, data }: { type: string; data: unknown }): string | undefined =>
  type === 'data-browser-call' ? (data as { toolCallId: string }).toolCallId : undefined

const STOCK_PAGES = [
  {
    name: 'ai 6 over SSE',
    open: ({ url, fetch: send, onOffer }: StockOptions): OfferedChat => {
      const chat: OfferedChat = new Chat6({
        id: 'chat-1',
        transport: new ai6.DefaultChatTransport({ api: `${url}/stream`, fetch: send }),
        sendAutomaticallyWhen: (options) =>
          ai6.lastAssistantMessageIsCompleteWithApprovalResponses(options) ||
          ai6.lastAssistantMessageIsCompleteWithToolCalls(options),
        onData: (part) => {
          const toolCallId = offerIn(part)
          if (toolCallId !== undefined) onOffer(chat, toolCallId)
        },
      })
      return chat
    },
  },
  {
    name: 'ai 7 over SSE',
    open: ({ url, fetch: send, onOffer }: StockOptions): OfferedChat =>
      openStock7(new ai7.DefaultChatTransport({ api: `${url}/stream`, fetch: send }), onOffer),
  },
  {
    name: 'ai 7 over a socket',
    open: ({ url, onOffer }: StockOptions): OfferedChat =>
      openStock7(
        new ai7.WebSocketChatTransport({
          url: toLiveUrl(url),
          // `ws` is the implementation that the AI SDK names for Node.
          webSocket: WebSocket as unknown as NonNullable<
            ConstructorParameters<typeof ai7.WebSocketChatTransport>[0]['webSocket']
          >,
        }),
        onOffer,
      ),
  },
]

function openStock7(
  transport: ai7.ChatTransport<ai7.UIMessage>,
  onOffer: StockOptions['onOffer'],
): OfferedChat {
  const chat: OfferedChat = new Chat7({
    id: 'chat-1',
    transport,
    sendAutomaticallyWhen: (options) =>
      ai7.lastAssistantMessageIsCompleteWithApprovalResponses(options) ||
      ai7.lastAssistantMessageIsCompleteWithToolCalls(options),
    onData: (part) => {
      const toolCallId = offerIn(part)
      if (toolCallId !== undefined) onOffer(chat, toolCallId)
    },
  })
  return chat
}

test.each(STOCK_PAGES.flatMap((page) => [true, false].map((gated) => ({ ...page, gated }))))(
  '[BT7] a stock page runs a browser tool when it is offered, and sends its result by itself: $name, gated: $gated',
  async ({ open, gated }) => {
    await using server = await serve({ ...locate({ gated }), authenticate: () => ({ id: 'h' }) })
    const browser = server.browser()
    const offered: string[] = []
    const chat = open({
      url: browser.url,
      fetch: browser.fetch,
      onOffer: (page, toolCallId) => {
        offered.push(toolCallId)
        void page.addToolOutput({ tool: 'get_location', toolCallId, output: TOKYO })
      },
    })
    await chat.sendMessage({ text: ASK })
    const [part] = toolParts(await lastMessage(browser))
    const { approval } = part as unknown as { approval?: { id: string } }
    expect(offered).toHaveLength(gated ? 0 : 1)
    if (approval) await chat.addToolApprovalResponse({ id: approval.id, approved: true })
    await expect.poll(() => JSON.stringify(chat.lastMessage)).toContain('There you are.')
    expect(offered).toEqual([part?.toolCallId])
    expect(JSON.stringify(server.emulator.requests.at(-1)?.body)).toContain('139.7')
    expect(chat.error).toBeUndefined()
  },
)

test.each(CLIENTS)(
  '[BT7] a stock client of %s runs a browser tool with onToolCall, once',
  async (_name, open) => {
    await using server = await serve(locate())
    const browser = server.browser()
    let runs = 0
    const chat = open({
      api: `${browser.url}/stream`,
      fetch: browser.fetch,
      run: () => {
        runs += 1
        return TOKYO
      },
    })
    const done = new Promise<void>((resolve) => {
      chat['~registerStatusCallback'](() => {
        const text = JSON.stringify(chat.lastMessage?.parts)
        if (chat.status === 'ready' && text.includes('There you are.')) resolve()
      })
    })
    await chat.sendMessage({ text: ASK })
    await done
    expect(runs).toBe(1)
    expect(chat.messages).toHaveLength(2)
    expect(browser.requests.filter(({ method }) => method === 'POST')).toHaveLength(2)
  },
)
