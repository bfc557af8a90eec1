import { FunctionTool, Gemini, LlmAgent, RoutedAgent } from '@google/adk'
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

test('[LV35] createBridge rejects an agent whose sub-agents would bypass approvals', () => {
  const model = 'gemini-2.5-flash-native-audio-preview-12-2025'
  const payer = new LlmAgent({ name: 'payer', model, tools: [pay] })
  const agent = new RoutedAgent({ name: 'router', agents: [payer], router: () => 'payer' })
  const live = { model: new Gemini({ model, apiKey: 'any' }) }
  expect(() => createBridge({ agent, live })).toThrow(/router cannot talk live/)
  expect(() => createBridge({ agent })).not.toThrow()
})
