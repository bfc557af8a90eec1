import { FunctionNode, LlmAgent, NodeTool, Workflow } from '@google/adk'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { oneOf } from '../../../../test/support/long-run.ts'
import { assistant } from '../support/agents.ts'
import { clients } from '../support/clients.ts'
import { serve } from '../support/serve.ts'

const two = (model: ConstructorParameters<typeof LlmAgent>[0]['model']) => [
  new LlmAgent({ name: 'first', ...(model && { model }), instruction: 'I am first' }),
  new LlmAgent({ name: 'second', ...(model && { model }), instruction: 'I am second' }),
]

describe.each(oneOf(clients, 'ai 7'))('$name', (client) => {
  test('[CV1] a workflow of agents is one message, also after a reload', async () => {
    await using server = await serve({
      respond: ({ systemInstruction }) => [
        { type: 'say', text: systemInstruction.includes('first') ? 'One.' : 'Two.' },
      ],
      agent: (model) => new Workflow({ name: 'flow', edges: [['START', ...two(model)]] }),
    })
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send('Go.')
    await chat.send('Again.')
    expect(chat.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
    ])
    expect((await browser.messages()).messages).toEqual(chat.messages)
    await client.validateMessages(chat.messages)
  })

  test('[CV1] a workflow of functions and agents is one message', async () => {
    await using server = await serve({
      respond: () => [{ type: 'say', text: 'Said.' }],
      agent: (model) =>
        new Workflow({
          name: 'flow',
          edges: [
            [
              'START',
              new FunctionNode('begin', () => ({ topic: 'whales' })),
              new LlmAgent({ name: 'writer', model }),
              new FunctionNode(
                'end',
                (_context: unknown, input: unknown) => `End: ${String(input)}`,
              ),
            ],
          ],
        }),
    })
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send('Go.')
    expect((await browser.messages()).messages).toEqual(chat.messages)
  })

  test('[CV1] a workflow that is used as a tool returns its result', async () => {
    await using server = await serve({
      respond: ({ systemInstruction, contents }) => {
        if (systemInstruction.includes('I am inner')) return [{ type: 'say', text: 'Inner.' }]
        const isAnswered = contents.at(-1)?.parts?.some(({ functionResponse }) => functionResponse)
        return isAnswered === true
          ? [{ type: 'say', text: 'Outer.' }]
          : [{ type: 'call', name: 'flow', args: { topic: 'whales' } }]
      },
      agent: (model) =>
        assistant(model, {
          tools: [
            new NodeTool(
              new Workflow({
                name: 'flow',
                inputSchema: z.object({ topic: z.string() }),
                edges: [
                  ['START', new LlmAgent({ name: 'inner', model, instruction: 'I am inner' })],
                ],
              }),
            ),
          ],
        }),
    })
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send('Go.')
    expect((await browser.messages()).messages).toEqual(chat.messages)
  })
})
