import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'

import type { AgentCard } from '@a2a-js/sdk'
import type { BaseAgent } from '@google/adk'
import { LlmAgent, RemoteA2AAgent } from '@google/adk'
import { startEmulator } from 'gemini-emulator'
import { expect, test } from 'vitest'

import { writeFiles } from '../../../../test/docs/support/examples.ts'
import { readPages } from '../../../../test/docs/support/pages.ts'
import { createBridge } from '../../src/server/index.ts'
import { assistant, EmulatedGemini } from '../support/agents.ts'
import { textOf } from '../support/chat-probe.ts'
import { stockClient } from './support/approving-chat.ts'
import { callPayment, paymentTool, Wallet } from './support/payments.ts'
import { TestBridge } from './support/test-bridge.ts'

type ServeAgent = (
  agent: BaseAgent,
  url: string,
) => Promise<{ readonly app: RequestListener; readonly card: AgentCard }>

type CardOf = (url: string, card: AgentCard) => AgentCard | string

test.each<[form: string, cardOf: CardOf]>([
  ['the card', (_url, card) => card],
  ['the URL of the server', (url) => url],
  ['the URL of the card', (url) => `${url}.well-known/agent-card.json`],
])('[AP1064] an agent that is served as the recipe says is found by %s', async (_form, cardOf) => {
  const page = readPages().find(({ path: file }) => file === 'docs/recipes/remote-agents.md')
  const folder = writeFiles('remote-agents', page?.blocks ?? [])
  const recipe = (await import(path.join(folder, 'serve-agent.ts'))) as { serveAgent: ServeAgent }
  const wallet = new Wallet()
  const emulator = await startEmulator()
  const model = new EmulatedGemini(emulator.baseUrl)
  const http = createServer().listen(0, '127.0.0.1')
  await once(http, 'listening')
  // A server that listens on a port has such an address.
  const { port } = http.address() as AddressInfo
  const served = assistant(model, { tools: [paymentTool(wallet)] })
  const url = `http://127.0.0.1:${port}/`
  const { app, card } = await recipe.serveAgent(served, url)
  http.on('request', app)
  {
    const agent = new RemoteA2AAgent({ name: 'bank', agentCard: cardOf(url, card) })
    await using bridge = await TestBridge.open({ isLive: false, agent: () => agent })
    const client = stockClient('6')
    const chat = await bridge.page().open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
    expect(wallet.payments).toEqual([])
    await chat.decide(true)
    expect(textOf(chat.lastMessage)).toBe('Paid.')
    expect(wallet.payments).toHaveLength(1)
  }
  http.close()
  http.closeAllConnections()
  await emulator.close()
})

test.each(['http://127.0.0.1:1/agent.json', 'https://example.com/cards/travel.json', 'https://'])(
  '[AP1064] createBridge refuses the card %s',
  (agentCard) => {
    const agent = new RemoteA2AAgent({ name: 'travel', agentCard })
    const root = new LlmAgent({ name: 'root', model: 'gemini-2.5-flash', subAgents: [agent] })
    expect(() => createBridge({ agent: root })).toThrow(
      'ADK looks for .well-known/agent-card.json below the URL of the server',
    )
  },
)
