import { LlmAgent, ParallelAgent, SequentialAgent } from '@google/adk'
import type { Responder } from 'gemini-emulator'
import { describe, expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { assistant } from '../support/agents.ts'
import { partTypes, textOf, toolParts } from '../support/chat-probe.ts'
import { clients } from '../support/clients.ts'
import { serve } from '../support/serve.ts'

/** Each agent says its name, in two pieces with its own gate between them. */
const whoIAm: Responder = ({ systemInstruction }) => {
  const name = /I am (\w+)/.exec(systemInstruction)?.[1] ?? 'nobody'
  return [
    { type: 'say', text: `${name} begins. ` },
    { type: 'wait', gate: name },
    { type: 'say', text: `${name} ends.` },
  ]
}

describe.each(oneOf(clients, 'ai 6'))('$name', (client) => {
  test('[MP7] a transfer is sent, and the other agent replies', async () => {
    await using server = await serve({
      agent: (model) =>
        assistant(model, {
          subAgents: [new LlmAgent({ name: 'expert', model, description: 'Knows.' })],
        }),
    })
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send('[[call transfer_to_agent {"agentName":"expert"}]][[then]][[say I know.]]')
    expect(chat.status).toBe('ready')
    expect(chat.text).toBe('I know.')
    expect(toolParts(chat.lastMessage)).toEqual([])
    const data = chat.lastMessage?.parts.filter(({ type }) => type.startsWith('data-'))
    expect(data).toMatchObject([
      { type: 'data-agent-transfer', data: { to: 'expert' } },
      { type: 'data-agent', data: { name: 'expert' } },
    ])
    expect((await browser.messages()).messages).toEqual(chat.messages)
    await client.validateMessages(chat.messages)
  })

  test('[MP7] the texts of parallel agents are not mixed', async () => {
    await using server = await serve({
      respond: whoIAm,
      agent: (model) =>
        // oxlint-disable-next-line typescript/no-deprecated -- Deprecated in favour of Workflow, and in use.
        new ParallelAgent({
          name: 'both',
          subAgents: ['red', 'blue'].map(
            (name) => new LlmAgent({ name, model, instruction: `I am ${name}` }),
          ),
        }),
    })
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send('Go.')
    // Both write before either of them ends.
    await chat.until(({ text }) => text.includes('red begins. ') && text.includes('blue begins. '))
    server.emulator.release('blue')
    await chat.until(({ text }) => text.includes('blue ends.'))
    server.emulator.release('red')
    await answer
    const texts = chat.lastMessage?.parts.filter(({ type }) => type === 'text')
    for (const { text } of texts ?? []) expect(text).toMatch(/^(?:(?!blue).)*$|^(?:(?!red).)*$/s)
    for (const name of ['red', 'blue']) {
      const own = (texts ?? []).filter(({ text }) => text?.includes(name))
      expect(own.map(({ text }) => text).join('')).toBe(`${name} begins. ${name} ends.`)
    }
    await client.validateMessages(chat.messages)
    const { messages } = await browser.messages()
    expect(textOf(messages[1]).length).toBe(textOf(chat.lastMessage).length)
  })

  test('[MP7] sequential agents write one message', async () => {
    await using server = await serve({
      respond: whoIAm,
      agent: (model) =>
        // oxlint-disable-next-line typescript/no-deprecated
        new SequentialAgent({
          name: 'both',
          subAgents: ['red', 'blue'].map(
            (name) => new LlmAgent({ name, model, instruction: `I am ${name}` }),
          ),
        }),
    })
    server.emulator.release('red')
    server.emulator.release('blue')
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send('Go.')
    expect(partTypes(chat.lastMessage)).toEqual([
      'step-start',
      'data-steps',
      'text',
      'data-agent',
      'text',
    ])
    expect((await browser.messages()).messages).toEqual(chat.messages)
  })
})
