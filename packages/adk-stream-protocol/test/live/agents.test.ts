import { AgentTool, FunctionTool, Gemini, LlmAgent, RemoteA2AAgent, RoutedAgent } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { createBridge } from '../../src/server/index.ts'

const pay = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({}),
  requireConfirmation: true,
  execute: () => ({ paid: true }),
})

test('[LV180] createBridge rejects a bridge with `live` for a remote agent, but not for one that uses it as a tool', () => {
  const model = 'gemini-2.5-flash-native-audio-preview-12-2025'
  const live = { model: new Gemini({ model, apiKey: 'any' }) }
  const helper = new RemoteA2AAgent({ name: 'helper', agentCard: 'http://127.0.0.1:1' })
  const caller = new LlmAgent({ name: 'caller', model, tools: [new AgentTool({ agent: helper })] })
  expect(() => createBridge({ agent: helper, live })).toThrow(/helper is a remote one/)
  expect(() => createBridge({ agent: helper })).not.toThrow()
  expect(() => createBridge({ agent: caller, live })).not.toThrow()
})

test('[LV35] createBridge rejects an agent whose sub-agents would bypass approvals', () => {
  const model = 'gemini-2.5-flash-native-audio-preview-12-2025'
  const payer = new LlmAgent({ name: 'payer', model, tools: [pay] })
  const agent = new RoutedAgent({ name: 'router', agents: [payer], router: () => 'payer' })
  const live = { model: new Gemini({ model, apiKey: 'any' }) }
  expect(() => createBridge({ agent, live })).toThrow(/router cannot talk live/)
  expect(() => createBridge({ agent })).not.toThrow()
})
