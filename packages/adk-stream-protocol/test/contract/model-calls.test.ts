import type { BaseTool } from '@google/adk'
import {
  BasePlugin,
  getUserChoiceTool,
  LongRunningFunctionTool,
  requestInputTool,
} from '@google/adk'
import type { Action } from 'gemini-emulator'
import { describe, expect, test } from 'vitest'

import { ProtocolError } from '../../src/protocol/errors.ts'
import { assistant, tool } from '../support/agents.ts'
import { textOf } from '../support/chat-probe.ts'
import { serve } from '../support/serve.ts'
import { readFrames } from '../support/wire-rules.ts'

const ticket = new LongRunningFunctionTool({
  name: 'open_ticket',
  description: 'Opens a ticket.',
  execute: () => null,
})

const look = tool('look', () => ({ seen: true }))

const CALLS: readonly [BaseTool, Record<string, unknown>][] = [
  [requestInputTool, { message: 'Which size?' }],
  [getUserChoiceTool, { options: ['S', 'L'] }],
  [ticket, {}],
]

describe.each(CALLS.map(([asking, args]) => ({ asking, args, name: asking.name })))(
  '$name',
  ({ asking, args, name }) => {
    test.each([
      ['alone', []],
      ['after another call', [{ type: 'call', name: 'look', args: {} }]],
    ] as const)(
      '[MP111] the model is not called again after a call that waits, %s',
      async (_case, before) => {
        let modelCalls = 0
        const script: Action[] = [...before, { type: 'call', name, args }]
        await using server = await serve({
          respond: () => {
            modelCalls += 1
            return [script.shift() ?? { type: 'call', name, args }]
          },
          agent: (model) => assistant(model, { tools: [asking, look] }),
        })
        const { chunks } = readFrames(await (await server.browser().say('Go.')).text())
        expect(modelCalls).toBe(1 + before.length)
        expect(chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'tool-calls' })
      },
    )
  },
)

test.each([
  [undefined, 100],
  [3, 3],
])(
  '[MP111] with maxLlmCalls %s a model that repeats itself is called %s times',
  async (given, times) => {
    let modelCalls = 0
    await using server = await serve({
      respond: () => {
        modelCalls += 1
        return [{ type: 'call', name: 'look', args: {} }]
      },
      agent: (model) => assistant(model, { tools: [look] }),
      ...(given !== undefined && { runConfig: { maxLlmCalls: given } }),
      recorded: false,
    })
    const browser = server.browser()
    const { chunks } = readFrames(await (await browser.say('Go.')).text())
    expect(modelCalls).toBe(times)
    const { message, code } = new ProtocolError('model-call-limit')
    expect(chunks.at(-1)).toEqual({ type: 'error', errorText: message })
    const error = { code, message }
    expect(chunks.at(-2)).toMatchObject({ type: 'message-metadata', messageMetadata: { error } })
    const stored = await browser.fetch(`${server.url}/chats/chat-1/messages`)
    const { messages } = (await stored.json()) as { messages: { metadata?: unknown }[] }
    expect(messages.at(-1)?.metadata).toMatchObject({ error })
  },
)

test.each(['afterModelCallback', 'onEventCallback'] as const)(
  '[MP350] a plugin of the application receives every token in %s',
  async (callback) => {
    const texts: string[] = []
    const plugin = new (class extends BasePlugin {})('listener')
    Object.assign(plugin, {
      [callback]: async ({
        event,
        llmResponse = event,
      }: {
        event?: Reply
        llmResponse?: Reply
      }) => {
        if (llmResponse?.partial) texts.push(llmResponse.content?.parts?.[0]?.text ?? '')
      },
    })
    await using server = await serve({
      respond: () => [{ type: 'say', text: 'One two three.' }],
      plugins: [plugin],
    })
    await (await server.browser().say('Go.')).text()
    expect(texts.join('')).toBe('One two three.')
  },
)

interface Reply {
  readonly partial?: boolean
  readonly content?: { readonly parts?: readonly { readonly text?: string }[] }
}

test.each([
  ['at once', ''],
  ['after the result of a call', '[[call look {}]][[then]]'],
])('[MP1002] a plugin recovers from an error of the model %s', async (_when, before) => {
  const plugin = new (class extends BasePlugin {
    override async onModelErrorCallback() {
      return { content: { role: 'model', parts: [{ text: 'Sorry.' }] } }
    }
  })('recovery')
  await using server = await serve({
    plugins: [plugin],
    agent: (model) => assistant(model, { tools: [look] }),
  })
  const browser = server.browser()
  const { chunks } = readFrames(await (await browser.say(`${before}[[fail 503 Busy]]`)).text())
  expect(chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' })
  expect(textOf((await browser.messages()).messages.at(-1))).toBe('Sorry.')
  expect(await (await browser.say('[[say Fine again.]]')).text()).toContain('again.')
})
