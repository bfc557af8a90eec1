import { Chat as Chat6 } from '@ai-sdk/react'
import { Chat as Chat7 } from '@ai-sdk/react-7'
import * as ai7 from 'ai-7'
import { describe, expect, test, vi } from 'vitest'

import { FREE_MODEL, TestBridge } from '../approvals/support/test-bridge.ts'
import { BidiClient } from '../bidi/support/bidi-client.ts'
import { attachChat, webSocketTransport } from '../../src/client/index.ts'
import type { AdkUIMessage } from '../../src/client/index.ts'
import { ASK, locationTool, TOKYO } from '../support/locating.ts'
import type { ChatMessage } from '../support/chat-probe.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { chunkOf, joinLive, untilAsked, whole } from './support/live-test-bridge.ts'

const CONFIRMATION = 'adk_request_confirmation'
const TOOL = 'get_location'

interface Asked {
  readonly approvalId: string
  readonly toolCallId: string
}

/** The ways in which a client sends a decision and a result together. */
const WAYS: readonly {
  readonly name: string
  readonly answer: (testBridge: TestBridge) => Promise<void>
}[] = [
  {
    name: 'a `send` with the part that holds both',
    answer: async (testBridge) => {
      await using client = await joinLive(testBridge)
      client.say(ASK)
      await whole(client)
      const [id = ''] = await untilAsked(client)
      const [user, assistant] = await testBridge.page().messages()
      const given = { state: 'output-available', output: TOKYO, approval: { id, approved: true } }
      const parts = assistant?.parts.map((part) =>
        part.toolCallId === undefined ? part : { ...part, ...given },
      )
      const messages = [user, { ...assistant, parts }]
      client.send({ type: 'send', requestId: 'r2', id: 'chat-1', messages })
      expect(await whole(client, 'r2')).toBe('There you are.')
    },
  },
  {
    name: 'frames `decide` and `tool-output`, one right after the other',
    answer: async (testBridge) => {
      await using client = await joinLive(testBridge)
      client.send({ type: 'watch', id: 'chat-1' })
      client.say(ASK)
      await whole(client)
      const [approvalId = ''] = await untilAsked(client)
      const { toolCallId } = await chunkOf(client, 'tool-input-available')
      client.send({ type: 'decide', decisionId: 'd', id: 'chat-1', approvalId, approved: true })
      const output = { type: 'tool-output', outputId: 'o', id: 'chat-1', toolCallId }
      client.send({ ...output, output: TOKYO })
      expect(await client.nextOf('tool-output-taken')).toMatchObject({ ok: true })
      const { requestId } = await client.nextOf('turn')
      expect(await whole(client, requestId)).toBe('There you are.')
    },
  },
  ...bidiWays(),
  {
    name: "the AI SDK's own WebSocketChatTransport",
    answer: async (testBridge) => {
      const page = testBridge.page()
      const chat = new Chat7<ai7.UIMessage>({
        id: 'chat-1',
        transport: new ai7.WebSocketChatTransport({
          url: `${testBridge.url.replace('http', 'ws')}/live`,
          // `ws` is the implementation that the AI SDK names for Node.
          webSocket: page.webSocket as unknown as NonNullable<
            ConstructorParameters<typeof ai7.WebSocketChatTransport>[0]['webSocket']
          >,
        }),
        sendAutomaticallyWhen: ai7.lastAssistantMessageIsCompleteWithToolCalls,
      })
      await chat.sendMessage({ text: ASK })
      await answerBoth(chat)
      await until(() => textOf(chat.messages.at(-1)) === 'There you are.')
      expect(page.sent).toHaveLength(2)
    },
  },
  ...[6, 7].map(libraryWay),
]

/** Waits up to the test's timeout. */
function until(fits: () => boolean): Promise<boolean> {
  return vi.waitUntil(fits, { timeout: 120_000, interval: 5 })
}

/** The client library with a version of the AI SDK. */
function libraryWay(version: number) {
  return {
    name: `the client library with ai ${version}`,
    answer: async (testBridge: TestBridge) => {
      const { webSocket } = testBridge.page()
      const url = `${testBridge.url.replace('http', 'ws')}/live`
      const transport = webSocketTransport({ url, webSocket })
      const options = { id: 'chat-1', transport }
      const chat =
        version === 6 ? new Chat6<AdkUIMessage>(options) : new Chat7<AdkUIMessage>(options)
      const attached = attachChat(chat, transport)
      const sent = chat.sendMessage({ text: ASK })
      await until(() => toolParts(chat.messages.at(-1))[0]?.state === 'approval-requested')
      await answerBoth(chat)
      await sent
      await until(() => textOf(chat.messages.at(-1)) === 'There you are.')
      attached.detach()
      transport.close()
    },
  }
}

interface AnswerableChat {
  readonly messages: readonly object[]
  addToolApprovalResponse(given: { id: string; approved: boolean }): void | PromiseLike<void>
  addToolOutput(given: { tool: never; toolCallId: string; output: never }): unknown
}

/** Approves and sends the result without waiting in between. */
async function answerBoth(chat: AnswerableChat): Promise<void> {
  const [part] = toolParts(chat.messages.at(-1) as ChatMessage | undefined)
  const { approval, toolCallId } = part as unknown as {
    approval: { id: string }
    toolCallId: string
  }
  const decided = chat.addToolApprovalResponse({ id: approval.id, approved: true })
  const given = chat.addToolOutput({ tool: TOOL as never, toolCallId, output: TOKYO as never })
  await Promise.all([decided, given])
}

function bidiWays() {
  const forms: readonly (readonly [string, (asked: Asked) => readonly object[]])[] = [
    [
      'form 1, the part of an assistant message',
      ({ approvalId: id, toolCallId }) => {
        const part = { type: `tool-${TOOL}`, toolCallId, state: 'output-available', output: TOKYO }
        const parts = [{ ...part, approval: { id, approved: true } }]
        return [{ type: 'message', messages: [{ id: 'm', role: 'assistant', parts }] }]
      },
    ],
    [
      'form 1, the confirmation in a message of the person',
      ({ approvalId: id, toolCallId }) => {
        const approval = { id, approved: true }
        const parts = [
          { type: `tool-${CONFIRMATION}`, state: 'approval-responded', approval },
          { type: `tool-${TOOL}`, toolCallId, state: 'output-available', output: TOKYO },
        ]
        return [{ type: 'message', messages: [{ role: 'user', parts }] }]
      },
    ],
    [
      'form 2, the output of the confirmation, behind the result',
      ({ approvalId, toolCallId }) => {
        const decision = { toolCallId: approvalId, toolName: CONFIRMATION }
        const content = [
          { type: 'tool-result', toolCallId, toolName: TOOL, result: TOKYO },
          { type: 'tool-result', ...decision, result: { confirmed: true } },
        ]
        return [{ type: 'message', messages: [{ role: 'user', content }] }]
      },
    ],
    [
      'form 3, results of the original tool',
      ({ toolCallId }) => {
        const content = [{ approved: true }, TOKYO].map((result) => ({
          type: 'tool-result',
          toolCallId,
          toolName: TOOL,
          result,
        }))
        return [{ type: 'message', messages: [{ role: 'user', content }] }]
      },
    ],
    [
      'form 4, two events, one right after the other',
      ({ approvalId, toolCallId }) => [
        { type: 'tool_result', toolCallId: approvalId, result: { confirmed: true } },
        { type: 'tool_result', toolCallId, result: TOKYO },
      ],
    ],
  ]
  return forms.map(([name, toEvents]) => ({
    name: `text frames, ${name}`,
    answer: async (testBridge: TestBridge) => {
      await using client = await BidiClient.open(testBridge.url)
      client.say(ASK)
      await client.untilAsked()
      const [asked] = client.asked
      if (asked) for (const event of toEvents(asked)) client.send(event)
      await client.untilDone()
      expect(client.text).toBe('There you are.')
      expect(client.ofType('data-refused')).toEqual([])
    },
  }))
}

describe.each([
  ['a model that goes on talking', { liveModel: FREE_MODEL }],
  ['a model that waits', {}],
])('%s', (_model, options) => {
  test.each(WAYS)('[BT6] a decision and a result arrive together, by $name', async ({ answer }) => {
    await using testBridge = await TestBridge.open({
      tools: () => [locationTool({ gated: true })],
      ...options,
    })
    await answer(testBridge)
    const [part] = toolParts((await testBridge.page().messages())[1])
    expect(part).toMatchObject({ state: 'output-available', output: TOKYO })
    expect(testBridge.results).toMatchObject([TOKYO])
    expect(testBridge.errors).toEqual([])
  })
})
