import { FunctionTool, LlmAgent, SequentialAgent, AgentTool } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { createBridge } from '../src/server/index.ts'
import { assistant } from './support/agents.ts'
import { serve } from './support/serve.ts'

const pay = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({}),
  requireConfirmation: true,
  execute: () => ({ paid: true }),
})

/** Reads a feed until an event fits. */
async function readUntil(response: Response, fits: (event: Record<string, unknown>) => boolean) {
  const seen: Record<string, unknown>[] = []
  let text = ''
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true })
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames.filter((line) => line.startsWith('data: '))) {
      const event = JSON.parse(frame.slice(6)) as Record<string, unknown>
      seen.push(event)
      if (fits(event)) return seen
    }
  }
  return seen
}

test('[EV1] a page that watches a chat hears of turns and approvals, and not of other chats', async () => {
  await using server = await serve({
    agent: (model) => assistant(model, { tools: [pay] }),
    recorded: false,
  })
  const browser = server.browser()
  const say = (id: string, content: string) =>
    browser.post('/stream', { chatId: id, messages: [{ role: 'user', content }] })
  await (await say('other', '[[say Hi.]]')).text()
  const feed = await browser.get('/chats/chat-1/events')
  expect(feed.headers.get('content-type')).toBe('text/event-stream')
  const seen = readUntil(feed, ({ state }) => state === 'succeeded')
  await (await say('other', '[[say Hi.]]')).text()
  await (await say('chat-1', '[[call pay {}]][[then]][[say Paid.]]')).text()
  const { approvals } = (await (await browser.get('/approvals')).json()) as {
    approvals: { id: string }[]
  }
  const decided = await browser.post(`/approvals/${approvals[0]?.id}`, { approved: true })
  expect(decided.status).toBe(200)
  const events = await seen
  expect(events.filter(({ type }) => type === 'turn')).toHaveLength(2)
  expect(events.filter(({ type }) => type === 'approval').map(({ state }) => state)).toEqual([
    'requested',
    'approved',
    'executing',
    'succeeded',
  ])
})

test('[EV1] the chats of another principal are silent', async () => {
  await using server = await serve({ recorded: false })
  const [owner, stranger] = [server.browser(), server.browser()]
  await (
    await owner.post('/stream', {
      chatId: 'chat-1',
      messages: [{ role: 'user', content: '[[say Hi.]]' }],
    })
  ).text()
  const feed = await stranger.get('/chats/chat-1/events')
  const seen = readUntil(feed, () => true)
  await (
    await owner.post('/stream', {
      chatId: 'chat-1',
      messages: [{ role: 'user', content: '[[say Hi.]]' }],
    })
  ).text()
  await (
    await stranger.post('/stream', {
      chatId: 'chat-1',
      messages: [{ role: 'user', content: '[[say Mine.]]' }],
    })
  ).text()
  expect(await seen).toHaveLength(1)
})

test('[AP12] agents that ADK cannot pause are refused when the bridge is made', () => {
  const model = 'gemini-2.5-flash'
  const gated = new LlmAgent({ name: 'payer', model, tools: [pay] })
  const last = new LlmAgent({ name: 'last', model })
  const nested = new LlmAgent({ name: 'root', model, tools: [new AgentTool({ agent: gated })] })
  expect(() => createBridge({ agent: nested })).toThrow(/payer a sub-agent/)
  // Deprecated, and still what agents are made of.
  // oxlint-disable-next-line typescript/no-deprecated
  const sequence = new SequentialAgent({ name: 'steps', subAgents: [gated, last] })
  expect(() => createBridge({ agent: sequence })).toThrow(/Put payer last/)
})
